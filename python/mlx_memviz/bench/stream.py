"""A recording that goes into a file beside one that stays in memory: cost per small operation, and bytes per event.

The operations of `small_ops`, built and evaluated at 32 frames. Both kinds of recording take turns, so what the writer's
threads take from the program shows as the difference. Peak memory of the queue and how fast the writer alone is: not here.
"""

from __future__ import annotations

import os
import tempfile
import time

import mlx.core as mx

from mlx_memviz.bench import measure
from mlx_memviz.bench.small_ops import OPS, program


def run(options: measure.Options):
    ops = 1000
    pieces = (OPS // 10 if options.is_quick else OPS) // ops
    work = program(ops, with_eval=True)
    with mx.stream(getattr(mx, options.device)), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.memviz")
        kept, streamed, sizes, dropped = [], [], [], 0
        work()
        for number in range(options.rounds):
            measure.progress(f"stream: round {number + 1} of {options.rounds}")
            kept.append(_nanos(work, pieces, None)[0] / (pieces * ops))
            nanos, recording = _nanos(work, pieces, path)
            streamed.append(nanos / (pieces * ops))
            stats = recording.stats()
            dropped += stats["dropped"]
            sizes.append(os.path.getsize(path) / stats["recorded"])
        ratios = [after / before for before, after in zip(kept, streamed)]
        yield measure.result("stream", "kept in memory, per op", kept, "ns")
        yield measure.result("stream", "into a file, per op", streamed, "ns")
        yield measure.result("stream", "into a file / in memory", ratios, "×")
        yield measure.result("stream", "bytes per event", sizes, "B", target=12)
        yield measure.result("stream", "events dropped", [float(dropped)], "", target=0)


def _nanos(work, pieces: int, path):
    with measure.recording(path=path) as recording:
        start = time.perf_counter_ns()
        for _ in range(pieces):
            work()
        nanos = time.perf_counter_ns() - start
    return nanos, recording
