"""The command `memviz`: parsed in Rust, carried out here where that needs Python."""

import signal
import sys

from mlx_memviz import _native


def main(args: list[str] | None = None) -> int:
    """Runs `memviz ARGS…` and returns the exit code. Recording a program may end the process instead, as the program does."""
    args = sys.argv[1:] if args is None else args
    if args[:1] == ["view"]:
        # The server waits for Ctrl-C in Rust and then ends with 0; Python's handler would raise KeyboardInterrupt after that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    kind, plan = _native.command(["memviz", *args])
    if kind == "run":
        from mlx_memviz import _run

        return _run.run(plan)
    if kind == "doctor":
        from mlx_memviz import _doctor

        return _doctor.run(plan["json"])
    return plan["code"]
