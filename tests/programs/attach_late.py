"""MLX was used before the recording: active and cached buffers exist already."""

import harness
import mlx.core as mx

import mlx_memviz

KEPT, CACHED = 4 * 50_021, [4 * 20_011, 4 * 30_011, 4 * 70_001]


def filled(size: int) -> mx.array:
    array = mx.zeros((size // 4,))
    mx.eval(array)
    mx.synchronize()
    return array


kept = filled(KEPT)
for array in [filled(size) for size in CACHED]:
    del array
mx.synchronize()
before = [mx.get_active_memory(), mx.get_cache_memory()]

recording = mlx_memviz.start()
at = harness.Checkpoints(recording)
at("start")
imported = [
    {"address": buffer["address"], "size": buffer["size"]} for buffer in recording.live() if buffer["state"] == "cached"
]
again = filled(CACHED[1])
at("reused")
reuse = [event for event in recording.events() if event["requested"] == CACHED[1] and harness.is_alloc(event)]
del kept
mx.synchronize()
at("a buffer from before was freed")
freed = [event for event in recording.events() if event["size"] == KEPT]
mx.clear_cache()
at("cache cleared")
evicted = [event["size"] for event in recording.events() if event["action"] == "FreeCacheToOS"]
recording.stop()
harness.finish(
    **at.facts(),
    before=before,
    base=[recording.stats()["active"], mx.get_active_memory()],
    sizes=CACHED,
    imported=imported,
    reuse=[{"action": event["action"], "address": event["address"], "size": event["size"]} for event in reuse],
    freed=[event["action"] for event in freed],
    evicted=evicted,
    check=recording.check(),
)
