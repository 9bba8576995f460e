"""`memviz run` under `mlx.launch`: a recording for each rank, merged, in every reader and in PyTorch's page."""

import json
import os
import pickle
import socket
import subprocess
from pathlib import Path

import pytest
from running import PROGRAMS, run_python
from test_page import SHOTS, needs_browser, run_tool
from venvs import Spec, environment

RANKS = 4


def free_ports(count: int) -> int:
    """First of `count` free ports in a row, as far as one can know."""
    for first in range(20_000 + os.getpid() % 20_000, 60_000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


@pytest.fixture(scope="module")
def merged(tmp_path_factory) -> Path:
    """Folder with `run.rank0.pickle` to `run.rank3.pickle`, and these merged as .pickle and .memviz."""
    folder = tmp_path_factory.mktemp("ranks")
    python = environment(Spec())
    recorded = [python, "-m", "mlx_memviz", "run", "--quiet", "-o", "run.pickle", PROGRAMS / "ring.py"]
    launch = [python.parent / "mlx.launch", "-n", RANKS, "--backend", "ring", "-p", free_ports(RANKS), "--", *recorded]
    done = subprocess.run(list(map(str, launch)), cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.split("\n"))[-RANKS:] == [f"rank {rank} of {RANKS}" for rank in range(RANKS)], done.stderr
    files = [folder / f"run.rank{rank}.pickle" for rank in range(RANKS)]
    assert sorted(folder.glob("*.pickle")) == files
    for suffix in ("pickle", "memviz"):
        text = memviz("merge", *reversed(files), "-o", folder / f"merged.{suffix}")
        assert "4 processes, ranks 0 to 3" in text
    return folder


def memviz(*arguments) -> str:
    done = run_python(["-m", "mlx_memviz", *arguments])
    assert done.returncode == 0, str(done)
    return done.stdout


def test_each_rank_holds_its_own_and_adds_up(merged):
    expected_line = 1 + (PROGRAMS / "ring.py").read_text().splitlines().index(
        "    weights = mx.random.normal((256, 256 * (rank + 1)))  # L:weights"
    )
    for file in ("merged.pickle", "merged.memviz"):
        assert memviz("check", merged / file).count("ok: ") == RANKS
        for rank in range(RANKS):
            report = json.loads(memviz("report", merged / file, "--rank", rank, "--json"))
            alone = json.loads(memviz("report", merged / f"run.rank{rank}.pickle", "--json"))
            assert report["peak_active"] == alone["peak_active"]
            assert report["pid"] == alone["pid"]
            weights = [row for row in report["top_by_bytes"] if row["line"] == expected_line]
            assert weights and weights[0]["bytes"] >= 256 * 256 * (rank + 1) * 4
        highest = json.loads(memviz("report", merged / file, "--json"))
        assert highest["pid"] == json.loads(memviz("report", merged / "run.rank3.pickle", "--json"))["pid"]


def test_ranks_stand_on_one_clock(merged):
    snapshot = pickle.loads((merged / "merged.pickle").read_bytes())
    traces = snapshot["device_traces"]
    assert len(traces) == RANKS
    assert {segment["device"] for segment in snapshot["segments"]} <= set(range(RANKS))
    starts = [trace[0]["time_us"] for trace in traces]
    ends = [trace[-1]["time_us"] for trace in traces]
    assert max(starts) < min(ends), "the ring makes them run at the same time"


def test_exports_keep_ranks_apart(merged):
    memviz("export", merged / "merged.memviz", "-o", merged / "merged.json")
    memviz("export", merged / "merged.memviz", "-o", merged / "merged.pftrace")
    document = json.loads((merged / "merged.json").read_text())
    assert [recording["rank"] for recording in document["recordings"]] == list(range(RANKS))
    assert {event["rank"] for event in document["events"]} == set(range(RANKS))


@needs_browser
def test_pytorchs_page_shows_four_devices(merged):
    facts = run_tool("run.py", merged / "merged.pickle", "--out", SHOTS / "ranks", "--expect-frame", "ring.py")
    assert {view["device"] for view in facts["views"]} == {"0", "1", "2", "3"}
    for view in facts["views"]:
        assert view["errors"] == []
