#!/usr/bin/env python3
"""Runs the Python tests: brings the environments they need, then calls pytest. `make python` and `make soak` call this.

    python3 tests/run.py [--soak] [arguments of pytest]

Uses the wheel in target/wheels that `make wheel` built, unless $MEMVIZ_WHEEL names another. --soak adds what takes minutes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# For tomllib, and to match the environment of pytest itself.
NEEDED = (3, 11)


def newer_python() -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*sorted((pyenv / "versions").glob("3.11*/bin/python3")), shutil.which("python3.11")]
    for python in filter(None, found):
        return str(python)
    sys.exit("run: this is Python %d.%d and no Python 3.11 was found; expected 3.11 or later" % sys.version_info[:2])


def main() -> int:
    import venvs

    if "MEMVIZ_WHEEL" not in os.environ:
        (wheel,) = (HERE.parent / "target" / "wheels").glob("mlx_memviz-*.whl")
        os.environ["MEMVIZ_WHEEL"] = str(wheel)
    for spec in venvs.matrix():
        venvs.environment(spec)
    arguments = sys.argv[1:]
    marker = [] if "--soak" in arguments else ["-m", "not soak"]
    others = [argument for argument in arguments if argument != "--soak"]
    return subprocess.call([venvs.tools(), "-m", "pytest", HERE, *marker, *others])


if __name__ == "__main__":
    if sys.version_info < NEEDED:
        os.execv(newer_python(), [newer_python(), *sys.argv])
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"run: {error}")
