"""Virtual environments with a stock MLX and our wheel, made once and kept.

    python3.11 tests/venvs.py            makes the tools, the wheel and every environment of the gate; prints their Pythons
    target/venvs/build/bin/python -m pytest tests

An environment is named by what is in it, `py3.11-mlx0.32.4`, and lives in $MEMVIZ_CACHE, else in `target/venvs`. One that is
complete is used as it is; one that was interrupted is made anew. Needs PyPI the first time, the Pythons of
`ci/matrix.toml` (pyenv, `python3.x` on PATH, or $MEMVIZ_PYTHONS, a list of executables as PATH is) and, unless
$MEMVIZ_WHEEL names a wheel, cargo.
"""

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("MEMVIZ_CACHE", ROOT / "target" / "venvs"))
MATRIX = tomllib.loads((ROOT / "ci" / "matrix.toml").read_text())
MLX_VERSIONS: list[str] = MATRIX["mlx"]["versions"]
PYTHON_VERSIONS: list[str] = MATRIX["python"]["gate"]
NEWEST_MLX = MLX_VERSIONS[-1]
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
# The Python of tests that are not about Python versions: 3.11, for which every MLX of the matrix has wheels, else this one.
_HAS_3_11 = shutil.which("python3.11") or any(PYENV.glob("3.11*"))
USUAL_PYTHON = "3.11" if _HAS_3_11 else "{}.{}".format(*sys.version_info)
TOOLS = ("maturin>=1.9,<2", "pytest>=8", "pip>=23.1")
MLX_LM = "mlx-lm==0.32.2"


@dataclasses.dataclass(frozen=True)
class Spec:
    """What an environment holds: a Python, an MLX (None for none), further packages."""

    python: str = USUAL_PYTHON
    mlx: str | None = NEWEST_MLX
    extras: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        mlx = [f"mlx{self.mlx}"] if self.mlx else ["no-mlx"]
        return "-".join([f"py{self.python}", *mlx, *(extra.replace("==", "") for extra in self.extras)])

    @property
    def requirements(self) -> list[str]:
        mlx = [f"mlx[cpu]=={self.mlx}", "numpy"] if self.mlx else []
        return [*mlx, *self.extras]


def matrix() -> list[Spec]:
    """Every MLX on the usual Python, then the newest MLX on the other Pythons."""
    others = [python for python in PYTHON_VERSIONS if python != USUAL_PYTHON]
    return [Spec(mlx=version) for version in MLX_VERSIONS] + [Spec(python=python) for python in others]


class MissingPython(RuntimeError):
    """This machine has no Python of that version."""


def find_python(version: str) -> Path:
    """An executable of that Python version, `3.11` or `3.13t`."""
    looked_at = []
    for candidate in _candidates(version):
        looked_at.append(str(candidate))
        if _version_of(candidate) == version:
            return candidate
    raise MissingPython(
        f"no Python {version} found; looked at {', '.join(looked_at) or 'nothing'}. "
        "Install it with pyenv, or name it in MEMVIZ_PYTHONS"
    )


def _candidates(version: str) -> Iterator[Path]:
    yield from (Path(entry) for entry in os.environ.get("MEMVIZ_PYTHONS", "").split(os.pathsep) if entry)
    yield from sorted(PYENV.glob(f"{version.removesuffix('t')}*/bin/python3"), reverse=True)
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    yield Path(sys.executable)


@functools.cache
def _version_of(python: Path) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2] + getattr(sys, 'abiflags', ''))"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return answer.stdout.strip()


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Two test runs may share the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list, **options) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        text = " ".join(str(part) for part in command)
        raise RuntimeError(f"exit status {done.returncode} of: {text}\n{done.stdout}")


def _python_in(folder: Path) -> Path:
    return folder / "bin" / "python"


def _make(folder: Path, python: Path, requirements: list[str], pip: list) -> None:
    """Makes `folder` unless it is complete with just these requirements."""
    stamp = folder / "complete.txt"
    wanted = "\n".join([str(python), *requirements])
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"making {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    _run([python, "-m", "venv", *([] if not pip else ["--without-pip"]), folder])
    if requirements:
        pip = [*pip, "--python", _python_in(folder)] if pip else [_python_in(folder), "-m", "pip"]
        _run([*pip, "install", "--quiet", "--disable-pip-version-check", *requirements])
    stamp.write_text(wanted)


@functools.cache
def tools() -> Path:
    """Python of the environment with pip, maturin and pytest."""
    folder = CACHE / "build"
    with _locked("build"):
        _make(folder, find_python(USUAL_PYTHON), list(TOOLS), pip=[])
    return _python_in(folder)


@functools.cache
def wheel() -> Path:
    """Our wheel: $MEMVIZ_WHEEL, else built from the working tree."""
    given = os.environ.get("MEMVIZ_WHEEL")
    if given:
        path = Path(given).resolve()
        if not path.is_file():
            raise RuntimeError(f"MEMVIZ_WHEEL names no file: {path}")
        return path
    out = ROOT / "target" / "wheels"
    with _locked("wheel"):
        command = [tools(), "-m", "maturin", "build", "--quiet", "--profile", "dev-fast", "--out", out]
        _run([*command, "--interpreter", find_python(USUAL_PYTHON)], cwd=ROOT)
        built = max(out.glob("mlx_memviz-*.whl"), key=lambda path: path.stat().st_mtime)
        # A copy named by its content: another test run may build, and overwrite, while this one installs.
        kept = CACHE / "wheels" / _digest(built)[:16] / built.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, kept)
    return kept


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def environment(spec: Spec) -> Path:
    """Python of the environment, with our wheel installed."""
    pip = [tools(), "-m", "pip"]
    ours = wheel()
    folder = CACHE / spec.name
    with _locked(spec.name):
        _make(folder, find_python(spec.python), spec.requirements, pip)
        _install_ours(folder, ours, pip)
    return _python_in(folder)


def _install_ours(folder: Path, ours: Path, pip: list) -> None:
    stamp = folder / "wheel.txt"
    digest = _digest(ours)
    if stamp.is_file() and stamp.read_text() == digest:
        return
    pip = [*pip, "--python", _python_in(folder)]
    _run([*pip, "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall", ours])
    stamp.write_text(digest)


def main() -> None:
    print(tools())
    for spec in matrix():
        print(environment(spec))


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"venvs: {error}")
