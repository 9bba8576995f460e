"""Runs PyTorch's torch/cuda/_memory_viz.py over a snapshot, without torch. Prints one JSON line; exit code 1 on a failure.

usage: reader_a.py PICKLE [--expect-active BYTES] [--expect-reserved BYTES]
"""

import argparse
import contextlib
import importlib.util
import io
import json
import pathlib
import pickle
import sys

import torch_files


def load_reader():
    spec = importlib.util.spec_from_file_location("_memory_viz", torch_files.reader())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pickle", type=pathlib.Path)
    parser.add_argument("--expect-active", type=int)
    parser.add_argument("--expect-reserved", type=int)
    options = parser.parse_args()
    data = options.pickle.read_bytes()
    viz = load_reader()
    calls = {
        "stats": viz.segsum,
        "trace": viz.trace,
        "memory": lambda snapshot: viz.memory(snapshot, lambda lines, **_: lines),
        "segments": lambda snapshot: viz.segments(snapshot, lambda lines, **_: lines),
        "trace_plot": viz.trace_plot,
        "segment_plot": viz.segment_plot,
    }
    result, wrong = {}, []
    for name, call in calls.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                text = call(pickle.loads(data))
            result[name] = {"chars": len(text), "head": text[:80]}
        except Exception as error:  # whatever the reader dislikes is the finding
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    snapshot = pickle.loads(data)
    sums = {key: sum(segment[key] for segment in snapshot["segments"]) for key in ("active_size", "total_size")}
    for key, expected in (("active_size", options.expect_active), ("total_size", options.expect_reserved)):
        if expected is not None and sums[key] != expected:
            wrong.append(f"{key} is {sums[key]}; expected {expected}")
    print(json.dumps({"ok": not wrong, "problems": wrong, **sums, "calls": result}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
