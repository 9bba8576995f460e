"""Records a program at level `arrays` up to a marked line, as if it had been interrupted there, and saves the recording.

    record_until.py OUT SCRIPT [MARKER]

Lines keep their numbers: what follows the line before `# L:MARKER` is cut off. Without a marker the whole program runs.
"""

import sys
from pathlib import Path

import mlx_memviz


def main() -> None:
    out, script, marker = sys.argv[1], Path(sys.argv[2]), (sys.argv[3:] or [None])[0]
    lines = script.read_text().splitlines(keepends=True)
    if marker is not None:
        (at,) = [number for number, text in enumerate(lines) if text.rstrip().endswith(f"# L:{marker}")]
        lines = lines[:at]
    code = compile("".join(lines), str(script), "exec")
    names = {"__name__": "__main__", "__file__": str(script)}
    with mlx_memviz.record(max_entries=None, level="arrays") as recording:
        exec(code, names)
    recording.save(out)


if __name__ == "__main__":
    main()
