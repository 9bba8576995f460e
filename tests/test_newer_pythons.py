"""Soak: Pythons that this machine does not have. 3.14 and 3.15 from Debian forky in a chroot, free-threaded 3.13 if named."""

import contextlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import venvs
from running import PROGRAMS
from test_matrix import assert_walk_holds

FORKY = venvs.ROOT / "target" / "forky"
PLATFORMS = [f"--platform=manylinux_2_{number}_x86_64" for number in (35, 28, 27, 17)]


def fill_site(site: Path, version: str, abi: str, wheel: Path) -> None:
    """MLX, NumPy and our wheel for another Python, unpacked into a folder."""
    shutil.rmtree(site, ignore_errors=True)
    wheels = site.with_suffix(".wheels")
    pip = [venvs.tools(), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", wheels]
    target = [f"--python-version={version}", "--implementation=cp", f"--abi={abi}", "--abi=none", *PLATFORMS]
    mlx = [f"{name}=={venvs.NEWEST_MLX}" for name in ("mlx", "mlx-cpu")]
    subprocess.run([*pip, *target, *mlx, "numpy"], check=True)
    for path in [*wheels.glob("*.whl"), wheel]:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(site)


def facts_of(command: list, **options) -> dict:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextlib.contextmanager
def proc_in(root: Path):
    """/proc in a chroot: page protections are read from /proc/self/maps."""
    (root / "proc").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", root / "proc"], check=True)


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="a chroot needs root")
@pytest.mark.parametrize("version", ["3.14", "3.15"])
def test_walk_holds_on_debians_newest_pythons(version):
    subprocess.run([venvs.ROOT / "ci" / "pythons_forky.sh", FORKY], check=True)
    root = FORKY / f"python{version}"
    if not root.is_dir():
        pytest.skip(f"Debian forky has no Python {version} today")
    fill_site(root / "memviz-site", version, f"cp{version.replace('.', '')}", venvs.wheel())
    shutil.copytree(PROGRAMS, root / "memviz-programs", dirs_exist_ok=True)
    command = ["/usr/bin/env", "PYTHONPATH=/memviz-site:/memviz-programs", f"/usr/bin/python{version}"]
    with proc_in(root):
        facts = facts_of(["chroot", root, *command, "/memviz-programs/broad.py"])
    # The chroot has no C++ compiler, so MLX runs compiled functions uncompiled: their second call builds on other lines.
    facts["wrong_lines"] = [line for line in facts["wrong_lines"] if line[0] != "compiled_call"]
    assert_walk_holds(facts)


@pytest.mark.soak
@pytest.mark.parametrize("gil", ["0", "1"])
def test_walk_holds_on_a_free_threaded_python(gil, tmp_path):
    named = os.environ.get("MEMVIZ_PYTHON_3_13T")
    if not named:
        pytest.skip("name a free-threaded Python 3.13 in MEMVIZ_PYTHON_3_13T to test it")
    build = ["-m", "maturin", "build", "--quiet", "--profile", "dev-fast", "--interpreter", named, "--out", tmp_path]
    subprocess.run([venvs.tools(), *build], check=True, cwd=venvs.ROOT)
    site = tmp_path / "site"
    fill_site(site, "3.13", "cp313t", next(tmp_path.glob("*.whl")))
    environment = {**os.environ, "PYTHONPATH": f"{site}:{PROGRAMS}", "PYTHON_GIL": gil}
    assert_walk_holds(facts_of([named, PROGRAMS / "broad.py"], env=environment))
