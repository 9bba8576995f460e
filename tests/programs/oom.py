"""MLX asks for more than the process may have. Without `recording`, what it does without us.

oom.py [recording]
"""

import resource
import sys
from pathlib import Path

import harness
import mlx.core as mx

ABSURD = 1 << 40
recording = None
seen = []
if "recording" in sys.argv:
    import mlx_memviz

    recording = mlx_memviz.start()
    at = harness.Checkpoints(recording)
    detach = mlx_memviz.attach_oom_observer(lambda *failure: seen.append(failure))
before = mx.ones((1000,))
mx.eval(before)
address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (address_space + (1 << 30), resource.RLIM_INFINITY))
raised = []
for _ in range(2):
    try:
        mx.eval(mx.ones((ABSURD,), dtype=mx.uint8))  # L:absurd
    except Exception as error:
        raised.append([type(error).__name__, str(error)])
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
works = mx.sum(before + 1).item()
facts = {"raised": raised, "works": works, "mlx_active": mx.get_active_memory()}
if recording is not None:
    at("afterwards")
    detach()
    recording.stop()
    failed = [event for event in recording.events() if event["action"] == "Oom"]
    facts |= at.facts() | {
        "absurd": ABSURD,
        "oom_sizes": [event["size"] for event in failed],
        "oom_lines": [(harness.innermost(event) or [None] * 3)[2] for event in failed],
        "line": harness.marked_line(__file__, "absurd"),
        "observed": seen,
        "check": recording.check(),
    }
harness.finish(**facts)
