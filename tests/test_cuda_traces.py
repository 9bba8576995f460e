"""What our reports say of two small runs on an H200: a training run and a generation whose KV cache grows.

The recordings are `tests/traces/cuda_*.memviz`, made by `ci/gpu`; machines that run the tests have no GPU. Sums and flags
are checked by `crates/memviz-format/tests/stored.rs`; here are the lines.
"""

import json
import pathlib

from running import run_python

TRACES = pathlib.Path(__file__).parent / "traces"


def lines_of(name):
    checked = run_python(["-m", "mlx_memviz", "check", TRACES / name])
    assert checked.returncode == 0, str(checked)
    report = json.loads(run_python(["-m", "mlx_memviz", "peak", TRACES / name, "--json"]).stdout)
    groups = [(pathlib.Path(group["file"]).name, group["line"], group["bytes"]) for group in report["groups"]]
    assert sum(group["bytes"] for group in report["groups"]) == report["total"]["bytes"]
    return groups, report


def test_training_names_the_lines_of_the_peak():
    groups, report = lines_of("cuda_train.memviz")
    assert groups[:3] == [("model.py", 39, 1365016), ("model.py", 40, 864232), ("model.py", 20, 425992)]
    assert report["evaluated_at"]["line"] == 41
    assert report["moment"]["step"] == 2


def test_generation_names_the_lines_that_grow():
    groups, report = lines_of("cuda_generate.memviz")
    assert groups[:3] == [("generate.py", 13, 65536), ("generate.py", 19, 24576), ("generate.py", 20, 24576)]
    assert report["evaluated_at"]["line"] == 23
    assert report["moment"]["step"] == 20
