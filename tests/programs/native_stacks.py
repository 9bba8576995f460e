"""C++ frames on request: MLX's functions stand below the Python line that called them, on every array built from Python."""

import harness
import mlx.core as mx

import mlx_memviz

with mlx_memviz.record(native=True, depth=None) as recording:
    for _ in range(50):
        kept = mx.matmul(mx.ones((40, 41)), mx.ones((41, 42)))  # L:kept
        mx.eval(kept)
stacks = [
    event["traceback"]
    for event in recording.events()
    if harness.is_alloc(event) and event["primitive"] == "Matmul" and event["requested"] == 4 * 40 * 42
]
with mlx_memviz.record(stacks="python") as without:
    mx.eval(mx.ones((3,)) + 1)
harness.finish(
    line=harness.marked_line(__file__, "kept"),
    stacks=len(stacks),
    different=len({tuple(frame[1] for frame in stack) for stack in stacks}),
    frames=stacks[-1],
    check=recording.check(),
    native_when_not_asked=sum(frame[0].endswith(".so") for event in without.events() for frame in event["traceback"]),
)
