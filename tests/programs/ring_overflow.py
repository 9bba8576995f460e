"""More events than the ring holds: the last ones stay, the others are counted."""

import harness
import mlx.core as mx

import mlx_memviz

CAPACITY = 64
mx.set_cache_limit(0)


def work(recording) -> None:
    for number in range(100):
        mx.eval(mx.zeros((100 + number,)))
        mx.synchronize()


def run(max_entries):
    recording = mlx_memviz.start(max_entries=max_entries)
    at = harness.Checkpoints(recording)
    work(recording)
    at("end")
    recording.stop()
    return recording, at


whole, _ = run(None)
cut, at = run(CAPACITY)
with_events = [[event["action"], event["requested"], event["index"]] for event in whole.events()]
harness.finish(
    **at.facts(),
    capacity=CAPACITY,
    whole=with_events,
    kept=[[event["action"], event["requested"], event["index"]] for event in cut.events()],
    stats={key: cut.stats()[key] for key in ("seen", "recorded", "dropped", "filtered", "lost")},
    trace_dropped=cut.trace.dropped,
    check=cut.check(),
)
