"""A program that makes many events of many kinds, for the benchmarks that need a long recording."""

from __future__ import annotations

import mlx.core as mx


def many_events(count: int) -> None:
    """At least `count` buffer events, from a few lines, with several shapes and primitives, on the CPU device."""
    with mx.stream(mx.cpu):
        arrays = [mx.ones((rows, 8)) for rows in (1, 4, 16, 64)]
        mx.eval(arrays)
        # Each round allocates and frees four results: at least 8 events.
        for _ in range(count // 8 + 1):
            a, b, c, d = arrays
            mx.eval(a + 1, b * b, mx.exp(c), d - d)
