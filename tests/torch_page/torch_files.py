"""Brings PyTorch's MemoryViz.js and _memory_viz.py, npm packages and Chromium to target/torch_page, for tests only.

Reads the archive's address from this machine's apt sources and leaves them as they are. Downloads once.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parents[1] / "target" / "torch_page"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MEMBERS = {"MemoryViz.js": "torch/utils/viz/MemoryViz.js", "_memory_viz.py": "torch/cuda/_memory_viz.py"}


def page() -> pathlib.Path:
    """Path of MemoryViz.js."""
    return _from_debian("MemoryViz.js", "MEMORY_VIZ_JS")


def reader() -> pathlib.Path:
    """Path of _memory_viz.py."""
    return _from_debian("_memory_viz.py", "MEMORY_VIZ_PY")


def modules() -> pathlib.Path:
    """Path of node_modules with d3 and playwright-core."""
    wanted = CACHE / "node_modules"
    if not (wanted / "playwright-core").exists() or not (wanted / "d3v5").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", CACHE)
        _run(["npm", "install", "--no-audit", "--no-fund"], cwd=CACHE)
    return wanted


def chromium() -> str:
    """Path of Chromium."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not found:
        _run(["apt-get", "update"])
        _run(["apt-get", "install", "-y", "--no-install-recommends", "chromium"])
    return found or "/usr/bin/chromium"


def _run(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-2000:]}")


def _from_debian(name: str, override: str) -> pathlib.Path:
    if os.environ.get(override):
        return pathlib.Path(os.environ[override])
    folder = CACHE / "debian"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(folder)
    return folder / name


def _archive() -> str:
    text = ""
    for root in ("/etc/apt/sources.list", "/etc/apt/sources.list.d"):
        for path in [pathlib.Path(root)] if root.endswith(".list") else pathlib.Path(root).glob("*"):
            text += path.read_text(errors="replace") if path.is_file() else ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found = re.findall(r"https?://[^\s\]]+/debian/?(?=\s|$)", "\n".join(lines))
    if not found:
        raise SystemExit("no Debian archive in /etc/apt; set MEMORY_VIZ_JS and MEMORY_VIZ_PY to PyTorch's files")
    return found[0]


def _fetch(folder: pathlib.Path):
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "lists" / "partial").mkdir(parents=True)
        (work / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {_archive()} trixie main\n")
        options = [f"Dir::Etc::sourcelist={work}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
        options += [f"Dir::State::Lists={work}/lists", "APT::Sandbox::User=root"]
        apt = ["apt-get", *(part for option in options for part in ("-o", option))]
        _run([*apt, "update"])
        _run([*apt, "source", "--download-only", "--only-source", "pytorch"], cwd=work)
        with tarfile.open(next(work.glob("pytorch_*.orig.tar.*"))) as archive:
            for member in archive:
                for short, long in MEMBERS.items():
                    if member.name.endswith("/" + long):
                        (folder / short).write_bytes(archive.extractfile(member).read())
