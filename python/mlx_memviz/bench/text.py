"""The benchmarks of the text that this project began with: `full` and `add` at 32 frames, 10, 20 and 30 operations.

As it describes them: arrays of 10 by 10 on the CPU device (or, asked for, the GPU), built at the end of a recursion of 32
frames, with and without eval. Columns of its table become lines: time without recording, ratio, cost of a capture, and
what remains after stop.
"""

from __future__ import annotations

import time

import mlx.core as mx

from mlx_memviz.bench import measure

DEPTH = 31
# Arrays that one operation builds: `full` broadcasts its scalar first.
ARRAYS = {"full": 2, "add": 1}


def _full():
    val = mx.array(10.0)
    mx.eval(val)
    return lambda: mx.full((10, 10), val)


def _add():
    val = mx.full((10, 10), 10.0)
    mx.eval(val)
    return lambda: val + val


def _program(operation, ops: int, with_eval: bool):
    def recursive_op(i, outs):
        if i == DEPTH - 1:
            outs.append(operation())
        else:
            recursive_op(i + 1, outs)

    def run_benchmark() -> list[mx.array]:
        outs: list[mx.array] = []
        for _ in range(ops):
            recursive_op(0, outs)
        if with_eval:
            mx.eval(outs)
        return outs

    return run_benchmark


def run(options: measure.Options):
    """By CPU time; with eval, where two threads work, targets are judged by the wall clock, as the text did."""
    with mx.stream(getattr(mx, options.device)):
        for name, make in (("full", _full), ("add", _add)):
            for with_eval in (False, True):
                for ops in (10, 20, 30):
                    yield from _measure(name, make(), ops, with_eval, options)


def _measure(name: str, operation, ops: int, with_eval: bool, options: measure.Options):
    work = _program(operation, ops, with_eval)
    label = f"{name} x{ops}{' eval' if with_eval else ''}"
    clock = time.process_time_ns if with_eval else time.thread_time_ns
    repetitions = measure.repetitions_for(work, 5 if options.is_quick else 15)
    pairs = measure.pairs(f"text: {label}", work, options.rounds, repetitions, clock)
    judged, target = (pairs.wall, 1.08) if with_eval else (pairs, 1.06)
    yield measure.result("text", f"{label}, off", [off / 1e3 for off in judged.off], "µs")
    yield measure.result("text", f"{label}, on/off", judged.ratios, "×", target=target)
    if with_eval:
        yield measure.result("text", f"{label}, on/off, CPU time", pairs.ratios, "×")
    arrays = ops * ARRAYS[name]
    yield measure.result("text", f"{label}, added per array", [added / arrays for added in pairs.added], "ns")
