"""Runs the programs of `tests/programs`, each in a process of its own, and reads what they print."""

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest
import venvs

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclasses.dataclass(frozen=True)
class Done:
    """A process that ended."""

    command: list[str]
    returncode: int
    stdout: str
    stderr: str

    @property
    def facts(self) -> dict:
        """The JSON of its last line."""
        lines = self.stdout.strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (IndexError, json.JSONDecodeError):
            raise AssertionError(f"no JSON at the end of what it printed\n{self}") from None

    def __str__(self) -> str:
        tail = "\n".join(self.stderr.splitlines()[-40:])
        return f"{' '.join(self.command)}\nexit status {self.returncode}\nstdout: {self.stdout[-2000:]}\nstderr: {tail}"


def run_python(
    arguments: list, spec: venvs.Spec = venvs.Spec(), *, cwd=None, env: dict | None = None, timeout: float = 120
) -> Done:
    """Runs Python of an environment to its end, whatever its exit status."""
    try:
        python = venvs.environment(spec)
    except venvs.MissingPython as error:
        pytest.skip(str(error))
    command = [str(python), *(str(argument) for argument in arguments)]
    # Nothing of the outer process may decide how the program runs.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MLX_", "LD_"))}
    environment = {**inherited, "PYTHONFAULTHANDLER": "1", **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout)
    return Done(command, done.returncode, done.stdout, done.stderr)


def run_program(name: str, *arguments, spec: venvs.Spec = venvs.Spec(), **options) -> dict:
    """Runs a program of this folder, which must succeed; returns its facts."""
    done = run_python([PROGRAMS / name, *arguments], spec, **options)
    assert done.returncode == 0, str(done)
    return done.facts
