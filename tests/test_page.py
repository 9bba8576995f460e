"""A real recording in PyTorch's own page, in Chromium, and in PyTorch's own Python reader."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import run_python
from venvs import ROOT

PAGE = ROOT / "tests" / "torch_page"
SHOTS = ROOT / "target" / "screenshots"
needs_browser = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("npm")),
    reason="no chromium or npm on PATH: apt-get install chromium npm",
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    """The program of `make demo`, recorded by `memviz run`."""
    path = tmp_path_factory.mktemp("page") / "demo.pickle"
    command = ["-m", "mlx_memviz", "run", "--quiet", "-o", path, "demo/train_transformer.py"]
    done = run_python(command, cwd=ROOT, timeout=300)
    assert done.returncode == 0, str(done)
    return path


def run_tool(name: str, *arguments) -> dict:
    command = [sys.executable, str(PAGE / name), *(str(argument) for argument in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip(), done.stderr[-3000:]
    facts = json.loads(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, json.dumps(facts, indent=1)[-4000:]
    return facts


@needs_browser
def test_every_view_opens_and_a_click_shows_our_line(recording):
    expected = ("--expect-frame", "train_transformer.py", "--expect-metadata", "float32")
    facts = run_tool("run.py", recording, "--out", SHOTS, *expected)
    names = {view["name"] for view in facts["views"]}
    assert {"Active Memory Timeline", "Active Cached Segment Timeline", "Allocator State History"} <= names
    for view in facts["views"]:
        assert view["errors"] == []
        assert (SHOTS / view["screenshot"]).stat().st_size > 10_000


def test_pytorchs_own_reader_understands_it(recording):
    run_tool("reader_a.py", recording)
