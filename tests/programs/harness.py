"""What the programs of this folder share: exact checkpoints, and one line of JSON at the end.

A program runs in a process of its own, so it may do anything to it. It measures and prints; the tests judge.
"""

import json
import sys
from pathlib import Path

import mlx.core as mx

from mlx_memviz import _native


def hooked_slots() -> int:
    """Pointers of MLX that lead to our hooks, read back from memory."""
    return _native.hooked_slots(mx.__version__)


class Checkpoints:
    """Compares a recording with MLX's counters at named points, and keeps the points that differ."""

    def __init__(self, recording):
        self._recording = recording
        self.points = 0
        self.mismatches = []

    def __call__(self, name: str) -> None:
        seen = self._recording.checkpoint()
        self.points += 1
        if seen["active"] != seen["mlx_active"] or seen["cached"] != seen["mlx_cached"]:
            self.mismatches.append([name, seen])

    def facts(self) -> dict:
        return {"points": self.points, "mismatches": self.mismatches}


def marked_line(file: str, marker: str) -> int:
    """The line of `file` that carries the comment `# L:marker`."""
    ends = f"# L:{marker}"
    lines = Path(file).read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if ends in line and line.split(ends)[1][:1] in ("", " ")]
    if len(found) != 1:
        raise ValueError(f"marker {marker} is on {len(found)} lines of {file}, expected 1")
    return found[0]


def is_alloc(event: dict) -> bool:
    return event["action"] in ("AllocNew", "AllocReuse", "AllocMakeBuffer")


def innermost(event: dict) -> tuple[str, str, int] | None:
    """(file, function, line) of the innermost frame of the line that built the array."""
    return event["traceback"][-1] if event["traceback"] else None


def finish(**facts) -> None:
    """Prints the program's facts, as the last line of its output."""
    print(json.dumps(facts))
    sys.stdout.flush()
