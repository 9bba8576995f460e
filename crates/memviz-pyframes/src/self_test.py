"""Calls `probe()` at the leaf of a stack with every kind of frame that CPython has; see memviz-pyframes."""

import functools

probes = 0
matches = True


def _probe():
    global probes, matches
    probes += 1
    matches = bool(probe()) and matches  # noqa: F821 (given by the caller)


class _Built:
    def __init__(self, then):
        then()


class _Called:
    def __call__(self, then):
        return then()


def _generator(then):
    yield then()


async def _coroutine(then):
    return then()


def _recurse(depth, then):
    return _recurse(depth - 1, then) if depth else then()


def _drive(then):
    try:
        _coroutine(then).send(None)
    except StopIteration:
        pass


def _through_exec(then):
    exec("def run(then):\n    return then()\nrun(then)", {"then": then})


def _all(then):
    _recurse(3, lambda: list(map(_Called(), [lambda: next(_generator(functools.partial(_Built, then)))])))


def _nothing():
    pass


for _ in range(60):  # calls are specialised after a few rounds, and only then have their extra frames
    _Built(_nothing)
_recurse(2, lambda: _through_exec(lambda: _all(_probe)))
for _ in range(60):
    _all(_nothing)
_all(_probe)
for _ in range(3):
    _Built(lambda: _drive(_probe))
