"""An event without a Python stack: MLX's allocator in a native loop, on a thread without the GIL."""

from __future__ import annotations

import mlx.core as mx

from mlx_memviz import _attach, _native
from mlx_memviz.bench import measure

COUNT = 20_000


def run(options: measure.Options):
    """One allocation and one free are two events. 64 bytes never enter the CPU's cache search for long: a cache hit."""
    version = _attach.prepare()
    if _native.bench_allocator(version, 64, 1) is None:
        yield measure.Result("event", "the allocator's vtable cannot be read", 0.0, "", note="skipped")
        return
    for size in (64, 1 << 20):
        off, on = [], []
        for number in range(options.rounds):
            measure.progress(f"event: round {number + 1} of {options.rounds}")
            off.append(_nanos(version, size))
            with measure.recording():
                on.append(_nanos(version, size))
        mx.clear_cache()
        name = "64 B" if size == 64 else "1 MiB"
        yield measure.result("event", f"malloc + free of {name}, off", off, "ns")
        yield measure.result("event", f"added per event, {name}", [(b - a) / 2 for a, b in zip(off, on)], "ns")


def _nanos(version: str, size: int) -> float:
    """Per malloc and free: the fastest of nine bursts, since the loop has no CPU clock of its own."""
    return min(_native.bench_allocator(version, size, COUNT // 10) for _ in range(20)) / (COUNT // 10)
