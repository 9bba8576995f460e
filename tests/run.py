"""Runs the Python tests: makes their environments first. `--soak` runs the long ones; further arguments go to
pytest, paths among them (`tests/test_zoo.py`) instead of all tests.

All tests run in two processes: much of their time is waiting for programs that they start. The long ones run alone.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    arguments = sys.argv[1:]
    soak = "--soak" in arguments
    arguments = [argument for argument in arguments if argument != "--soak"]
    wheels = sorted((ROOT / "target" / "wheels").glob("mlx_memviz-*-abi3-*.whl"))
    if len(wheels) != 1:
        print(f"tests: found {len(wheels)} wheels in target/wheels, expected 1: run `make wheel`", file=sys.stderr)
        return 2
    os.environ["MEMVIZ_WHEEL"] = str(wheels[0])
    if not any(argument.startswith("tests/") for argument in arguments):
        arguments.append(str(ROOT / "tests"))
        if not soak:
            arguments += ["-n", "2", "--dist", "worksteal"]
    # `nohup` and some runners ignore SIGHUP, and every child inherits that; the tests of signals need its default.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    command = [sys.executable, "-m", "pytest", "-m", "soak" if soak else "not soak", *arguments]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
