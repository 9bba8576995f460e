"""Fails when a crate depends on one that it may not see, and prints the path.

The list is ARCHITECTURE.md's: arrows point one way, and the agent and the analysis never meet.
"""

import json
import subprocess
import sys

MAY_USE = {
    "memviz-trace": set(),
    "memviz-alloc": {"memviz-trace"},
    "memviz-image": set(),
    "memviz-pyframes": set(),
    "memviz-format": {"memviz-trace"},
    "memviz-analyze": {"memviz-trace", "memviz-alloc"},
    "memviz-layout": {"memviz-trace", "memviz-analyze"},
    "memviz-agent": {"memviz-trace", "memviz-image", "memviz-pyframes"},
    "memviz-view": {"memviz-trace", "memviz-format", "memviz-analyze", "memviz-layout"},
    "memviz-cli": {"memviz-trace", "memviz-format", "memviz-analyze", "memviz-view"},
    "memviz-py": {
        "memviz-trace",
        "memviz-alloc",
        "memviz-format",
        "memviz-analyze",
        "memviz-cli",
        "memviz-view",
        "memviz-agent",
        "memviz-pyframes",
    },
}


def main() -> int:
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["packages"]
    wrong = []
    for package in packages:
        name = package["name"]
        if name not in MAY_USE:
            wrong.append(f"{name} is not in the list of ci/arrows.py")
            continue
        uses = {d["name"] for d in package["dependencies"] if d["name"].startswith("memviz-") and d["kind"] is None}
        wrong += [f"{name} -> {other} is not allowed" for other in sorted(uses - MAY_USE[name])]
    for line in wrong:
        print(f"arrows: {line}", file=sys.stderr)
    print(f"arrows: {len(packages)} crates, {len(wrong)} wrong arrows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
