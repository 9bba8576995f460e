"""Short bursts that take turns, and the statistics of their differences.

A round is off, on, on, off: a drift of the machine cancels. Within a burst the work is repeated and the repetition at the
first decile counts: other processes only ever add time, also CPU time, through caches and the core's other thread. Not
here: what is measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable

import mlx_memviz

Clock = Callable[[], int]


@dataclasses.dataclass(frozen=True)
class Options:
    """How long to measure."""

    rounds: int = 9
    # Smaller programs for a quick look; targets are not judged by them.
    is_quick: bool = False
    # "cpu" or "gpu": device of the benchmarks that run single operations.
    device: str = "cpu"


@dataclasses.dataclass(frozen=True)
class Result:
    """One line of the table. `low` and `high` are the quartiles over the rounds; `is_met` is None without a target."""

    benchmark: str
    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    target: float | None = None
    is_at_least: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.is_at_least else self.value <= self.target


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def result(benchmark: str, name: str, values: list[float], unit: str, **fields) -> Result:
    """A result from one value a round."""
    low, median, high = quartiles(values)
    return Result(benchmark, name, median, unit, low, high, **fields)


def progress(text: str) -> None:
    """A line that the next one overwrites, on a terminal; nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def recording(**options):
    """Records inside; stopped also after an exception."""
    running = mlx_memviz.start(**options)
    try:
        yield running
    finally:
        running.stop()


def burst(work: Callable[[], object], repetitions: int, clock: Clock) -> tuple[float, float]:
    """Nanoseconds of the repetition at the first decile, by `clock` and by the wall, after one that is not counted."""
    work()
    times, walls = [], []
    for _ in range(repetitions):
        start, wall = clock(), time.perf_counter_ns()
        work()
        walls.append(time.perf_counter_ns() - wall)
        times.append(clock() - start)
    return sorted(times)[len(times) // 10], sorted(walls)[len(walls) // 10]


@dataclasses.dataclass
class Pairs:
    """One value a round, in nanoseconds of one call of the work."""

    off: list[float] = dataclasses.field(default_factory=list)
    on: list[float] = dataclasses.field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [on / off for off, on in zip(self.off, self.on)]

    @property
    def added(self) -> list[float]:
        return [on - off for off, on in zip(self.off, self.on)]


@dataclasses.dataclass
class TwoClocks(Pairs):
    """By the clock that was asked for, and the same rounds by the wall clock."""

    wall: Pairs = dataclasses.field(default_factory=Pairs)


def pairs(label: str, work: Callable[[], object], rounds: int, repetitions: int, clock: Clock, **options) -> TwoClocks:
    """Runs `work` with and without recording."""
    measured = TwoClocks()
    for number in range(rounds):
        progress(f"{label}: round {number + 1} of {rounds}")
        before = burst(work, repetitions, clock)
        with recording(**options):
            on = [burst(work, repetitions, clock) for _ in range(2)]
        after = burst(work, repetitions, clock)
        for at, series in enumerate((measured, measured.wall)):
            series.off.append((before[at] + after[at]) / 2)
            series.on.append((on[0][at] + on[1][at]) / 2)
    return measured


def repetitions_for(work: Callable[[], object], burst_millis: float) -> int:
    """How often `work` fits into a burst, from a warm-up; at least 3."""
    work()
    start = time.perf_counter_ns()
    work()
    return max(3, int(burst_millis * 1e6 / max(1, time.perf_counter_ns() - start)))
