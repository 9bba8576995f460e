"""Arrays in reference cycles die where the collector runs, here on another thread."""

import gc
import threading

import harness
import mlx.core as mx

import mlx_memviz

SIZE, COUNT = 4 * 10_007, 20
gc.disable()
mx.set_cache_limit(0)


class Holder:
    def __init__(self):
        self.array = mx.zeros((SIZE // 4,))  # L:made
        mx.eval(self.array)
        self.itself = self


recording = mlx_memviz.start()
at = harness.Checkpoints(recording)
for _ in range(COUNT):
    Holder()
mx.synchronize()
at("in cycles")
held = mx.get_active_memory()
collector = threading.Thread(target=gc.collect, name="collector")
collector.start()
collector.join()
at("collected")
recording.stop()
events = [event for event in recording.events() if event["size"] == SIZE]
freed = [event for event in events if event["action"] == "FreeActiveToOS"]
harness.finish(
    **at.facts(),
    held=held,
    size=SIZE,
    count=COUNT,
    made=sorted({harness.innermost(event)[2] for event in events if harness.is_alloc(event)}),
    line=harness.marked_line(__file__, "made"),
    freed=len(freed),
    freed_on=sorted({event["thread"] for event in freed}),
    check=recording.check(),
)
