"""Three elementwise operations on 32 MiB arrays, again and again: argument 1 is where to record ("-": not), argument 2 a
cache limit in bytes or "-", argument 3 the number of rounds. Prints the median of a round.
"""

import json
import statistics
import sys
import time

import mlx.core as mx

import mlx_memviz

path, limit, rounds = sys.argv[1:]
mx.set_default_device(mx.cpu)
if limit != "-":
    mx.set_cache_limit(int(limit))
ARRAY = mx.ones((8 << 20,))
mx.eval(ARRAY)


def chain(array):
    scaled = array * 2.0
    shifted = scaled + 1.0
    return mx.maximum(shifted, array)


def run(count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        mx.eval(chain(ARRAY))
        seconds.append(time.perf_counter() - begin)
    return seconds


run(2)
if path != "-":
    with mlx_memviz.record(path) as recording:
        run(int(rounds))
    print(json.dumps({"check": recording.trace.check()}))
else:
    mx.reset_peak_memory()
    print(json.dumps({"seconds": statistics.median(run(int(rounds)))}))
