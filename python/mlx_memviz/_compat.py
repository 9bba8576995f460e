"""The names of the recorder in the MLX fork: `mx.record_memory_events`, `mx.get_memory_events`, `mlx._memory_viz`.

Scripts written for the fork run unchanged after `import mlx_memviz`, or under `memviz run`. A name that MLX itself has is
left alone.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any

from mlx_memviz import _native, _recording

_last: _recording.Recording | None = None
_is_ours = False


def record_memory_events(enabled: bool = True, max_entries: int | None = 1_000_000) -> None:
    """Turns the recording of memory events on or off. The last `max_entries` events are kept, None for all.

    Events stay available to `get_memory_events` after turning off, until recording is turned on again. Under `memviz run`,
    or inside `record()`, the recording that runs already is used and goes on.
    """
    global _last, _is_ours
    running = _recording.running()
    if enabled:
        _is_ours = running is None or (_is_ours and running is _last)
        _last = running or _recording.start(max_entries=max_entries)
    elif running is not None and running is _last and _is_ours:
        running.stop()


def _source() -> _recording.Recording:
    recording = _recording.running() or _last
    if recording is None:
        raise _native.AttachError("no events: call mx.record_memory_events(enabled=True) first")
    return recording


def get_memory_events() -> list[dict[str, Any]]:
    """The recorded events, oldest first, as dicts with these keys:

    action        "AllocNew", "AllocReuse", "AllocMakeBuffer", "FreeActiveToCache", "FreeActiveToOS", "FreeCacheToOS",
                  "Release", "Oom", "Snapshot"; "FilteredNet" where min_size left events out: `address` and `size` are then
                  the net change of active and cached bytes
    index         number of the event, counted from the start of the recording
    time_us       microseconds since 1970
    address       of the buffer
    size          bytes that MLX counts for the buffer
    requested     bytes that were asked for
    stream        index of the MLX stream, on allocations and frees; None for arrays made from Python data
    device        "cpu:0", "gpu:0": of that stream
    memory        "unified" if host and device share it (CUDA), "scalar pool" if it is a place in CUDA's pool for scalars, else ""
    moved         half of a move: a buffer left for another address ("FreeActiveToOS") or came there ("AllocNew")
    thread        name of the thread; "" for evictions, which MLX does inside other calls
    primitive     as MLX names it, "Add"; "" for arrays made from Python data
    is_temporary  a temporary inside the primitive, not its output
    dtype, shape  of the array that took the buffer; "" and None where no array did
    traceback     line that built the array: [(file, function, line), ...], outermost first
    evaluated_at  likewise: what made it happen; for a free, where it was freed
    step          number of the step, None when `step()` is not used
    annotation    innermost `annotate` name, or None
    array         level "arrays": id of the array
    inputs        level "arrays", "ArrayInputs": ids of arrays that the array is computed from
    """
    return _source().events()


def dump_snapshot(events: list[dict[str, Any]] | None, path) -> None:
    """Writes a pickle that PyTorch's memory_viz page opens.

    events: what `get_memory_events` returned, possibly with events taken out; None for the recording itself, which also
    knows which buffers existed before it began and how it compares with MLX's counters.
    """
    path = _recording._checked_path(path, _recording._PICKLE_SUFFIXES)
    trace = _source().trace._inner if events is None else _native.trace_from_events(events)
    trace.write_torch(path)


_NAMES = {"record_memory_events": record_memory_events, "get_memory_events": get_memory_events}


def _add_names(mx) -> None:
    for name, function in _NAMES.items():
        if not hasattr(mx, name):
            setattr(mx, name, function)


class _Loaded(importlib.abc.Loader):
    """Loads `mlx.core` with its own loader, then tells who waits for it."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        module.__loader__ = module.__spec__.loader = self._loader
        for callback in _when_loaded:
            callback(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _CoreFinder(importlib.abc.MetaPathFinder):
    """Sees `mlx.core` being imported; finds nothing itself."""

    def find_spec(self, fullname, path, target=None):
        if fullname != "mlx.core":
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _Loaded(spec.loader)
                    return spec
        return None


class _MemoryVizFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last in the line: provides `mlx._memory_viz` only if MLX has none."""

    def find_spec(self, fullname, path, target=None):
        if fullname == "mlx._memory_viz":
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module):
        module.__doc__ = "Provided by mlx_memviz."
        module.dump_snapshot = dump_snapshot


_when_loaded = [_add_names]


def when_loaded(callback) -> None:
    """Calls `callback(mlx.core)` as soon as it is imported, or now if it is."""
    _when_loaded.append(callback)
    if "mlx.core" in sys.modules:
        callback(sys.modules["mlx.core"])


def install() -> None:
    """Adds the names to `mlx.core`, now or when it is imported."""
    if "mlx.core" in sys.modules:
        _add_names(sys.modules["mlx.core"])
    sys.meta_path.insert(0, _CoreFinder())
    sys.meta_path.append(_MemoryVizFinder())
