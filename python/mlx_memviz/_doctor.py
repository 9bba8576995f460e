"""`memviz doctor`: would recording work here, what was probed, and if not, why."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys

import mlx_memviz
from mlx_memviz import _attach, _native


def examine() -> dict:
    """What was found, in order; "error" says why recording would not work, None if it would."""
    found: dict = {
        "memviz": mlx_memviz.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "free_threaded": "t" in getattr(sys, "abiflags", ""),
        "machine": f"{platform.system()} {platform.machine()}",
        "mlx": _installed("mlx"),
        "backend_packages": {name: version for name in _BACKENDS if (version := _installed(name))},
        "error": None,
    }
    try:
        version = _attach.mlx_core().__version__
        found["mlx_core"] = version
        found.update(_native.probe(version))
        _attach.prepare()
        found["self_test"] = "passed"
    except ImportError as error:
        found["error"] = f"cannot import mlx.core: {error}. Install it: pip install 'mlx[cpu]'"
    except _native.AttachError as error:
        found["error"] = str(error)
    found["stacks"] = _native.walker()
    return found


_BACKENDS = ("mlx-cpu", "mlx-metal", "mlx-cuda-12", "mlx-cuda-13")


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run(as_json: bool) -> int:
    """Prints what was found; 0 if recording would work, 1 if not."""
    found = examine()
    if as_json:
        print(json.dumps({"schema": 1, **found}, default=str, indent=2))
    else:
        print(_text(found))
    return 0 if found["error"] is None else 1


def _text(found: dict) -> str:
    backends = (
        ", ".join(f"{name} {version}" for name, version in found["backend_packages"].items()) or "no back end package"
    )
    lines = [
        ("memviz", found["memviz"]),
        ("python", f"{found['python']}{', free-threaded' if found['free_threaded'] else ''} on {found['machine']}"),
        ("mlx", f"{found['mlx'] or 'not installed'} ({backends})"),
    ]
    if "library" in found:
        cache = "with a cache" if found["has_cache"] else "without a cache"
        lines += [
            ("library", str(found["library"])),
            ("allocator", f"{found['backend']}, {cache}"),
            ("layout", f"table for mlx {found['layout']}"),
            ("hooks", f"{found['slots']} pointer slots, {found['primitive_classes']} primitive classes"),
        ]
    if "self_test" in found:
        lines.append(("self-test", found["self_test"]))
    if found["stacks"]:
        lines.append(("stacks", found["stacks"]))
    verdict = "recording works here" if found["error"] is None else f"recording does not work here: {found['error']}"
    return "\n".join(f"{name:>10}  {value}" for name, value in [*lines, ("verdict", verdict)])
