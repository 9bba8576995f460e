"""C++ exceptions pass through our hooks: same types and texts with and without a recording."""

import os
import tempfile

import harness
import mlx.core as mx

import mlx_memviz

# No compiler can be found, so compiled functions fail inside eval; a fresh folder has no kernel from an earlier run.
os.environ["PATH"] = "/nonexistent"
os.environ["TMPDIR"] = tempfile.mkdtemp()
r = mx.random.normal((50, 50))
mx.eval(r)


def compiled_without_compiler():
    mx.eval(mx.compile(lambda x: mx.exp(x * 1.37) + mx.sin(x) * 1.37 - mx.erf(x) ** 3)(r))


def singular():
    mx.eval(mx.linalg.inv(mx.zeros((4, 4)), stream=mx.cpu))


def not_positive():
    mx.eval(mx.linalg.cholesky(-mx.eye(4), stream=mx.cpu))


def wrong_shapes():
    mx.eval(r @ mx.ones((3, 3)))


def no_such_file():
    mx.load("/nonexistent/file.npy")


def absurd_reshape():
    mx.eval(mx.reshape(r, (7, 7)))


def raised_by(call) -> list[str]:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


calls = [compiled_without_compiler, singular, not_positive, wrong_shapes, no_such_file, absurd_reshape]
without = {call.__name__: raised_by(call) for call in calls}
recording = mlx_memviz.start()
at = harness.Checkpoints(recording)
recorded = {}
for _ in range(3):
    for call in calls:
        recorded.setdefault(call.__name__, []).append(raised_by(call))
        mx.synchronize()
        at(call.__name__)
after = mx.sum(mx.ones((10, 10))).item()
at("works afterwards")
recording.stop()
harness.finish(
    **at.facts(),
    without=without,
    recorded=recorded,
    after=after,
    lost=recording.stats()["lost"],
    check=recording.check(),
)
