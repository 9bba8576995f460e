"""A recorded program, replayed: what was live at each point, what a line allocated, the peak between two points."""

import dataclasses
from pathlib import Path

ALLOCS = ("AllocNew", "AllocReuse", "AllocMakeBuffer")
FREES = ("FreeActiveToCache", "FreeActiveToOS", "Release")


def is_alloc(event: dict) -> bool:
    return event["action"] in ALLOCS


def is_free(event: dict) -> bool:
    return event["action"] in FREES


@dataclasses.dataclass(frozen=True)
class Reading:
    """A call that read one of MLX's counters, and the number of events around it: more than one if threads were at work."""

    name: str
    line: int
    value: int | None
    before: int
    after: int


class Recorded:
    """Events of a program whose source marks lines with `# L:marker`."""

    def __init__(self, script: Path, record: dict):
        self.script = script
        self.events: list[dict] = record["events"]
        self.stats: dict = record["stats"]
        self.check: dict = record["check"]
        self.hooked_after: int = record["hooked_after"]
        self.readings = [Reading(**reading) for reading in record["readings"]]
        self._lines = script.read_text().splitlines()
        # active[i]: active bytes after i events; all that lives before the first event was recorded as its base of 0.
        self.active = [0]
        for event in self.events:
            change = event["size"] if is_alloc(event) else -event["size"] if is_free(event) else 0
            self.active.append(self.active[-1] + change)

    def line(self, marker: str) -> int:
        comment = f"# L:{marker}"
        found = [
            number
            for number, text in enumerate(self._lines, 1)
            if comment in text and text.split(comment)[1][:1] in ("", " ")
        ]
        assert len(found) == 1, f"marker {marker} on {len(found)} lines of {self.script}"
        return found[0]

    def own_lines(self, event: dict, key: str = "traceback") -> list[int]:
        """Lines of the program in a stack, outermost first."""
        return [line for file, _, line in event[key] if Path(file) == self.script]

    def is_at(self, event: dict, marker: str) -> bool:
        """Is the marked line among those that built the array?"""
        return self.line(marker) in self.own_lines(event)

    def allocs(self, marker: str, size: int | None = None, since: int = 0, until: int | None = None) -> list[dict]:
        """Allocations of the marked line, of exactly `size` if given, among the events [since, until)."""
        return [
            event
            for event in self.events[since:until]
            if is_alloc(event) and self.is_at(event, marker) and size in (None, event["size"])
        ]

    def live(self, until: int | None = None) -> list[dict]:
        """Allocations whose buffers are active after that many events."""
        buffers = {}
        for event in self.events[:until]:
            if is_alloc(event):
                assert event["address"] not in buffers, f"allocated twice: {event}"
                buffers[event["address"]] = event
            elif is_free(event):
                buffers.pop(event["address"])
        return list(buffers.values())

    def live_at(self, marker: str, until: int | None = None, size: int | None = None) -> list[dict]:
        """Those of the marked line."""
        return [event for event in self.live(until) if self.is_at(event, marker) and size in (None, event["size"])]

    def read(self, start: str, name: str = "get_active_memory") -> list[int]:
        """Numbers of events at each reading on the line that begins with `start`, in order."""
        lines = [number for number, text in enumerate(self._lines, 1) if text.strip().startswith(start)]
        assert len(lines) == 1, f"{len(lines)} lines of {self.script} begin with {start!r}"
        return [reading.before for reading in self.readings if reading.line == lines[0] and reading.name == name]

    def first_evaluated_at(self, marker: str) -> int:
        """Number of events before the first that the marked line triggered."""
        line = self.line(marker)
        return next(n for n, event in enumerate(self.events) if line in self.own_lines(event, "evaluated_at"))

    def frees_of(self, allocs: list[dict]) -> list[dict]:
        """For each allocation the event that freed it; those that live on are left out."""
        wanted, found, current = {event["index"] for event in allocs}, [], {}
        for event in self.events:
            if is_alloc(event):
                current[event["address"]] = event["index"]
            elif is_free(event) and current.pop(event["address"]) in wanted:
                found.append(event)
        return found

    def peak(self, since: int, until: int) -> int:
        """MLX's peak as it would read after `until` events if it was reset after `since`: only allocations raise it."""
        after_allocs = [self.active[n + 1] for n in range(since, until) if is_alloc(self.events[n])]
        return max(after_allocs, default=0)

    def assert_readings_agree(self) -> None:
        """Every number of MLX's that the program read is the number that our events give for that moment."""
        reset_at = [(0, 0)]
        for reading in self.readings:
            moments = range(reading.before, reading.after + 1)
            if reading.name == "reset_peak_memory":
                reset_at.append((reading.before, reading.after))
            elif reading.name == "get_active_memory":
                assert reading.value in {self.active[moment] for moment in moments}, reading
            elif reading.name == "get_peak_memory":
                first, last = reset_at[-1]
                possible = {self.peak(since, until) for since in range(first, last + 1) for until in moments}
                assert reading.value in possible, (reading, possible)
