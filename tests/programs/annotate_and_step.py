"""Marks: steps, nested annotations, the decorator, and marks left in a program that does not record."""

import threading

import harness
import mlx.core as mx

import mlx_memviz
from mlx_memviz import annotate, step


def build(number: int) -> None:
    mx.eval(mx.zeros((1000 + number,)))


@annotate("decorated")
def decorated(levels: int) -> None:
    build(10 + levels)
    if levels:
        decorated(levels - 1)


def elsewhere() -> None:
    build(20)
    with annotate("thread"):
        build(21)


step()
with annotate("before"):
    unrecorded = step()
recording = mlx_memviz.start()
build(0)
steps = []
with annotate("outer"):
    build(1)
    with annotate("inner"):
        build(2)
    build(3)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    try:
        with annotate("raises"):
            build(4)
            raise KeyError("on purpose")
    except KeyError:
        build(5)
    steps.append(step())
    build(6)
decorated(1)
build(7)
steps.append(step())
build(8)
mlx_memviz.snapshot()
recording.stop()
steps.append(step())
found = {
    event["requested"] // 4 - 1000: [event["annotation"], event["step"]]
    for event in recording.events()
    if harness.is_alloc(event) and 1000 <= event["requested"] // 4 < 1100
}
harness.finish(
    unrecorded=unrecorded,
    steps=steps,
    found=found,
    snapshots=sum(event["action"] == "Snapshot" for event in recording.events()),
    check=recording.check(),
)
