"""What recording with us adds to an operation and to a training step of MLX on the GPU."""

import mlx.core as mx
from common import finish
from model import make
from pairs import DEPTH, OPS, at_depth, measure

import mlx_memviz

x = mx.ones((8,))
mx.eval(x)


def build() -> None:
    [x + x for _ in range(OPS)]


def build_and_eval() -> None:
    mx.eval([x + x for _ in range(OPS)])


running = []


def start(**options) -> None:
    running.append(mlx_memviz.start(**options))


def stop() -> None:
    running.pop().stop()


facts = {}
for name, work in (("build", build), ("build and eval", build_and_eval)):
    deep = lambda work=work: at_depth(DEPTH, work)  # noqa: E731
    facts[name] = measure(deep, start, stop, rounds=9, repetitions=150, per=OPS)
    facts[f"{name}, C++ frames too"] = measure(
        deep, lambda: start(native=True), stop, rounds=9, repetitions=150, per=OPS
    )
    print(name, facts[name], facts[f"{name}, C++ frames too"], flush=True)
for size, repetitions in (("small", 20), ("large", 5), ("busy", 5)):
    parameters, _, step = make(size)
    for _ in range(3):
        step()
    facts[f"training step, {size}, {parameters} parameters"] = measure(
        step, start, stop, rounds=7, repetitions=repetitions, per=1
    )
    print(size, facts[f"training step, {size}, {parameters} parameters"], flush=True)
finish(facts)
