"""Four threads at random work while a fifth keeps evicting the cache: every checkpoint must be exact while they run.

threads_with_evictor.py SECONDS
"""

import os
import random
import sys
import threading
import time

import harness
import mlx.core as mx
import numpy as np

import mlx_memviz

stop = threading.Event()
errors = []


def work(seed: int) -> None:
    chance, kept = random.Random(seed), []
    try:
        while not stop.is_set():
            a = mx.random.normal((chance.randint(1, 300), chance.randint(1, 300)))
            b = mx.softmax((mx.exp(a) @ mx.transpose(a)).T, axis=0)
            parts = mx.split(mx.concatenate([a, a]), 2, axis=0)
            mx.eval(b, parts)
            kept.append(chance.choice([a, b, parts[0]]))
            if len(kept) > 8:
                kept.pop(chance.randrange(8))
            if chance.random() < 0.1:
                mx.async_eval(mx.linalg.qr(a[:9, :9], stream=mx.cpu))
            if chance.random() < 0.1:
                np.array(a, copy=False).sum()
            if chance.random() < 0.05:
                raises_inside_eval()
    except Exception as error:
        errors.append(repr(error))


def raises_inside_eval() -> None:
    try:
        mx.eval(mx.linalg.inv(mx.zeros((4, 4)), stream=mx.cpu))
    except RuntimeError:
        return
    raise AssertionError("inverse of a zero matrix raised nothing")


def evict() -> None:
    chance = random.Random(7)
    while not stop.wait(0.002):
        if chance.random() < 0.5:
            mx.clear_cache()
        else:
            mx.set_cache_limit(chance.randint(0, 8 << 20))


recording = mlx_memviz.start(max_entries=None)
at = harness.Checkpoints(recording)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)] + [threading.Thread(target=evict)]
for thread in threads:
    thread.start()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    at("under load")
    time.sleep(0.005)
stop.set()
for thread in threads:
    thread.join()
mx.synchronize()
at("joined")
recording.stop()
stats = recording.stats()
harness.finish(
    **at.facts(),
    errors=errors,
    evicted=stats["by_action"]["FreeCacheToOS"][0],
    lost=stats["lost"],
    hooked_after=harness.hooked_slots(),
    check=recording.check(),
)
# MLX sometimes aborts at exit after threads used streams of their own, with and without us.
os._exit(0)
