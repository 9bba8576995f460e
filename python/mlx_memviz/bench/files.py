"""Writing and reading recordings of 1 and 10 million events: `.memviz` and PyTorch's pickle, beside Python's own readers.

Every reading is a process of its own, because memory is measured by its peak. PyTorch's `_memory_viz.py` takes part where
torch is installed, or where MEMVIZ_MEMORY_VIZ names that file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

from mlx_memviz.bench import measure
from mlx_memviz.bench.program import many_events

MILLION = 1_000_000
# What the child runs on `path`; it prints seconds and the peak of its memory (VmHWM: ru_maxrss would count the parent).
_LOAD = "traces = mlx_memviz.load_ranks(path)"
_REPORT = f"{_LOAD}; traces[0].report()"
_PICKLE = "data = pickle.load(open(path, 'rb'))"
_TORCH = f"{_PICKLE}; text = viz.segsum(data)"
_CHILD = """
import sys, time, pickle, importlib.util, json
path, viz_path = sys.argv[1:]
import mlx_memviz
if viz_path:
    spec = importlib.util.spec_from_file_location("viz", viz_path)
    viz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(viz)
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
before, start = peak(), time.perf_counter()
{work}
print(json.dumps([time.perf_counter() - start, peak() - before]))
"""


def _child(work: str, path: str, viz: str = "") -> tuple[float, float]:
    """Seconds and bytes of `work` in a fresh process."""
    command = [sys.executable, "-c", _CHILD.format(work=work), path, viz]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, size = json.loads(done.stdout)
    return seconds, size


def _rounds(label: str, rounds: int, work: str, path: str, viz: str = "") -> tuple[list[float], float]:
    seconds, sizes = [], []
    for number in range(rounds):
        measure.progress(f"files: {label}, round {number + 1} of {rounds}")
        took, size = _child(work, path, viz)
        seconds.append(took)
        sizes.append(size)
    return seconds, max(sizes)


def _memory_viz() -> str:
    """Path of PyTorch's reader, or "" where there is none."""
    named = os.environ.get("MEMVIZ_MEMORY_VIZ", "")
    spec = None if named else importlib.util.find_spec("torch")
    folders = spec.submodule_search_locations if spec is not None else None
    found = os.path.join(folders[0], "cuda", "_memory_viz.py") if folders else named
    return found if os.path.exists(found) else ""


def _writing(options: measure.Options, trace, path: str) -> list[float]:
    seconds = []
    for _ in range(options.rounds):
        start = time.perf_counter()
        trace._inner.write(path)
        seconds.append(time.perf_counter() - start)
    return seconds


def _ours(options: measure.Options, name: str, count: int, path: str, seconds: list[float]):
    """Rows about a trace file of `count` events."""
    judged = not options.is_quick
    is_small = name == "1 M"
    size_bytes = os.path.getsize(path) / count
    yield measure.Result("files", f"{name}: .memviz on disk", size_bytes, "B/event", target=12 if judged else None)
    speeds = [count / MILLION / each for each in seconds]
    target = 2 if judged else None
    yield measure.result("files", f"{name}: .memviz written", speeds, "M events/s", target=target, is_at_least=True)
    loading, memory = _rounds(f"{name} load", options.rounds, _LOAD, path)
    yield measure.result("files", f"{name}: .memviz loaded", loading, "s")
    limit = 2000 if judged and not is_small else None
    yield measure.Result("files", f"{name}: .memviz loaded, memory", memory / MILLION, "MB", target=limit)
    report, _ = _rounds(f"{name} report", options.rounds, _REPORT, path)
    yield measure.result(
        "files", f"{name}: .memviz peak report", report, "s", target=0.2 if judged and is_small else None
    )


def _pickle(options: measure.Options, name: str, path: str):
    """Rows about a pickle of a million events."""
    judged = not options.is_quick
    loading, memory = _rounds(f"{name} pickle", options.rounds, _LOAD, path)
    yield measure.result("files", f"{name}: .pickle loaded", loading, "s", target=0.25 if judged else None)
    target = 200 if judged else None
    yield measure.Result("files", f"{name}: .pickle loaded, memory", memory / MILLION, "MB", target=target)
    report, _ = _rounds(f"{name} pickle report", options.rounds, _REPORT, path)
    yield measure.result("files", f"{name}: .pickle peak report", report, "s", target=0.5 if judged else None)
    few = min(options.rounds, 3)
    theirs, memory = _rounds(f"{name} pickle.load", few, _PICKLE, path)
    yield measure.result("files", f"{name}: pickle.load", theirs, "s", note=f"{memory / MILLION:,.0f} MB")
    viz = _memory_viz()
    if viz:
        theirs, _ = _rounds(f"{name} _memory_viz", few, _TORCH, path, viz)
        yield measure.result("files", f"{name}: torch _memory_viz segsum", theirs, "s")


def run(options: measure.Options):
    million = MILLION // 20 if options.is_quick else MILLION
    with tempfile.TemporaryDirectory() as folder:
        for name, events in (("1 M", million), ("10 M", 10 * million)):
            measure.progress(f"files: recording {events:,} events")
            with measure.recording(max_entries=None) as recording:
                many_events(events)
            trace = recording.trace
            path = os.path.join(folder, f"{events}.memviz")
            seconds = _writing(options, trace, path)
            yield from _ours(options, name, len(trace), path, seconds)
            if events == million:
                pickle = os.path.join(folder, "x.pickle")
                trace._inner.write(pickle)
                yield from _pickle(options, name, pickle)
            del trace, recording
