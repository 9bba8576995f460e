"""C++ exceptions pass through our hooks: same types and texts with and without a recording."""

import os
import tempfile

import harness
import mlx.core as mx

import mlx_memviz

# Until 0.31, functions are compiled inside eval by a C++ compiler, which cannot be found here; a fresh folder has no kernel from
# an earlier run.
os.environ["PATH"] = "/nonexistent"
os.environ["TMPDIR"] = tempfile.mkdtemp()
r = mx.random.normal((50, 50))
mx.eval(r)


def compiled_without_compiler():
    mx.eval(mx.compile(lambda x: mx.exp(x * 1.37) + mx.sin(x) * 1.37 - mx.erf(x) ** 3)(r))


def singular():
    mx.eval(mx.linalg.inv(mx.zeros((4, 4)), stream=mx.cpu))


def unsupported_type():
    half, one = mx.zeros((2, 8, 8), dtype=mx.float16), mx.array([0])
    mx.eval(mx.gather_mm(half, half, lhs_indices=one, rhs_indices=one, stream=mx.cpu))


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


# Until 0.31 MLX does not survive these by itself: the exception of a singular matrix is thrown on the stream's thread and
# ends the process, and buffers are freed while the operations queued before gather_mm still write to them.
is_old = tuple(int(part) for part in mx.__version__.split(".")[:2]) < (0, 32)
calls = [compiled_without_compiler, wrong_shapes, no_such_file, absurd_reshape]
calls += [] if is_old else [singular, unsupported_type]
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
