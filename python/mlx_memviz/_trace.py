"""Recorded runs: reading them, and asking what `memviz` asks on the command line."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from mlx_memviz import _native


class Trace:
    """A recorded run, immutable. `Recording.trace` gives one, `load` reads one from a file.

    Each report of the command line is a method of the same name; it returns what `--json` prints, as a dict. Options have
    the flags' names and values: `memviz peak FILE --at last --by primitive` is `trace.peak(at="last", by="primitive")`.
    """

    def __init__(self, inner: _native.Trace):
        self._inner = inner

    def __len__(self) -> int:
        """Number of events."""
        return len(self._inner)

    def check(self) -> dict[str, int]:
        """Proves the trace's equations; raises `TraceError` with the first event that breaks one."""
        return self._inner.check()

    def events(self) -> list[dict[str, Any]]:
        """Every event, oldest first; the keys are those of `get_memory_events`."""
        return self._inner.events()

    def live(self) -> list[dict[str, Any]]:
        """Every buffer that exists after the last event, active and cached, by address."""
        return self._inner.live()

    @property
    def dropped(self) -> int:
        """Number of events that fell out of the ring."""
        return self._inner.dropped

    def summary(self) -> str:
        """What used the memory at the peak, for people."""
        return self._inner.summary_text(width=100, color=False)

    def report(self) -> dict[str, Any]:
        """What used the memory at the peak, and which lines built it: the summary as data."""
        return ask("report", [self], {})


def load(path) -> Trace:
    """Reads a recording: ours, or a memory snapshot of PyTorch. Raises `TraceError` if it is none, `OSError` if it cannot be
    read. A file of several processes holds several traces: `load_ranks` gives them all.
    """
    traces = load_ranks(path)
    if len(traces) != 1:
        raise _native.TraceError(f"{path}: holds {len(traces)} processes, expected one; use load_ranks()")
    return traces[0]


def load_ranks(path) -> list[Trace]:
    """Reads a recording of one or several processes, in order of rank."""
    return [Trace(inner) for inner in _native.load(pathlib.Path(path))]


def ask(command: str, traces: list[Trace], options: dict[str, Any]) -> dict[str, Any]:
    """What `memviz COMMAND … --json` prints. An option that is None or False is left to its default."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return json.loads(_native.ask(command, flags, [trace._inner for trace in traces]))
