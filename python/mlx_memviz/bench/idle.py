"""Imported but never started, and after stop: nothing of ours is left in MLX's tables.

Read back from memory, and counted: valgrind counts the instructions of the same program without and with us. The counts
of two Python processes differ by thousands for reasons of their own (hash seeds, addresses), so a program is counted with
few and with many operations and the difference per operation is compared.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import mlx.core as mx

import mlx_memviz
from mlx_memviz import _attach, _native
from mlx_memviz.bench import measure

# Valgrind runs tens of times slower than the machine; a count takes a few seconds.
FEW, MANY = 100, 2100
PROGRAM = """
import sys
import mlx.core as mx
if sys.argv[1] != "without":
    import mlx_memviz
if sys.argv[1] in ("stopped", "recording"):
    recording = mlx_memviz.start()
if sys.argv[1] == "stopped":
    recording.stop()
mx.set_default_device(mx.cpu)
x = mx.ones((8,))
mx.eval(x)
# One evaluation: waiting for a thread spins, by no fixed number of instructions.
mx.eval([x + x for _ in range(int(sys.argv[2]))])
"""


def run(options: measure.Options):
    version = _attach.prepare()
    yield measure.Result("idle", "slots hooked before a start", _native.hooked_slots(version), "", target=0)
    with measure.recording():
        mx.eval(mx.ones((8,)) + 1)
        yield measure.Result(
            "idle", "slots hooked while recording", _native.hooked_slots(version), "", target=1, is_at_least=True
        )
    yield measure.Result("idle", "slots hooked after stop", _native.hooked_slots(version), "", target=0)
    if options.is_quick:
        return
    yield from _instructions()


def _instructions():
    if shutil.which("valgrind") is None:
        yield measure.Result("idle", "instructions per op", float("nan"), "", note="skipped: valgrind is not installed")
        return
    counts = {}
    for mode in ("without", "idle", "stopped", "recording"):
        measure.progress(f"idle: counting instructions, {mode}")
        few, many = _count(mode, FEW), _count(mode, MANY)
        if few is None or many is None:
            yield measure.Result("idle", "instructions per op", float("nan"), "", note="skipped: valgrind failed")
            return
        counts[mode] = (many - few) / (MANY - FEW)
    yield measure.Result("idle", "instructions per op without memviz", counts["without"], "")
    for mode in ("idle", "stopped"):
        ratio = counts[mode] / counts["without"]
        yield measure.Result("idle", f"instructions per op, {mode} / without", ratio, "×", target=1.005)
    added = counts["recording"] - counts["without"]
    yield measure.Result("idle", "instructions added per op while recording", added, "")


def _count(mode: str, ops: int) -> int | None:
    """Instructions of the whole process, as valgrind's lackey counts them."""
    command = [
        "valgrind",
        "--tool=lackey",
        "--basic-counts=yes",
        "--log-fd=2",
        sys.executable,
        "-c",
        PROGRAM,
        mode,
        str(ops),
    ]
    package = pathlib.Path(mlx_memviz.__file__).parents[1]
    environment = dict(os.environ, PYTHONPATH=str(package), PYTHONHASHSEED="0")
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    for line in done.stderr.splitlines():
        if "guest instrs:" in line:
            return int(line.split()[-1].replace(",", ""))
    return None
