"""Small buffers are left out of the list, not of the totals."""

import harness
import mlx.core as mx

import mlx_memviz

MIN_SIZE = 64 << 10


def work(at) -> None:
    kept = []
    for number in range(50):
        small, large = mx.zeros((100 + number,)), mx.zeros((20_000 + number,))
        mx.eval(small, large)
        kept.append((small, large))
        if number % 10 == 0:
            at(f"turn {number}")
    del kept[10:30]
    mx.synchronize()
    at("some freed")
    mx.set_cache_limit(100 << 10)
    at("evicted")


with mlx_memviz.record(min_size=MIN_SIZE) as recording:
    at = harness.Checkpoints(recording)
    work(at)
    live = recording.live()
    totals = recording.checkpoint()
stats = recording.stats()
events = recording.events()
harness.finish(
    **at.facts(),
    listed=sum(event["action"] not in ("FilteredNet", "Snapshot") for event in events),
    smallest=min(event["size"] for event in events if event["action"] not in ("FilteredNet", "Snapshot")),
    nets=sum(event["action"] == "FilteredNet" for event in events),
    smallest_live=min(buffer["size"] for buffer in live),
    totals=totals,
    min_size=MIN_SIZE,
    stats={key: stats[key] for key in ("seen", "recorded", "dropped", "filtered", "lost")},
    counted=sum(count for count, _ in stats["by_action"].values()),
    check=recording.check(),
)
