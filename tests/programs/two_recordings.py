"""One recording at a time: the second is refused and the first goes on."""

import harness
import mlx.core as mx

import mlx_memviz

refusals = {}


def refused(name: str, call) -> None:
    try:
        call()
        refusals[name] = None
    except mlx_memviz.AttachError as error:
        refusals[name] = str(error)


refused("stop without start", mlx_memviz.stop)
first = mlx_memviz.start()
at = harness.Checkpoints(first)
refused("second start", mlx_memviz.start)
refused("same start", first.start)
mx.eval(mx.zeros((1000,)))
at("goes on")
stopped = mlx_memviz.stop()
refused("stop again", mlx_memviz.stop)
refused("restart", first.start)
with mlx_memviz.record() as second:
    mx.eval(mx.zeros((1001,)))
harness.finish(
    **at.facts(),
    refusals=refusals,
    is_same=stopped is first,
    stop_twice_is_same=first.stop() is first,
    first=sum(event["requested"] == 4000 for event in first.events()),
    second=sum(event["requested"] == 4004 for event in second.events()),
    hooked_after=harness.hooked_slots(),
    checks=[first.check(), second.check()],
)
