"""Fails unless every changelog fragment is well named and changes since the last release have one.

A fragment is `news/<slug>.<kind>.md`; a release collects them into CHANGELOG.md and deletes them.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("added", "changed", "fixed", "removed")


def git(*arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else ""


def main() -> int:
    fragments = sorted(path.name for path in (ROOT / "news").glob("*.md"))
    pattern = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
    wrong = [
        f"news/{name}: expected <slug>.<kind>.md with a kind of {KINDS}"
        for name in fragments
        if not pattern.fullmatch(name)
    ]
    tag = git("describe", "--tags", "--abbrev=0")
    since = [f"{tag}..HEAD"] if tag else ["HEAD"]
    if git("log", "--oneline", "-1", *since, "--", "crates", "python") and not fragments:
        wrong.append("crates/ or python/ changed since the last release; add news/<slug>.<kind>.md")
    for line in wrong:
        print(f"news: {line}", file=sys.stderr)
    print(f"news: {len(fragments)} fragments, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
