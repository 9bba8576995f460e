"""Python stacks: nanoseconds a capture at depth 32, against the public walk and PyTorch's.

Generated functions call a capture on 40 lines; the same functions calling an empty native function are subtracted.
"""

from __future__ import annotations

import importlib
import time

import mlx.core as mx

from mlx_memviz import _attach, _native
from mlx_memviz.bench import measure

DEPTH = 32
LINES = 40
LOOPS = 10


def _compiled(source: str, names: dict):
    exec(compile(source, "<mlx_memviz bench>", "exec"), names)
    return names["run"]


def _lines_at_depth(statement: str, names: dict):
    """`statement` on many lines of one function, in a loop, below a recursion of the full depth."""
    lines = "\n".join(f"        {statement}" for _ in range(LINES))
    source = f"""
def leaf():
    for _ in range({LOOPS}):
{lines}
def down(n):
    if n: down(n - 1)
    else: leaf()
def run():
    down({DEPTH - 4})
"""
    return _compiled(source, names), LINES * LOOPS


def _leaf_line_changes(call):
    return _lines_at_depth("call()", {"call": call})


def _all_frames_new(call):
    """Two chains of different functions take turns."""
    chains = ["def a0(): call()\ndef b0(): call()"]
    chains += [f"def {c}{i}(): {c}{i - 1}()" for i in range(1, DEPTH - 1) for c in "ab"]
    body = f"    a{DEPTH - 2}()\n    b{DEPTH - 2}()\n" * (LINES // 2)
    return _compiled(
        "\n".join(chains) + f"\ndef run():\n  for _ in range({LOOPS}):\n{body}", {"call": call}
    ), LINES * LOOPS


def _differs_near_root(call):
    """One chain, called from a line that changes: every node above it differs."""
    chain = ["def a0(): call()"] + [f"def a{i}(): a{i - 1}()" for i in range(1, DEPTH - 1)]
    body = f"    a{DEPTH - 2}()\n" * LINES
    return _compiled(
        "\n".join(chain) + f"\ndef run():\n  for _ in range({LOOPS}):\n{body}", {"call": call}
    ), LINES * LOOPS


def _after_real_work(call):
    """Right after an addition was built: the caches are not ours."""
    x = mx.ones((8,))
    mx.eval(x)
    return _lines_at_depth("x + x; call()", {"call": call, "x": x})


SCENARIOS = (
    ("leaf line changes", _leaf_line_changes, 60),
    ("all frames new", _all_frames_new, None),
    ("differs near the root", _differs_near_root, None),
    ("after real MLX work", _after_real_work, 150),
)


def _gather_traceback():
    """PyTorch's capture, or why there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None, "torch is not installed"
    gather = getattr(torch._C._profiler, "gather_traceback", None)
    if gather is None:
        return None, f"torch {torch.__version__} has no gather_traceback"
    return (lambda: gather(python=True, script=False, cpp=False)), ""


def run(options: measure.Options):
    _attach.prepare()
    torch_capture, reason = _gather_traceback()
    functions = {"empty": _native.bench_nothing, "memviz": _native.capture, "public": _native.bench_public_capture}
    if torch_capture:
        functions["torch"] = torch_capture
    else:
        yield measure.Result("capture", "torch gather_traceback", float("nan"), "ns", note=f"skipped: {reason}")
    for name, make, target in SCENARIOS:
        programs = {kind: make(function) for kind, function in functions.items()}
        nanos: dict[str, list[float]] = {kind: [] for kind in functions}
        for number in range(options.rounds):
            measure.progress(f"capture: {name}, round {number + 1} of {options.rounds}")
            for kind, (program, calls) in programs.items():
                nanos[kind].append(measure.burst(program, 20, time.thread_time_ns)[0] / calls)
        net = {kind: [a - b for a, b in zip(values, nanos["empty"])] for kind, values in nanos.items()}
        yield measure.result("capture", name, net["memviz"], "ns", target=target)
        for kind, least in (("public", 5), ("torch", 10)):
            if kind in net:
                yield measure.result("capture", f"{name}: {kind}", net[kind], "ns")
                ratios = [a / b for a, b in zip(net[kind], net["memviz"])]
                goal = {"target": least, "is_at_least": True} if target else {}
                yield measure.result("capture", f"{name}: {kind} / memviz", ratios, "×", **goal)
