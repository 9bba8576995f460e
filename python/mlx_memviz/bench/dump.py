"""Saving a recording of a million events as PyTorch's pickle."""

from __future__ import annotations

import os
import tempfile
import time

from mlx_memviz.bench import measure
from mlx_memviz.bench.program import many_events

EVENTS = 1_000_000


def run(options: measure.Options):
    events = EVENTS // 20 if options.is_quick else EVENTS
    measure.progress(f"dump: recording {events:,} events")
    with measure.recording(max_entries=events) as recording:
        many_events(events)
    building, writing = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.pickle")
        for number in range(options.rounds):
            measure.progress(f"dump: round {number + 1} of {options.rounds}")
            # The trace is kept by a stopped recording; each round builds it anew.
            recording._trace = None
            start = time.perf_counter()
            trace = recording.trace
            built = time.perf_counter()
            trace._inner.write_torch(path)
            writing.append(time.perf_counter() - built)
            building.append(built - start)
            size_bytes = os.path.getsize(path)
            del trace
    count = len(recording.trace)
    target = None if options.is_quick else 0.5
    yield measure.Result("dump", "events", count, "")
    yield measure.result("dump", "building the trace", building, "s")
    yield measure.result("dump", "writing the pickle", writing, "s")
    yield measure.result("dump", "save", [a + b for a, b in zip(building, writing)], "s", target=target)
    yield measure.Result("dump", "on disk", size_bytes / count, "B/event", target=55)
