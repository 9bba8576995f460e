"""Exports, read back by other people's parsers: totals, peaks and top lines are those of our own report."""

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from running import Done, run_python
from venvs import ROOT, Spec

HERE = ROOT / "tests" / "exports"
NPM = ROOT / "target" / "exports_npm"
SHOTS = ROOT / "target" / "screenshots"
CASES = Path(os.environ.get("MEMVIZ_CASES", ROOT.parent / "shared" / "cases"))
READERS = Spec(mlx=None, extras=("duckdb==2.0.1", "polars==2.1.0", "perfetto==0.59.1", "protobuf==7.36.2"))
CASE_NAMES = ("01_lazy_loss_accumulation", "12_missing_eval_train_loop", "20_two_streams")
EXPORTS = ("parquet", "csv", "json", "pftrace", "pb.gz", "speedscope.json", "txt", "pickle")


def memviz(*arguments, **options) -> Done:
    done = run_python(["-m", "mlx_memviz", *arguments], timeout=300, **options)
    assert done.returncode == 0, str(done)
    return done


def program(name: str) -> Path:
    path = ROOT / "demo" / "train_transformer.py" if name == "demo" else CASES / f"{name}.py"
    if not path.is_file():
        pytest.skip(f"no {path}; set MEMVIZ_CASES to the folder with the cases")
    return path


@pytest.fixture(scope="module", params=["demo", *CASE_NAMES])
def exported(request, tmp_path_factory) -> tuple[Path, dict]:
    """Folder with a recording, `run.*`, in every format; and the report of it."""
    folder = tmp_path_factory.mktemp("exports")
    recording = folder / "recorded.pickle"
    memviz("run", "--quiet", "-o", recording, program(request.param), cwd=folder)
    for suffix in EXPORTS:
        memviz("export", recording, "-o", folder / f"run.{suffix}")
    return folder, json.loads(memviz("report", "--json", recording).stdout)


def lines_of(report: dict) -> list:
    rows = report["top_by_bytes"]
    return [[row["file"], row["line"], row["function"], row["bytes"], row["count"]] for row in rows if row["line"]]


def test_duckdb_and_polars_answer_as_the_report_does(exported):
    folder, report = exported
    done = run_python([HERE / "read_tables.py", folder, "run"], READERS)
    assert done.returncode == 0, str(done)
    duckdb, polars = done.facts["duckdb"], done.facts["polars"]
    assert len(polars) == 4
    for question, answer in polars.items():
        assert duckdb[question] == answer, question
    at_peak = [row for row in duckdb["What held the memory at the peak"] if row[0] is not None]
    assert by_size(at_peak) == by_size(lines_of(report))
    events = sum(action["events"] for action in report["actions"])
    end = report["end"]["active_bytes"]
    assert duckdb["sums"][:4] == [events, peak(report), reserved(report), end]
    assert duckdb["csv sums"][:3] == duckdb["sums"][:3]
    assert duckdb["csv sums"][3] == duckdb["sums"][4]
    assert sum(row[-1] for row in duckdb["What each step adds, by line"]) == duckdb["sums"][4]
    misses = sum(row[1] for row in duckdb["Which sizes miss the cache"])
    assert misses == actions(report, "AllocNew")[0]
    frees = ["FreeActiveToCache", "FreeActiveToOS", "Release"]
    assert sum(row[1] for row in duckdb["How long buffers live"]) <= sum(actions(report, name)[0] for name in frees)
    assert duckdb["alone in stacks"] == 0


def test_json_is_the_same_tables(exported):
    folder, report = exported
    document = json.loads((folder / "run.json").read_text())
    assert document["schema"] == 1
    assert len(document["events"]) == sum(action["events"] for action in report["actions"])
    assert max(event["active"] for event in document["events"]) == peak(report)
    assert sum(buffer["size"] for buffer in document["buffers"] if buffer["at_peak"]) <= peak(report)
    last = document["recordings"][0]["checkpoints"][-1]
    assert (last["active"], last["cached"]) == (last["mlx_active"], last["mlx_cached"])


