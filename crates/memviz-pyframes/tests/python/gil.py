"""Who holds the GIL: this thread, a foreign one, this one while it let go, and all of that with sub-interpreters."""

import sys
import threading

import probe

print(probe.start())


def state(where):
    assert probe.lib.probe_holds_gil(), where
    assert probe.lib.probe_capture() != 0, where
    assert probe.lib.probe_foreign_thread() == 0, where
    assert not probe.without_gil.probe_holds_gil(), where
    assert probe.without_gil.probe_capture() == 0, where


state("main thread")
thread = threading.Thread(target=state, args=("second thread",))
thread.start()
thread.join()

try:
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
    else:
        import _xxsubinterpreters as interpreters
except ImportError as error:
    print("SKIP sub-interpreters:", error)
    sys.exit()

SUB = """
import ctypes, os
lib = ctypes.PyDLL(os.environ["PYFRAMES_PROBE"])
lib.probe_holds_gil.restype = ctypes.c_bool
assert not lib.probe_holds_gil()
assert lib.probe_capture() == 0
assert lib.probe_capture_public() == 0
ran = 1
"""
if sys.version_info >= (3, 12):
    # ctypes is not yet for interpreters with their own GIL.
    new = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
else:
    new = interpreters.create(isolated=False)
state("after a sub-interpreter was created")
error = interpreters.run_string(new, SUB)
assert error is None, error
state("after it ran")
interpreters.destroy(new)
state("after it was destroyed")
print("sub-interpreter ok")
