"""Recordings: start, stop, look at, save."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pathlib
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from mlx_memviz import _attach, _endings, _native, _notebook, _rank
from mlx_memviz._trace import Trace, load

_running: Recording | None = None
_PICKLE_SUFFIXES = (".pickle", ".pkl")
_SUFFIXES = (".memviz", *_PICKLE_SUFFIXES)


def _checked_path(path, suffixes=_SUFFIXES) -> pathlib.Path:
    path = pathlib.Path(path)
    if path.suffix not in suffixes:
        raise ValueError(
            f"cannot tell the format of {str(path)!r}: its suffix is {path.suffix!r}, expected one of {suffixes}"
        )
    return path


class Recording:
    """One recording. Use it as a context manager, or call `start()` and `stop()`.

    Made by `record`. After `stop()` (or the end of the `with`), everything stays available until the object is dropped.
    """

    def __init__(self, path, options: dict[str, Any], *, ends_at_exit: bool = True):
        # Absolute: the program may change its folder.
        self._path = None if path is None else _rank.with_rank(_checked_path(path)).absolute()
        self._is_streamed = self._path is not None and self._path.suffix == ".memviz"
        self._options = options
        # Else whoever made it ends it before the interpreter is gone.
        self._ends_at_exit = ends_at_exit
        self._stopped: _native.Stopped | None = None
        self._trace: Trace | None = None
        self._header: dict[str, Any] = {}
        self._pid = os.getpid()

    def start(self) -> Recording:
        """Starts recording. Raises `AttachError` if MLX cannot be recorded or a recording runs already."""
        global _running
        if self._header:
            raise _native.AttachError("this recording was started before; make a new one with record()")
        if self._is_streamed and not threading.main_thread().is_alive():
            # The threads that write could not be ended before the interpreter is.
            raise _native.AttachError("the program is ending: a recording that goes into a file cannot begin any more")
        version = _attach.prepare()
        _native.start(version, **self._options, is_streamed=self._is_streamed)
        self._header = {
            "mlx": version,
            "backend": _native.probe(version)["backend"],
            "python": sys.version.split()[0],
            "command": list(sys.argv),
            "start_unix_micros": time.time_ns() // 1000,
            "walker": _native.walker() or "",
            "notes": [],
            "own_folder": os.path.dirname(__file__) + os.sep,
            "rank": _rank.rank(),
        }
        _running = self
        if self._path is not None and self._is_streamed:
            self._begin_file(self._path)
        return self

    def _begin_file(self, path: pathlib.Path) -> None:
        global _running
        try:
            _native.stream_to(path, self._header)
        except BaseException:
            _running = None
            self._header = {}
            _native.stop()
            raise
        _finish_at_exit()

    def stop(self) -> Recording:
        """Stops recording and restores every pointer of MLX; writes the file if a path was given."""
        return self._stop(_endings.Ending())

    def _stop(self, ending: _endings.Ending) -> Recording:
        global _running
        if self._stopped is not None:
            return self
        if self._is_streamed:
            self._stopped, trouble, missing = _native.stop_stream(*ending)
            if trouble is not None:
                warnings.warn(self._loss(trouble, missing), RuntimeWarning, stacklevel=3)
        else:
            self._stopped = _native.stop()
        if _running is self:
            _running = None
        if self._path is not None and not self._is_streamed:
            self.save(self._path)
        return self

    def _loss(self, trouble: str, missing: int) -> str:
        assert self._stopped is not None
        dropped = self._stopped.stats()["dropped"]
        return f"{self._path} took not everything ({trouble}): {missing + dropped} events are missing in it"

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(self, kind, error, trace) -> None:
        # A forked child leaves the block too; the recording is its parent's.
        if os.getpid() == self._pid:
            self._stop(_endings.of_exception(error))

    @property
    def is_running(self) -> bool:
        """Started and not yet stopped."""
        return bool(self._header) and self._stopped is None

    @property
    def trace(self) -> Trace:
        """What was recorded: all of it after `stop()`, else up to now. A `.memviz` file is read back for it."""
        if self._is_streamed and self._header:
            if self._stopped is None:
                _native.flush_stream()
                return load(self._path)
            if self._trace is None:
                self._trace = load(self._path)
            return self._trace
        if self._stopped is None:
            if not self._header:
                raise _native.AttachError(
                    "nothing is recorded yet: call start(), or use the recording in a with statement"
                )
            return Trace(_native.trace(self._full_header()))
        if self._trace is None:
            self._trace = Trace(self._stopped.trace(self._full_header()))
        return self._trace

    def _full_header(self) -> dict[str, Any]:
        return {**self._header, "file_names": _notebook.cell_names()}

    def _repr_html_(self) -> str:
        return self.trace._repr_html_() if self._header else "<div>a recording that was not started</div>"

    def events(self) -> list[dict[str, Any]]:
        """Every event, oldest first; the keys are those of `get_memory_events`."""
        return self.trace.events()

    def live(self) -> list[dict[str, Any]]:
        """Every buffer that exists now (after `stop()`: at its end), active and cached, by address."""
        return self.trace.live()

    def checkpoint(self) -> dict[str, int]:
        """Compares our sums with MLX's counters, now: `active`, `cached`, `mlx_active`, `mlx_cached`, in bytes."""
        return dict(zip(("active", "cached", "mlx_active", "mlx_cached"), _native.checkpoint()))

    def check(self) -> dict[str, int]:
        """Proves the trace's equations; raises `TraceError` with the first event that breaks one."""
        return self.trace.check()

    def stats(self) -> dict[str, Any]:
        """Counters, as `mlx_memviz.stats` gives them."""
        return _native.stats() if self._stopped is None else self._stopped.stats()

    def summary(self) -> str:
        """What used the memory at the peak, for people."""
        return self.trace.summary()

    def save(self, path) -> pathlib.Path:
        """Writes the recording; the suffix chooses the format: `.memviz` is ours, `.pickle` PyTorch's memory snapshot.

        The file is written beside its place and renamed, so a full disk leaves what was there.
        """
        path = _checked_path(path)
        if self._stopped is None:
            _native.snapshot_marker()
        self.trace._inner.write(path)
        return path


