"""`memviz-alloc` beside MLX's own allocator: cache hits among few and many cached buffers, and evictions.

Both hold the same buffers, all of different sizes, which is the hardest case for a search by size. MLX's allocator is called
through its vtable; a burst of one and a burst of the other take turns.
"""

from __future__ import annotations

import time

import mlx.core as mx

from mlx_memviz import _attach, _native
from mlx_memviz.bench import measure

DEFAULT_LIMIT = 32 << 20
ROOM = 64 << 30
BURST = 2_000
BURSTS = 10


def _hits(version: str, cached: int, options: measure.Options):
    """Nanoseconds of a malloc that hits and the free after it: the fastest burst of a round."""
    mx.clear_cache()
    both = _native.BenchAllocators(version, cached)
    lookups = both.our_lookups()
    mlx, ours = [], []
    for number in range(options.rounds):
        measure.progress(f"allocator: {cached:,} cached, round {number + 1} of {options.rounds}")
        bursts = [(both.mlx_hits(BURST), both.our_hits(BURST)) for _ in range(BURSTS)]
        mlx.append(min(burst[0] for burst in bursts) / BURST)
        ours.append(min(burst[1] for burst in bursts) / BURST)
    hits, misses = both.our_lookups()
    assert (hits - lookups[0], misses) == (options.rounds * BURSTS * BURST, lookups[1]), "every call is a hit"
    label = f"malloc + free hit, {cached:,} cached"
    yield measure.result("allocator", f"{label}, MLX", mlx, "ns")
    yield measure.result("allocator", f"{label}, ours", ours, "ns")
    gains = [one / other for one, other in zip(mlx, ours, strict=True)]
    yield measure.result("allocator", f"{label}, gain", gains, "×", target=2, is_at_least=True)


def _evictions(version: str, cached: int, options: measure.Options):
    """Milliseconds to evict half of the bytes, the oldest buffers first, and everything, in order of size."""
    mx.clear_cache()
    both = _native.BenchAllocators(version, cached)
    times: dict[str, tuple[list[float], list[float]]] = {"half": ([], []), "all": ([], [])}
    for number in range(options.rounds):
        measure.progress(f"allocator: evictions, round {number + 1} of {options.rounds}")
        for part, (mlx, ours) in times.items():
            mx.clear_cache()
            both.shrink_ours(0)
            both.fill()
            assert mx.get_cache_memory() == both.our_cached_bytes()
            limit = both.our_cached_bytes() // 2 if part == "half" else 0
            begin = time.perf_counter_ns()
            mx.set_cache_limit(limit)
            mlx.append((time.perf_counter_ns() - begin) / 1e6)
            ours.append(both.shrink_ours(limit) / 1e6)
            assert mx.get_cache_memory() == both.our_cached_bytes()
            mx.set_cache_limit(ROOM)
    for part, (mlx, ours) in times.items():
        yield measure.result("allocator", f"evict {part} of {cached:,}, MLX", mlx, "ms")
        yield measure.result("allocator", f"evict {part} of {cached:,}, ours", ours, "ms")


def run(options: measure.Options):
    version = _attach.prepare()
    most = 10_000 if options.is_quick else 100_000
    mx.set_cache_limit(ROOM)
    try:
        for cached in (1, 1_000, most):
            yield from _hits(version, cached, options)
        yield from _evictions(version, most, options)
    finally:
        mx.clear_cache()
        mx.set_cache_limit(DEFAULT_LIMIT)
