"""What a recording holds: bytes an event and a stack."""

from __future__ import annotations

import pathlib
import resource

from mlx_memviz.bench import measure
from mlx_memviz.bench.program import many_events


def _resident_bytes() -> int:
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def _many_stacks(count: int) -> None:
    """`count` stacks that no one has seen: a new code object each."""
    from mlx_memviz import _native

    for number in range(count):
        exec(compile("capture()", f"<mlx_memviz bench {number}>", "exec"), {"capture": _native.capture})


def run(options: measure.Options):
    events = 100_000 if options.is_quick else 1_000_000
    measure.progress(f"memory: recording {events:,} events")
    with measure.recording(max_entries=None) as recording:
        many_events(1000)
        before, resident = recording.stats(), _resident_bytes()
        many_events(events)
        after, resident_after = recording.stats(), _resident_bytes()
        recorded = after["recorded"] - before["recorded"]
        per_event = (after["recorder_bytes"] - before["recorder_bytes"]) / recorded
        yield measure.Result("memory", "recorder per event", per_event, "B", target=48.5, note="48 and the last chunk")
        yield measure.Result("memory", "resident set per event", (resident_after - resident) / recorded, "B")
        stacks = 20_000
        _many_stacks(stacks)
        last = recording.stats()["recorder_bytes"]
        yield measure.Result("memory", "recorder per new stack", (last - after["recorder_bytes"]) / stacks, "B")
