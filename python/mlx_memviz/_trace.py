"""Recorded runs: reading them, and asking what `memviz` asks on the command line."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Literal

from mlx_memviz import _native

if TYPE_CHECKING:
    from mlx_memviz._viewer import Viewer


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

    @property
    def ending(self) -> tuple[str, str, tuple[str, str, int] | None]:
        """How the recording ended: (kind, detail, place). kind is "stopped", "exception", "signal", "cut" for a file without
        its last chunk, or "unknown"; place is the innermost (file, function, line), None where it is not known.
        """
        return self._inner.ending

    @property
    def rank(self) -> int | None:
        """Position among the processes of an `mlx.launch` run, None for a run of one process."""
        return self._inner.rank

    def summary(self) -> str:
        """What used the memory at the peak, for people."""
        return self._inner.summary_text(width=100, color=False)

    def report(self) -> dict[str, Any]:
        """What used the memory at the peak, and which lines built it: the summary as data."""
        return ask("report", [self], {})

    def peak(
        self,
        *,
        reserved: bool = False,
        at: str | int | None = None,
        by: Literal["line", "module", "primitive", "dtype", "shape", "annotation", "stack"] = "line",
        frames: Literal["user", "all"] = "user",
        top: int = 10,
    ) -> dict[str, Any]:
        """What was held when memory was highest, or at another moment, in bytes and buffers.

        reserved  the highest active plus cached bytes, not the highest active ones
        at        another moment: "start", "last", a time ("1.5s"), or a step (12), of which the highest moment is taken
        by        what a row stands for
        frames    "all" adds `tree`: every call, each with all that it called
        top       number of rows
        """
        options = {"reserved": reserved, "at": at, "by": by, "frames": frames, "top": top}
        return ask("peak", [self], options)

    def growth(self, *, every: str | None = None, limit: str | int | None = None, top: int = 5) -> dict[str, Any]:
        """Whether memory grows from step to step, which lines do it, and when it would end.

        every  what begins a step: "step" (marked by `step()`), "eval" (an evaluation from the same line and callers), or a
               time such as "500ms"; None is "step" if there are enough of them, else "eval"
        limit  bytes at which the run would end ("16GB"); None is the memory of this machine
        top    number of lines
        """
        return ask("growth", [self], {"every": every, "limit": limit, "top": top})

    def leaks(self, *, idle: str | None = None, fail_over: str | int | None = None, top: int = 10) -> dict[str, Any]:
        """What is alive at the end and was not at the start, by the line that built it, with number and age.

        idle       two other moments at rest, "10:50" or "1.5s:last"; a step is its end
        fail_over  size ("1MB"); `is_over` says whether more is left
        top        number of lines
        """
        return ask("leaks", [self], {"idle": idle, "fail_over": fail_over, "top": top})

    def export(self, path, format: str | None = None) -> list[pathlib.Path]:
        """Writes the trace for another tool: torch, parquet, perfetto, pprof, speedscope, collapsed, csv or json. The name says
        the format unless `format` does. Returns the files written: tables are three.
        """
        answer = ask("export", [self], {"output": os.fspath(path), "format": format})
        return [pathlib.Path(file["path"]) for file in answer["written"]]

    def flamegraph(
        self,
        path=None,
        *,
        at: str | int = "peak",
        of: str = "live",
        count: bool = False,
        inverted: bool = False,
        frames: str = "user",
        format: str | None = None,
    ) -> str | None:
        """Memory by call stack, as svg, collapsed or speedscope: written to `path`, or returned as text without one."""
        options = {"at": at, "of": of, "count": count, "inverted": inverted, "frames": frames, "format": format}
        output = "-" if path is None else os.fspath(path)
        return ask("flamegraph", [self], {"output": output, **options}).get("text")

    def pinned(self, *, at: str | int = "last") -> dict[str, Any]:
        """What keeps memory alive: small views, arrays that wait for an evaluation, buffers without arrays. Needs a recording
        of level "arrays".
        """
        return ask("pinned", [self], {"at": at})

    def retrace(self, *, at: str | int = "last") -> dict[str, Any]:
        """Compiled functions that were traced again, and what each trace keeps. Needs a recording of level "arrays"."""
        return ask("retrace", [self], {"at": at})

    def cache(self) -> dict[str, Any]:
        """How well MLX's buffer cache works, and what `mx.clear_cache()` would give back."""
        return ask("cache", [self], {})

    def replay(
        self,
        *,
        policy: str | None = None,
        device: str | None = None,
        cache_limit: str | int | None = None,
        memory_limit: str | int | None = None,
        clear_every: Literal["step"] | None = None,
        sweep: str | None = None,
        output=None,
    ) -> dict[str, Any]:
        """The same run under another policy, with other limits, or on another machine.

        policy        "cpu" (that of the recorded MLX), "cpu-0.32", "cpu-0.28", "metal" or "cuda"; to compare "pytorch",
                      "expandable" or "ideal"; None is the recording's own
        device        machine: "m3-16gb", or memory and working set, "16GiB:11GiB"
        cache_limit   as `mx.set_cache_limit` at the start ("1GiB"); limits that the program sets are left out then
        memory_limit  as `mx.set_memory_limit` at the start
        clear_every   "step": `mx.clear_cache()` at the end of every marked step
        sweep         cache limits to try, "cache-limit=0..4GiB"; `output` draws them as SVG
        """
        options = {"policy": policy, "device": device, "cache_limit": cache_limit, "memory_limit": memory_limit}
        path = None if output is None else os.fspath(output)
        return ask("replay", [self], {**options, "clear_every": clear_every, "sweep": sweep, "output": path})

    def advise(self, *, device: str | None = None) -> dict[str, Any]:
        """What to do about the cache: the limit to set, what each halving of it costs, what defeats the cache, and whether the
        run fits `device` ("m3-16gb").
        """
        return ask("advise", [self], {"device": device})

    def diff(
        self, other: Trace | None = None, *, at: str | None = None, fail_over: str | int | None = None
    ) -> dict[str, Any]:
        """What `other` holds more or less than this run: peak against peak and end against end, or at two moments
        ("5:50"); without `other`, two moments of this run. `is_over` says whether memory grew by more than `fail_over`.
        """
        traces = [self] if other is None else [self, other]
        return ask("diff", traces, {"at": at, "fail_over": fail_over})

    def view(self, *others: Trace, port: int | None = None, open_browser: bool = True) -> Viewer:
        """Shows this trace, and others beside it, in the browser. Returns the running viewer, which ends with this process."""
        from mlx_memviz import _viewer

        return _viewer.view(self, *others, port=port, open_browser=open_browser)

    def write_html(self, path, *others: Trace) -> pathlib.Path:
        """Writes one HTML file that shows this trace, and others beside it, without memviz and without a network."""
        from mlx_memviz import _viewer

        return _viewer.write_html((self, *others), path)

    def _repr_html_(self) -> str:
        from mlx_memviz import _html

        return _html.trace_html(self)


def merge(traces: list[Trace], path) -> pathlib.Path:
    """Writes the processes of a distributed run into one recording, .memviz or .pickle, in order of rank."""
    answer = ask("merge", traces, {"output": os.fspath(path)})
    return pathlib.Path(answer["written"][0]["path"])


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
