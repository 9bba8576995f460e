"""What the API promises about events and files.

api.py events LEVEL             prints the keys of every event and their types
api.py file FOLDER              writes a recording and a filtered list; keeps the events as a pickle of their own
api.py save_errors FOLDER       tries to write where that cannot work
api.py options                  tries values that no option has
"""

import os
import pickle
import resource
import signal
import sys
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz


def work() -> None:
    kept = [mx.zeros((1000 + number,)) for number in range(20)]
    mx.eval(kept)
    del kept[5:]
    mx.synchronize()
    again = mx.ones((1010,))
    mx.eval(again)
    mx.clear_cache()


def events(level: str) -> None:
    with mlx_memviz.record(level=level) as recording:
        mlx_memviz.step()
        with mlx_memviz.annotate("work"):
            work()
        mlx_memviz.snapshot()
    types = {}
    keys = set()
    for event in recording.events():
        keys.add(tuple(event))
        for key, value in event.items():
            types.setdefault(key, set()).add(type(value).__name__)
    harness.finish(
        documented=mlx_memviz.get_memory_events.__doc__,
        keys=sorted(keys),
        types={key: sorted(names) for key, names in types.items()},
        actions=sorted({event["action"] for event in recording.events()}),
        check=recording.check(),
    )


def file(folder: Path) -> None:
    mx.record_memory_events(max_entries=None)
    work()
    mx.record_memory_events(enabled=False)
    events = mx.get_memory_events()
    large = [event for event in events if event["requested"] > 4 * 1009]
    (folder / "events.bin").write_bytes(pickle.dumps({"all": events, "large": large}))
    mlx_memviz.dump_snapshot(None, folder / "whole.pickle")
    mlx_memviz.dump_snapshot(events, str(folder / "list.pkl"))
    mlx_memviz.dump_snapshot(large, folder / "large.pickle")
    mlx_memviz.dump_snapshot([], folder / "empty.pickle")
    harness.finish(events=len(events), large=len(large))


def raised(call) -> list:
    try:
        call()
    except Exception as error:
        return [type(error).__name__, [kind.__name__ for kind in type(error).__mro__], str(error)]
    return ["nothing", [], ""]


def save_errors(folder: Path) -> None:
    with mlx_memviz.record() as recording:
        work()
    there = folder / "there.pickle"
    recording.save(there)
    before = there.read_bytes()
    ours = folder / "there.memviz"
    recording.save(ours)
    loaded = mlx_memviz.load(ours)
    ours_is_equal = loaded.events() == recording.events() and loaded.check() == recording.check()
    ours_before = ours.read_bytes()
    found = {
        "suffix": raised(lambda: recording.save(folder / "run.txt")),
        "suffix of record": raised(lambda: mlx_memviz.record("run.memory")),
        "suffix of dump_snapshot": raised(lambda: mlx_memviz.dump_snapshot([], folder / "run.memviz")),
        "missing folder": raised(lambda: recording.save(folder / "missing" / "run.pickle")),
        "folder": raised(lambda: recording.save(folder / "folder.pickle")),
    }
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    found["read-only folder"] = raised(lambda: recording.save(closed / "run.pickle"))
    if is_root:
        os.seteuid(0)
    # A file size limit fails a write in the middle, as a full disk does.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    found["full disk"] = raised(lambda: recording.save(there))
    found["full disk, .memviz"] = raised(lambda: recording.save(ours))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    left = sorted(path.name for path in folder.rglob("*"))
    harness.finish(
        raised=found,
        same=there.read_bytes() == before and ours.read_bytes() == ours_before,
        ours_is_equal=ours_is_equal,
        lengths=[len(before), len(ours_before)],
        left=left,
    )


def options() -> None:
    wrong = {
        "level": {"level": "array"},
        "context": {"context": "everything"},
        "stacks": {"stacks": "c++"},
        "max_entries": {"max_entries": 0},
        "depth": {"depth": -1},
        "min_size": {"min_size": -5},
    }
    found = {name: raised(lambda given=given: mlx_memviz.start(**given)) for name, given in wrong.items()}
    unknown = raised(lambda: mlx_memviz.start(maximum=3))
    positional = raised(lambda: mlx_memviz.record(None, 1000))
    with mlx_memviz.record() as recording:
        work()
    harness.finish(
        raised=found,
        values=wrong,
        unknown=unknown,
        positional=positional,
        works=recording.check(),
        hooked=harness.hooked_slots(),
    )


what = sys.argv[1]
if what == "events":
    events(sys.argv[2])
elif what == "options":
    options()
else:
    {"file": file, "save_errors": save_errors}[what](Path(sys.argv[2]))