def test_perfettos_classes_read_it(exported):
    folder, report = exported
    facts = run_python([HERE / "read_perfetto.py", folder / "run.pftrace"], READERS).facts
    counters = {name.split("/")[1]: counter for name, counter in facts["counters"].items()}
    assert counters["MLX active memory"]["max"] == peak(report)
    assert counters["MLX reserved memory"]["max"] == reserved(report)
    assert counters["MLX cached memory"]["last"] == report["end"]["cached_bytes"]
    assert {counter["unit"] for counter in counters.values()} == {3}, "bytes"
    evaluations = [one for name, found in facts["slices"].items() if name.endswith("/evaluations") for one in found]
    assert evaluations and all(name.startswith("eval") for name, *_ in evaluations)
    assert sum(notes["bytes"] for *_, notes in evaluations) <= sum(
        actions(report, name)[1] for name in ("AllocNew", "AllocReuse", "AllocMakeBuffer")
    )


@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("npm")),
    reason="no chromium or npm on PATH: apt-get install chromium npm",
)
def test_pprof_and_speedscope_read_it(exported):
    folder, report = exported
    SHOTS.mkdir(parents=True, exist_ok=True)
    command = ["node", HERE / "read_profiles.mjs", folder, "run", shutil.which("chromium"), SHOTS]
    done = subprocess.run(command, cwd=node_modules(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout)
    sums = facts["pprof"]["sums"]
    allocations = [actions(report, name) for name in ("AllocNew", "AllocReuse", "AllocMakeBuffer")]
    assert (sums["alloc_objects"], sums["alloc_space"]) == tuple(map(sum, zip(*allocations, strict=True)))
    assert sums["inuse_space"] == peak(report)
    assert facts["pprof"]["units"] == ["count", "bytes"] * 2
    file, line, _, held, _ = lines_of(report)[0]
    assert facts["pprof"]["byLine"][f"{file}:{line}"] >= held, "the line and what it called"
    assert facts["speedscope"]["errors"] == []
    for profile in facts["speedscope"]["profiles"]:
        assert profile["sum"] == profile["end"]
    assert facts["speedscope"]["profiles"][0]["sum"] == peak(report)
    assert facts["page"]["errors"] == []
    assert set(facts["page"]["texts"]) == {"run.speedscope.json", "run.pb.gz", "run.txt"}
    leaf = f"({Path(file).name}:{line})"
    assert any(leaf in row and f"{held:,}" in before for before, row in table(facts["page"]["texts"]["run.txt"])), leaf


def test_the_snapshot_is_the_recording(exported):
    folder, _ = exported
    assert (folder / "run.pickle").read_bytes() == (folder / "recorded.pickle").read_bytes()


def test_collapsed_stacks_add_up(exported):
    folder, report = exported
    lines = (folder / "run.txt").read_text().splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == peak(report)
    svg = memviz("flamegraph", folder / "recorded.pickle", "-o", "-").stdout
    assert svg.startswith("<?xml") and "</svg>" in svg
    assert f"({peak(report):,} bytes" in svg


def table(text: str) -> list[tuple[str, str]]:
    """Rows of speedscope's table as text: total and self, then the symbol."""
    rows = text.split("Symbol Name\n", 1)[1].splitlines()
    return [(rows[at] + rows[at + 1], rows[at + 2]) for at in range(0, len(rows) - 2, 3)]


def by_size(rows: list) -> list:
    return sorted(rows, key=lambda row: (-row[3], row[0], row[1]))


def peak(report: dict) -> int:
    return report["peak_active"]["active_bytes"]


def reserved(report: dict) -> int:
    return report["peak_reserved"]["active_bytes"] + report["peak_reserved"]["cached_bytes"]


def actions(report: dict, name: str) -> tuple[int, int]:
    """Events and bytes of an action."""
    found = [(one["events"], one["bytes"]) for one in report["actions"] if one["action"] == name]
    return found[0] if found else (0, 0)


@functools.cache
def node_modules() -> Path:
    """Folder with the npm packages of `exports/package.json`."""
    wanted = (HERE / "package.json").read_text()
    stamp = NPM / "complete.json"
    if not stamp.is_file() or stamp.read_text() != wanted:
        NPM.mkdir(parents=True, exist_ok=True)
        (NPM / "package.json").write_text(wanted)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=NPM, check=True, capture_output=True)
        stamp.write_text(wanted)
    return NPM
