"""What happens once, before the first recording of a process: self-tests that decide how, and whether, to record."""

import atexit
import importlib
import sys
import threading

from mlx_memviz import _native

_prepared_for: str | None = None


def mlx_core():
    """The loaded `mlx.core`; imports it if the program has not."""
    # Not `import mlx.core; mlx.core`: while it is being imported, `mlx` has no attribute `core` yet.
    return importlib.import_module("mlx.core")


def prepare() -> str:
    """Makes ready to record; returns the version of MLX. Raises `AttachError` if that cannot be done here."""
    global _prepared_for
    if _prepared_for is None:
        mx = mlx_core()
        version = mx.__version__
        _init_frames()
        _native.probe(version)
        _test_layout(mx, version)
        # Both run while the interpreter is whole; a hook must find no interpreter that is half gone.
        atexit.register(_native.shut_down)
        _prepared_for = version
    return _prepared_for


def _init_frames() -> None:
    _native.init_frames(
        hexversion=sys.hexversion,
        # The build decides the layout, also when it runs with the GIL switched on.
        is_free_threaded="t" in getattr(sys, "abiflags", ""),
        is_debug="d" in getattr(sys, "abiflags", ""),
        is_cpython=sys.implementation.name == "cpython",
    )
    mismatches = []

    def probe() -> bool:
        mismatch = _native.matches_public_walk()
        if mismatch is not None:
            mismatches.append(mismatch)
        return mismatch is None

    exec(compile(_native.FRAMES_SELF_TEST, "<mlx_memviz frame test>", "exec"), {"probe": probe})
    if mismatches:
        _native.use_public_walk(f"the self-test failed: {mismatches[0]}")
    # Private, but there in every version that we support; without it threads go by their kernel name.
    _native.set_active_threads(getattr(threading, "_active", {}))


def _test_layout(mx, version: str) -> None:
    """Empty arrays leave no trace in the process: no bytes, nothing in the cache, no stream."""
    test = _native.SelfTest(version)
    try:
        first = mx.array([[], [], []], dtype=mx.int16)
        test.check_leaf([3, 0], 6, 2)
        second = mx.array([[]], dtype=mx.float32)
        test.check_leaf([1, 0], 10, 4)
        del first
        test.check_freed()
        del second
        test.finish()
    finally:
        test.abandon()
