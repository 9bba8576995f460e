#!/usr/bin/env python3
"""Fetches the stock MLX wheels that the tests read, and prints the value for MEMVIZ_MLX_LIBS.

    export MEMVIZ_MLX_LIBS="$(python3 ci/fetch_wheels.py ~/.cache/memviz-wheels)"

With --cuda, the CUDA wheels of the matrix instead, 70 to 90 MB each, for MEMVIZ_CUDA_LIBS and the soak.

Brings, for each version of `ci/matrix.toml`, libmlx.so (`mlx-cpu`) and core.*.so (`mlx`) of x86_64, and of the newest
version those of aarch64 too. One folder each; a folder that is there already is not fetched again. Needs pip and, the
first time, PyPI. Only shared libraries are unpacked; nothing fetched is run.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MATRIX = Path(__file__).with_name("matrix.toml")
# Any Python has the same structure of core.*.so; this one exists for every release of the matrix.
PYTHON = "3.11"


def versions_from_matrix(text: str) -> list[str]:
    """`[mlx] versions`. tomllib came with Python 3.11, and one list of strings does not need it."""
    found = re.search(r"^\[mlx\]\s*(?:^(?!\[).*\n)*?^versions\s*=\s*\[([^\]]*)\]", text, re.MULTILINE)
    versions = re.findall(r'"([^"]+)"', found.group(1)) if found else []
    if not versions:
        sys.exit(f'fetch_wheels: no [mlx] versions found; expected versions = ["..."] in {MATRIX}')
    return versions


def cuda_from_matrix(text: str) -> list[tuple[str, str]]:
    """`[mlx] cuda`: package and version."""
    found = re.search(r"^cuda\s*=\s*\[([^\]]*)\]", text, re.MULTILINE)
    wheels = re.findall(r'"(\S+) (\S+)"', found.group(1)) if found else []
    if not wheels:
        sys.exit(f'fetch_wheels: no [mlx] cuda found; expected cuda = ["mlx-cuda-13 0.32.4", ...] in {MATRIX}')
    return wheels


def version_key(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def fetch(package: str, version: str, machine: str, cache: Path, name: str | None = None) -> Path:
    """The folder with the shared libraries of one wheel, fetched unless it is there already."""
    folder = cache / (name or f"{package}-{version}-{machine}")
    if folder.is_dir():
        return folder
    print(f"fetching {package} {version} {machine}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--python-version", PYTHON, "--platform", f"manylinux_2_35_{machine}"]
        subprocess.run([*command, "-d", scratch, f"{package}=={version}"], check=True, stdout=sys.stderr)
        (wheel,) = Path(scratch).glob("*.whl")
        unpacked = Path(scratch) / "unpacked"
        unpack_libraries(wheel, unpacked)
        # Renamed in one step: a folder that exists is complete, also after an interrupted run.
        shutil.move(unpacked, folder)
    return folder


def unpack_libraries(wheel: Path, into: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.search(r"\.so(\.\d+)*$", name)]
        if not names:
            sys.exit(f"fetch_wheels: no shared library in {wheel.name}; expected libmlx.so or core.*.so")
        archive.extractall(into, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path, help="folder to keep the libraries in; made if missing")
    parser.add_argument("--cuda", action="store_true", help="the CUDA wheels of the matrix")
    options = parser.parse_args()
    cache = options.cache.resolve()
    if ":" in str(cache):
        sys.exit(f"fetch_wheels: MEMVIZ_MLX_LIBS is split at colons; choose a folder without one, not {cache}")
    cache.mkdir(parents=True, exist_ok=True)
    matrix = MATRIX.read_text(encoding="utf-8")
    if options.cuda:
        wheels = cuda_from_matrix(matrix)
        folders = [fetch(package, version, "x86_64", cache, f"{package}-{version}") for package, version in wheels]
        print(":".join(str(next(folder.rglob("libmlx.so")).parent) for folder in folders))
        return
    versions = versions_from_matrix(matrix)
    newest = max(versions, key=version_key)
    wanted = [(version, "x86_64") for version in versions] + [(newest, "aarch64")]
    packages = ("mlx-cpu", "mlx")
    folders = [fetch(package, version, machine, cache) for version, machine in wanted for package in packages]
    print(":".join(map(str, folders)))


if __name__ == "__main__":
    main()
