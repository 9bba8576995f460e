"""Trains a transformer in bf16, recorded. usage: train.py large|small FILE"""

import sys
import time

import mlx.core as mx
from common import facts_of, finish
from model import make

import mlx_memviz

size, path = sys.argv[1:]
mx.reset_peak_memory()
recording = mlx_memviz.start(max_entries=None)
parameters, steps, step = make(size)
times = []
for _ in range(steps):
    start = time.perf_counter()
    with mlx_memviz.annotate("train"):
        loss = step().item()
    times.append(time.perf_counter() - start)
    mlx_memviz.step()
mlx_peak = mx.get_peak_memory()
print(recording.summary())
recording.stop()
recording.save(path)
step_millis = sorted(times)[len(times) // 2] * 1e3
finish(facts_of(recording, parameters=parameters, steps=steps, loss=loss, step_millis=step_millis, mlx_peak=mlx_peak))
