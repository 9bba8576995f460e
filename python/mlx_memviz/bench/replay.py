"""Replaying a recording of a million events under each policy, and what the advised cache limit buys.

A sweep reads the events once and replays them for each point, so the difference of two sweeps is the cost of its further
points. The elementwise chain runs in one process with MLX's own limit and with the advised one in turn.
"""

from __future__ import annotations

import time

import mlx.core as mx

from mlx_memviz.bench import measure
from mlx_memviz.bench.program import many_events

POLICIES = ("cpu-0.32", "cpu-0.28", "metal", "cuda")
DEFAULT_LIMIT = 32 << 20
POINTS = 10


def _seconds(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _policy(trace, policy: str, rounds: int):
    """Seconds of a whole answer, and millions of events a second of the replay alone."""

    def ask(points: int):
        return lambda: trace.replay(policy=policy, device="m3-16gb", sweep=f"cache-limit=0..64MiB/{points}")

    whole, speeds = [], []
    for number in range(rounds):
        measure.progress(f"replay: {policy}, round {number + 1} of {rounds}")
        few, many = _seconds(ask(2)), _seconds(ask(2 + POINTS))
        whole.append(_seconds(lambda: trace.replay(policy=policy, device="m3-16gb")))
        speeds.append(len(trace) * POINTS / max(many - few, 1e-9) / 1e6)
    return whole, speeds


def chain(array):
    """Three elementwise operations."""
    return mx.maximum(array * 2.0 + 1.0, array)


def _chain(options: measure.Options):
    """The chain on 32 MiB arrays before and after `trace.advise()`."""
    array = mx.ones((8 << 20,))
    mx.eval(array)
    mx.set_cache_limit(DEFAULT_LIMIT)
    with measure.recording(max_entries=None) as recording:
        for _ in range(10):
            mx.eval(chain(array))
    advice = recording.trace.advise()["advice"]
    limit = next(each["to"] for each in advice if each["kind"] == "raise_limit")["cache_limit_bytes"]
    millis: dict[int, list[float]] = {DEFAULT_LIMIT: [], limit: []}
    for number in range(options.rounds):
        measure.progress(f"replay: elementwise chain, round {number + 1} of {options.rounds}")
        for each, values in millis.items():
            mx.set_cache_limit(each)
            mx.eval(chain(array))
            values.append(min(_seconds(lambda: mx.eval(chain(array))) for _ in range(5)) * 1e3)
    mx.set_cache_limit(DEFAULT_LIMIT)
    before, after = millis.values()
    yield measure.result("replay", "elementwise chain, default cache limit", before, "ms")
    yield measure.result("replay", f"elementwise chain, advised {limit >> 20} MiB", after, "ms")
    gains = [old / new for old, new in zip(before, after, strict=True)]
    yield measure.result("replay", "elementwise chain, gain", gains, "×", target=2, is_at_least=True)


def run(options: measure.Options):
    events = 50_000 if options.is_quick else 1_000_000
    with measure.recording(max_entries=None) as recording:
        many_events(events)
    trace = recording.trace
    for policy in POLICIES:
        whole, speeds = _policy(trace, policy, options.rounds)
        yield measure.result("replay", f"{policy}: answer about {len(trace):,} events", whole, "s")
        target = None if options.is_quick else 10
        yield measure.result("replay", f"{policy}: replayed", speeds, "M events/s", target=target, is_at_least=True)
    with mx.stream(mx.cpu):
        yield from _chain(options)
