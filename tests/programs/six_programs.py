"""Six programs with allocations of different kinds; arguments: which, cache limit in bytes or "-", file to record into.

An operation is evaluated before the next one is built, so that no two threads race for a buffer.
"""

import random
import sys

import mlx.core as mx

import mlx_memviz

which, limit, path = sys.argv[1:]
mx.set_default_device(mx.cpu)
chance = random.Random(4)


def now(array):
    """Evaluates, and waits until its temporaries are freed."""
    mx.eval(array)
    mx.synchronize()
    return array


def training():
    weights = [now(mx.ones((256, 256)) * (0.01 * layer)) for layer in range(1, 5)]
    for _ in range(60):
        hidden, kept = now(mx.ones((64, 256))), []
        for weight in weights:
            kept.append(hidden)
            hidden = now(mx.maximum(now(hidden @ weight), 0))
        gradient = hidden
        for layer in reversed(range(4)):
            slope = now(kept[layer].T @ gradient)
            gradient = now(gradient @ weights[layer].T)
            weights[layer] = now(weights[layer] - now(slope * 1e-4))


def growing_cache():
    keys = now(mx.zeros((1, 64)))
    for _ in range(400):
        token = now(mx.ones((1, 64)))
        keys = now(mx.concatenate([keys, token]))
        scores = now(keys @ token.T)
        now(scores * 0.5)


def lengths():
    table = now(mx.ones((512, 128)))
    for _ in range(150):
        tokens = now(mx.zeros((chance.randrange(1, 600),), dtype=mx.int32))
        rows = now(table[tokens])
        now(now(rows * 2.0) + 1.0)


def images():
    image = now(mx.ones((1024, 1024)))
    for _ in range(25):
        blurred = now(now(image * 0.5) + 0.5)
        small = now(mx.contiguous(blurred[::2, ::2]))
        image = now(mx.maximum(now(mx.repeat(now(mx.repeat(small, 2, 0)), 2, 1)), image))


def scalars():
    total = now(mx.array(0.0))
    for number in range(1500):
        total = now(total + now(mx.array(float(number)) * 0.5))


def phases():
    for _ in range(40):
        now(now(mx.ones((512, 512))) * 3.0)
    kept = [now(mx.ones((chance.randrange(1, 400), 256))) for _ in range(60)]
    for _ in range(120):
        kept[chance.randrange(60)] = now(mx.ones((chance.randrange(1, 400), 256)))


if limit != "-":
    mx.set_cache_limit(int(limit))
with mlx_memviz.record(path) as recording:
    globals()[which]()
recording.trace.check()
