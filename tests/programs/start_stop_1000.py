"""A thousand recordings in one process: same results, hooks restored each time, nothing that adds up."""

import gc
import os
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz

CYCLES, WARM_UP = 1000, 100


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def work() -> float:
    a = mx.arange(1000, dtype=mx.float32)
    return ((a * 2 + 1) @ a).item()


plain = work()
same = restored = checked = 0
events, before = set(), 0
for cycle in range(CYCLES):
    if cycle == WARM_UP:
        before = resident_bytes()
    with mlx_memviz.record() as recording:
        same += work() == plain
    events.add(len(recording.events()))
    checked += recording.check()["active"] == recording.stats()["active"]
    restored += harness.hooked_slots() == 0
harness.finish(
    cycles=CYCLES,
    same=same,
    restored=restored,
    checked=checked,
    events=sorted(events),
    growth=resident_bytes() - before,
    recorder_bytes=recording.stats()["recorder_bytes"],
)