@functools.cache
def _finish_at_exit() -> None:
    """Once: a recording that still goes into a file when the program ends is ended, and its threads with it."""
    atexit.register(_end_of_program)


def _end_of_program() -> None:
    recording = running()
    if recording is None or not recording._ends_at_exit:
        return
    if recording._is_streamed and recording._pid == os.getpid():
        recording._stop(_endings.at_exit())


def record(
    path=None,
    *,
    max_entries: int | None = 1_000_000,
    level: str = "buffers",
    depth: int | None = None,
    native: bool = False,
    min_size: int = 0,
    context: str | None = "all",
    stacks: str = "python",
) -> Recording:
    """A recording of what happens to MLX's memory; nothing is patched before it starts or after it stops.

    path:        file to write: `.memviz` while the program runs, readable whatever ends it; `.pickle` at the end, for
                 PyTorch's page; None to write none. Under `mlx.launch` the rank is put into the name: `run.rank0.memviz`.
    max_entries: the last N events are kept, older ones fall out and are counted; None for no limit. 48 bytes each. For a
                 `.memviz` file: how many events may wait for a slow disk; all are kept otherwise.
    level:       "buffers", or "arrays" to see arrays too: created, evaluated, took or shares a buffer, died.
    depth:       innermost Python frames kept of a stack; None for all. Capturing all costs no more than capturing few.
    native:      C++ frames of MLX below the Python frames.
    min_size:    buffers smaller than that many bytes are counted but not listed; totals stay exact.
    context:     which events carry stacks: "all", "alloc", "state" (only buffers alive when a snapshot is taken), None.
    stacks:      PyTorch's word: "python", or "all" for native=True.
    """
    if stacks not in ("python", "all"):
        raise ValueError(f"stacks is {stacks!r}, expected 'python' or 'all'")
    for name, value in (("max_entries", max_entries), ("depth", depth)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1, or None for no limit")
    if min_size < 0:
        raise ValueError(f"min_size is {min_size}, expected bytes, at least 0")
    options = {
        "max_entries": max_entries or 0,
        "min_size": min_size,
        "context": context or "none",
        "level": level,
        "depth": depth or 0,
        "native": native or stacks == "all",
    }
    return Recording(path, options)


def start(path=None, **options) -> Recording:
    """`record(path, **options)`, started. End it with `stop()`."""
    return record(path, **options).start()


def stop() -> Recording:
    """Stops the recording that runs, and returns it."""
    return _require_running().stop()


def running() -> Recording | None:
    """The recording that runs in this process, if one does."""
    return _running if _running is not None and _running.is_running else None


def _require_running() -> Recording:
    recording = running()
    if recording is None:
        raise _native.AttachError("no recording is running; start one with mlx_memviz.start() or `memviz run`")
    return recording


def stats() -> dict[str, Any]:
    """Counters of the recording that runs, exact also where the ring or the filter left events out.

    active, cached, reserved: bytes now; peak_active, peak_reserved: {bytes, seconds, after_events} since it started;
    hit_rate: share of allocations served from the cache, None before the first; by_action: {action: (events, bytes)};
    seen == recorded + dropped + filtered: events; lost: events that could not be recorded; recorder_bytes: our own memory.
    """
    _require_running()
    return _native.stats()


def step() -> int:
    """Marks the end of a step of your loop, and compares with MLX's counters; returns the number of steps so far.

    Does nothing, and returns 0, when no recording runs: marks may stay in a program.
    """
    return _native.step() if running() else 0


def snapshot() -> None:
    """Puts a `Snapshot` marker into the events, as PyTorch does when a snapshot is taken. Does nothing when not recording."""
    if running():
        _native.snapshot_marker()


class annotate(contextlib.ContextDecorator):
    """Names what happens inside: `with annotate("forward"): ...`, or `@annotate("forward")` on a function.

    Events on the same thread carry the innermost name. Costs nothing when no recording runs.
    """

    def __init__(self, name: str):
        self._name = name
        self._open: list[bool] = []

    def __enter__(self) -> annotate:
        is_open = running() is not None
        if is_open:
            _native.annotate_begin(self._name)
        self._open.append(is_open)
        return self

    def __exit__(self, *exception) -> None:
        if self._open.pop() and running():
            _native.annotate_end()

    def __call__(self, function):
        # One object serves every call of the function, on every thread, so each call opens its own.
        @functools.wraps(function)
        def annotated(*args, **kwargs):
            with annotate(self._name):
                return function(*args, **kwargs)

        return annotated


_observers: list[Callable[[str, int, int, int], None]] = []


def attach_oom_observer(observer: Callable[[str, int, int, int], None]) -> Callable[[], None]:
    """Calls `observer(device, requested, active, cached)` after an allocation failed while recording; sizes in bytes.

    The main thread calls it as soon as it runs Python again, usually before the exception is handled. Several may be
    attached; the function that is returned takes this one off again.
    """
    _observers.append(observer)
    _native.set_oom_callback(_tell_observers)

    def detach() -> None:
        if observer in _observers:
            _observers.remove(observer)
        if not _observers:
            _native.set_oom_callback(None)

    return detach


def _tell_observers() -> None:
    recording = running()
    if recording is None:
        return
    for failure in _native.take_failures():
        for observer in tuple(_observers):
            observer(*failure)
