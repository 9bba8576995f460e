"""The Rust crate seen from Python: `lib` (ctypes), and the two walks as lists of (id(code), lasti), innermost first."""

import ctypes
import os
import sys

LIBRARY = os.environ["PYFRAMES_PROBE"]
lib = ctypes.PyDLL(LIBRARY)
without_gil = ctypes.CDLL(LIBRARY)  # ctypes lets the GIL go round each call
lib.probe_message.restype = ctypes.c_char_p
lib.probe_self_test_source.restype = ctypes.c_char_p
lib.probe_make_hit.restype = ctypes.py_object
lib.probe_dump.restype = ctypes.c_size_t
lib.probe_memory_bytes.restype = ctypes.c_size_t
lib.probe_bench.restype = ctypes.c_double
for name in ("capture", "capture_public", "node_count", "last", "foreign_thread"):
    getattr(lib, "probe_" + name).restype = ctypes.c_uint32
without_gil.probe_capture.restype = ctypes.c_uint32
for name in ("matches", "holds_gil"):
    getattr(lib, "probe_" + name).restype = ctypes.c_bool
without_gil.probe_holds_gil.restype = ctypes.c_bool

ROOM = 20_000
_codes = (ctypes.c_size_t * ROOM)()
_lastis = (ctypes.c_int32 * ROOM)()
RAW, PUBLIC, ERROR = 0, 1, -1


def is_free_threaded():
    import sysconfig

    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def init(layout="", hexversion=sys.hexversion):
    flags = is_free_threaded() | ("d" in sys.abiflags) << 1 | (sys.implementation.name != "cpython") << 2
    return lib.probe_init(ctypes.c_uint32(hexversion), flags, layout.encode())


def message():
    return lib.probe_message().decode()


def start():
    """Initialises and insists on the walker that this build should have."""
    walker = init()
    expected = PUBLIC if is_free_threaded() or "d" in sys.abiflags else RAW
    assert walker == expected, message()
    return message()


def stack(node):
    n = lib.probe_dump(ctypes.c_uint32(node), _codes, _lastis, ctypes.c_size_t(ROOM))
    return list(zip(_codes[:n], _lastis[:n]))


def site(node):
    lib.probe_site(ctypes.c_uint32(node))
    file, function, line, column = message().rsplit("|", 3)
    return file, function, int(line), int(column)


def python_stack(depth=1):
    frame, frames = sys._getframe(depth), []
    while frame is not None:
        frames.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return frames
