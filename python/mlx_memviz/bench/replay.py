"""Replaying a recording of a million events under each policy, and what the advised cache limit buys.

A whole answer reads the events, replays them and looks at what was alive; a replay alone is what a slider or a sweep repeats.
The elementwise chain runs in one process with MLX's own limit and with the advised one in turn.
"""

from __future__ import annotations

import time

import mlx.core as mx

from mlx_memviz import _native
from mlx_memviz.bench import measure
from mlx_memviz.bench.program import many_events

POLICIES = ("cpu-0.32", "cpu-0.28", "metal", "cuda", "pytorch", "expandable", "ideal")
MACHINE = "m3-16gb"
DEFAULT_LIMIT = 32 << 20


def _seconds(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _policy(trace, calls, policy: str, rounds: int):
    """Seconds of a whole answer, and millions of events a second of a replay alone."""
    whole, speeds = [], []
    for number in range(rounds):
        measure.progress(f"replay: {policy}, round {number + 1} of {rounds}")
        whole.append(_seconds(lambda: trace.replay(policy=policy, device=MACHINE)))
        speeds.append(len(trace) / min(calls.nanos(policy, MACHINE) for _ in range(3)) * 1e3)
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
    begin = time.perf_counter()
    calls = _native.BenchReplay(trace._inner)
    yield measure.result("replay", f"read the calls of {len(trace):,} events", [time.perf_counter() - begin], "s")
    for policy in POLICIES:
        whole, speeds = _policy(trace, calls, policy, options.rounds)
        yield measure.result("replay", f"{policy}: answer about {len(trace):,} events", whole, "s")
        target = None if options.is_quick else 10
        yield measure.result("replay", f"{policy}: replayed", speeds, "M events/s", target=target, is_at_least=True)
    with mx.stream(mx.cpu):
        yield from _chain(options)
