"""The smallest steps first, each with a comparison, so that the first one that fails names itself."""

import mlx.core as mx
import numpy as np
from common import facts_of, finish

import mlx_memviz

recording = mlx_memviz.start()
points, mismatches = 0, []


def at(name: str) -> None:
    global points
    points += 1
    seen = recording.checkpoint()
    is_same = seen["active"] == seen["mlx_active"] and seen["cached"] == seen["mlx_cached"]
    print(name, "same" if is_same else seen, flush=True)
    if not is_same:
        mismatches.append([name, seen])


at("nothing")
leaf = mx.array(np.arange(5000, dtype=np.float32))
at("array of numpy")
scalar = mx.array(1.5)
at("scalar")
total = leaf + scalar
mx.eval(total)
at("add")
wide = mx.zeros((1000, 1000))
mx.eval(wide)
at("zeros")
product = wide @ wide
mx.eval(product)
at("matmul")
host = np.array(product)
at("to numpy, moves to unified memory")
again = product * 2
mx.eval(again)
at("used on the device again")
del product, host
mx.eval(mx.ones((1000, 1000)))
at("the moved buffer is freed and reused")
on_cpu = mx.add(again, 1, stream=mx.cpu)
mx.eval(on_cpu)
at("add on the CPU stream")
del wide, total, again, on_cpu
mx.clear_cache()
at("clear_cache")
print(total_line := recording.summary())
recording.stop()
finish(
    facts_of(
        recording, points=points, mismatches=mismatches, hooked_after=mlx_memviz._native.hooked_slots(mx.__version__)
    )
)
