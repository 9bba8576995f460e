"""MLX's own Python tests under recording: same passes and failures as without, and every recording holds.

Takes half an hour, so `make soak` only. The tests come from a clone of MLX, $MEMVIZ_MLX_REPO, at the newest tag that is not
newer than the MLX under test.
"""

import os
import subprocess
from pathlib import Path

import pytest
from running import run_program
from venvs import NEWEST_MLX, ROOT

REPO = Path(os.environ.get("MEMVIZ_MLX_REPO", ROOT.parent / ".mirror" / "ml-explore+mlx" / "repo"))
# Own processes over MPI, NCCL or sockets; and what times itself.
LEFT_OUT = {"test_init.py"}

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not REPO.is_dir(), reason=f"no clone of MLX in {REPO}; set MEMVIZ_MLX_REPO"),
]


def git(*arguments) -> bytes:
    return subprocess.run(["git", "-C", REPO, *arguments], check=True, capture_output=True).stdout


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("."))


def newest_tag() -> str:
    tags = [tag for tag in git("tag").decode().split() if tag.removeprefix("v").replace(".", "").isdigit()]
    return max((tag for tag in tags if number(tag) <= number(NEWEST_MLX)), key=number)


def files() -> list[str]:
    if not REPO.is_dir():
        return []
    listed = git("ls-tree", "--name-only", newest_tag(), "python/tests/").decode().split()
    names = [Path(path).name for path in listed]
    return sorted(name for name in names if name.startswith("test_") and name not in LEFT_OUT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("mlx")
    archive = git("archive", newest_tag(), "python/tests")
    subprocess.run(["tar", "-x", "-C", out], input=archive, check=True)
    return out / "python" / "tests"


@pytest.mark.parametrize("file", files())
def test_same_outcomes_and_every_recording_holds(folder, file):
    plain = run_program("run_unittests.py", folder / file, cwd=folder, timeout=1800)
    recorded = run_program("run_unittests.py", folder / file, "recording", cwd=folder, timeout=3600)
    assert recorded["outcomes"] == plain["outcomes"]
    assert recorded["broken"] == []
    assert plain["outcomes"], "the file has tests"
