"""Ends while a recording runs, in the way that the argument says. Without `recording`, what it does without us.

exit_while_recording.py end|sys_exit|exception|daemon|os_exit [recording]
"""

import os
import sys
import threading

import mlx.core as mx

how = sys.argv[1]
if "recording" in sys.argv:
    import mlx_memviz

    recording = mlx_memviz.start()
kept = [mx.random.normal((100, 100)) @ mx.ones((100, 100)) for _ in range(10)]
mx.eval(kept)
flying = [array + 1 for array in kept]
mx.async_eval(flying)


def forever(started: threading.Event) -> None:
    while True:
        mx.eval(mx.ones((50, 50)) + 1)
        started.set()


if how == "daemon":
    for _ in range(2):
        started = threading.Event()
        threading.Thread(target=forever, args=(started,), daemon=True).start()
        started.wait()
print("the end is near", flush=True)
if how == "sys_exit":
    sys.exit(3)
if how == "exception":
    raise ValueError("on purpose")
if how == "os_exit":
    os._exit(4)
