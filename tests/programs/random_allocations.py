"""Arrays of exact byte sizes, kept and dropped at random; arguments: file to write, seed, number of arrays, kind of program.

Kinds: "mixed" changes the cache's limit and clears it in the middle, "edges" asks for the sizes at the edges of what a cached
buffer serves, "small" makes many buffers of few bytes, "no_cache" sets the limit to 0. Prints MLX's counters at the end.
"""

import json
import random
import sys

import mlx.core as mx

import mlx_memviz

PAGE = 4096
LIMITS = (0, 1 << 16, 1 << 20, 5 << 20, 32 << 20, 1 << 30)

path, seed, count, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
chance = random.Random(seed)
mx.set_default_device(mx.cpu)


def size() -> int:
    if kind == "small":
        return chance.randrange(200)
    base = chance.choice((1, 100, PAGE, 2 * PAGE, 5000, 100_000, 1 << 18, 1 << 20))
    if kind == "edges":
        edges = (base, 2 * base - 1, 2 * base, base + 2 * PAGE - 1, base + 2 * PAGE, base + 2 * PAGE + 1, base - 1)
        return chance.choice(edges)
    return chance.choice((0, base, base, base + chance.randrange(3), chance.randrange(2 * base)))


def disturb() -> None:
    number = chance.randrange(400)
    if number < 4:
        mx.set_cache_limit(chance.choice(LIMITS))
    elif number < 8:
        mx.clear_cache()
    elif number == 8:
        mx.clear_cache()
        mx.set_cache_limit(chance.choice(LIMITS))


if kind == "no_cache":
    mx.set_cache_limit(0)
with mlx_memviz.record(path) as recording:
    alive = []
    for _ in range(count):
        array = mx.zeros((size(),), dtype=mx.uint8)
        mx.eval(array)
        alive.append(array)
        del array
        while len(alive) > chance.randrange(1, 60):
            alive.pop(chance.randrange(len(alive)))
        if kind in ("mixed", "edges"):
            disturb()
    check = recording.checkpoint()
print(json.dumps({"check": check, "active": mx.get_active_memory(), "cached": mx.get_cache_memory()}))
