"""Another interpreter lives and dies while recording; arrays of the main one keep their lines."""

import sys

import harness
import mlx.core as mx

import mlx_memviz

if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters


def build(number):
    mx.eval(mx.zeros((2000 + number,)))  # L:build


recording = mlx_memviz.start()
at = harness.Checkpoints(recording)
build(0)
identity = interpreters.create()
build(1)
interpreters.run_string(identity, "import json; text = json.dumps([frame for frame in range(100)])")
build(2)
interpreters.destroy(identity)
build(3)
at("destroyed")
recording.stop()
arrays = [event for event in recording.events() if harness.is_alloc(event) and 8000 <= event["requested"] < 8016]
harness.finish(
    **at.facts(),
    arrays=len(arrays),
    lines=sorted({harness.innermost(event)[2] for event in arrays}),
    line=harness.marked_line(__file__, "build"),
    check=recording.check(),
)
