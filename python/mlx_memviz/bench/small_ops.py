"""100,000 small operations at 32 frames, built and evaluated.

Each result is kept until a hundred are there, so each allocates its buffer: a chain would reuse one buffer.
"""

from __future__ import annotations

import time

import mlx.core as mx

from mlx_memviz.bench import measure

OPS = 100_000
DEPTH = 32


def _at_depth(depth: int, work):
    return work() if depth <= 1 else _at_depth(depth - 1, work)


def program(ops: int, with_eval: bool):
    x = mx.ones((8,))
    mx.eval(x)

    def build():
        for _ in range(ops // 100):
            outs = [x + x for _ in range(100)]
            if with_eval:
                mx.eval(outs)

    return lambda: _at_depth(DEPTH, build)


def run(options: measure.Options):
    # The 100,000 operations of a state in a round, in pieces of 1,000.
    ops = 1000
    pieces = (OPS // 10 if options.is_quick else OPS) // ops // 2
    with mx.stream(getattr(mx, options.device)):
        for with_eval, clock in ((False, time.thread_time_ns), (True, time.process_time_ns)):
            what = "build and eval" if with_eval else "build"
            pairs = measure.pairs(f"small_ops: {what}", program(ops, with_eval), options.rounds, pieces, clock)
            judged = pairs.wall if with_eval else pairs
            yield measure.result("small_ops", f"{what}, off, per op", [off / ops for off in judged.off], "ns")
            yield measure.result("small_ops", f"{what}, on/off", judged.ratios, "×", target=1.08)
            yield measure.result("small_ops", f"{what}, added per op", [added / ops for added in judged.added], "ns")
            if with_eval:
                yield measure.result("small_ops", f"{what}, on/off, CPU time", pairs.ratios, "×")
