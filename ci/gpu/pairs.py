"""Rounds of off, on, on, off, by the wall clock: the same statistics for MLX with us and for PyTorch with its own recorder."""

import statistics
import time

DEPTH = 32
OPS = 100


def at_depth(depth: int, work):
    return work() if depth <= 1 else at_depth(depth - 1, work)


def burst(work, repetitions: int) -> float:
    """Nanoseconds of the repetition at the first decile, after one that is not counted."""
    work()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[len(times) // 10]


def measure(work, switch_on, switch_off, rounds: int, repetitions: int, per: int) -> dict:
    """Nanoseconds of one of `per` operations without, what recording adds, and the ratio: medians and quartiles."""
    off, on = [], []
    for _ in range(rounds):
        before = burst(work, repetitions)
        switch_on()
        during = [burst(work, repetitions) for _ in range(2)]
        switch_off()
        after = burst(work, repetitions)
        off.append((before + after) / 2)
        on.append(sum(during) / 2)
    added = [(b - a) / per for a, b in zip(off, on)]
    ratios = [b / a for a, b in zip(off, on)]
    return {
        "off_ns": round(statistics.median(off) / per, 1),
        "added_ns": [round(value, 1) for value in statistics.quantiles(added, n=4, method="inclusive")],
        "ratio": [round(value, 4) for value in statistics.quantiles(ratios, n=4, method="inclusive")],
    }
