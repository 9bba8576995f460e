"""Records into a file while it runs, and does what the first argument says. The second argument is the file.

streamed.py WHAT FILE [HANDLER]
"""

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz

what, path = sys.argv[1], sys.argv[2]
handler = sys.argv[3] if len(sys.argv) > 3 else None


def work(count: int) -> list:
    kept = []
    for _ in range(count):
        a = mx.random.normal((64, 64))
        b = a @ a + 1
        mx.eval(b)
        kept.append(b)
    return kept


def for_ever() -> None:
    while True:
        for side in range(16, 80):
            mx.eval(mx.ones((side, side)) @ mx.ones((side, side)))


def python_handler(number, _frame) -> None:
    os.write(1, f"python handler {number}\n".encode())
    sys.exit(5)


if handler == "faulthandler before":
    faulthandler.enable()
if handler == "python":
    signal.signal(signal.SIGTERM, python_handler)
if what == "plain":
    recording = None
elif what == "unwritable":
    try:
        mlx_memviz.start(path)
        raised = None
    except OSError as error:
        raised = [type(error).__name__, str(error)]
    mx.eval(mx.ones((3,)))
    harness.finish(
        raised=raised, hooked=harness.hooked_slots(), is_recording=mlx_memviz._native.is_recording(), points=0
    )
    sys.exit()
else:
    recording = mlx_memviz.start(path)
if handler == "faulthandler after":
    faulthandler.enable()

if what == "for_ever":
    print("ready", flush=True)
    for_ever()

kept = work(2000)
if what == "end":
    print("the end")
elif what == "raise":
    raise ValueError("on purpose")  # L:raise
elif what == "exit":
    sys.exit(3)
elif what == "os_exit":
    time.sleep(0.5)
    os._exit(4)
elif what == "fault":
    ctypes.string_at(0)
elif what == "oom":
    address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (address_space + (1 << 30), resource.RLIM_INFINITY))
    mx.eval(mx.ones((1 << 20, 1 << 20), dtype=mx.uint8))  # L:oom
elif what == "abort":
    os.abort()
elif what.startswith("SIG"):
    number = getattr(signal, what)
    if handler == "evaluating":
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        for_ever()
    os.kill(os.getpid(), number)
    time.sleep(5)
elif what == "fork":
    children = []
    for _ in range(5):
        child = os.fork()
        if child == 0:
            held = mx.array([1, 2, 3])
            if _ % 2:
                sys.exit(0)  # runs the exit handlers
            os.kill(os.getpid(), signal.SIGTERM)
        children.append(os.waitpid(child, 0)[1])
        kept += work(100)
    size = os.path.getsize(path)
    recording.stop()
    harness.finish(children=children, stats=recording.stats(), events=len(recording.trace), check=recording.check())
    sys.stdout.flush()
    os._exit(0)
elif what == "threads":

    def short() -> None:
        with mx.stream(mx.new_stream(mx.cpu)):
            work(20)

    for _ in range(10):
        threads = [threading.Thread(target=short, name=f"short {number}") for number in range(8)]
        visible = {thread.name for thread in threading.enumerate()}
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    recording.stop()
    names = {event["thread"] for event in recording.events()}
    harness.finish(
        visible=sorted(visible),
        named=sum(name.startswith("short") for name in names),
        stats=recording.stats(),
        events=len(recording.trace),
        check=recording.check(),
    )
    sys.stdout.flush()
    os._exit(0)
elif what == "full":
    # A file that may not grow is what a full disk looks like.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 20_000, limits[1]))
    kept = work(10_000)
    if handler == "room again":
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        time.sleep(1.5)
        kept = work(1000)
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recording.stop()
    harness.finish(
        warnings=[[warning.category.__name__, str(warning.message)] for warning in caught],
        stats=recording.stats(),
        events=len(recording.trace),
        check=recording.check(),
    )
elif what == "slow":
    # The queue of 2,000 events fills again and again between two turns of the writer.
    recording.stop()
    with mlx_memviz.record(path, max_entries=2000) as recording:
        at = harness.Checkpoints(recording)
        for _ in range(50):
            kept = work(200)
            at("after work")
            mlx_memviz.step()
    harness.finish(**at.facts(), stats=recording.stats(), events=len(recording.trace), check=recording.check())
elif what == "restart":
    recording.stop()
    fd_count = len(os.listdir("/proc/self/fd"))
    thread_count = len(os.listdir("/proc/self/task"))
    for _ in range(100):
        with mlx_memviz.record(path):
            mx.eval(mx.ones((10,)))
    harness.finish(
        fds=len(os.listdir("/proc/self/fd")) - fd_count,
        threads=len(os.listdir("/proc/self/task")) - thread_count,
        hooked=harness.hooked_slots(),
        sigterm=signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        check=mlx_memviz.load(path).check(),
    )
