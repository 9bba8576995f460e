"""The programs of `tests/test_cases.py` under `memviz run`, each recorded once, and what the commands say about them.

A test asks for `recorded("01")`. The recording is at level `buffers`, or at `arrays` where that is asked for; it has every
event. Facts about lines use the programs' own markers, `# L:name`.
"""

import dataclasses
import functools
import json
import tempfile
from pathlib import Path

from running import run_python
from test_cases import CASES

KIB, MIB = 1 << 10, 1 << 20


@dataclasses.dataclass(frozen=True)
class Case:
    """A recorded program."""

    script: Path
    file: Path
    facts: dict

    def line(self, marker: str) -> int:
        """The line of the program that carries `# L:marker`."""
        end = f"# L:{marker}"
        lines = enumerate(self.script.read_text().splitlines(), 1)
        found = [number for number, line in lines if line.split(end)[-1][:1] in ("", " ") and end in line]
        assert len(found) == 1, f"{marker} is on lines {found} of {self.script}"
        return found[0]

    def is_at(self, row: dict, marker: str) -> bool:
        """Whether a row of a report is about that line."""
        return Path(row["file"]).name == self.script.name and row["line"] == self.line(marker)

    def row(self, rows: list[dict], marker: str) -> dict:
        """The one row about that line; one without bytes and buffers when there is none."""
        found = [row for row in rows if self.is_at(row, marker)]
        assert len(found) <= 1, found
        return found[0] if found else {"bytes": 0, "count": 0}

    def ask(self, command: str, *options, status: int = 0) -> dict:
        """What `memviz COMMAND … --json` prints about it."""
        return ask(command, self.file, *options, status=status)


def ask(command: str, *arguments, status: int = 0) -> dict:
    """What `memviz COMMAND … --json` prints; it must end with that exit status."""
    done = run_python(["-m", "mlx_memviz", command, *arguments, "--json"])
    assert done.returncode == status, str(done)
    return json.loads(done.stdout)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="memviz-cases-")


@functools.cache
def recorded(number: str, level: str = "buffers") -> Case:
    """The program of that number, recorded by `memviz run`; once a session."""
    (script,) = CASES.glob(f"{number}_*.py")
    file = Path(_folder().name) / f"{number}-{level}.pickle"
    command = ["-m", "mlx_memviz", "run", "--quiet", "--max-entries", "0", "--level", level, "-o", file, script]
    done = run_python(command, cwd=_folder().name)
    assert done.returncode == 0, str(done)
    assert done.facts["ok"] is True, done.facts
    ask("check", file)
    return Case(script, file, done.facts)
