"""Measures what recording costs.

python -m mlx_memviz.bench
python -m mlx_memviz.bench --only text --rounds 15
python -m mlx_memviz.bench --write benches/RESULTS.md
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys

from mlx_memviz.bench import measure, report

NAMES = (
    "text",
    "idle",
    "capture",
    "event",
    "train",
    "small_ops",
    "stream",
    "dump",
    "files",
    "replay",
    "allocator",
    "memory",
)


def _options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m mlx_memviz.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=NAMES, help="this benchmark; may be repeated")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each measurement (default 9)")
    parser.add_argument("--quick", action="store_true", help="small programs, for a look; targets are not judged by it")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of text and small_ops (default cpu)")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="Markdown for the repository")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}, expected at least 1")
    return options


def main() -> int:
    """0 if every target is met, else 1."""
    arguments = _options()
    options = measure.Options(rounds=arguments.rounds, is_quick=arguments.quick, device=arguments.device)
    results = []
    # In their usual order: memory that one leaves to malloc changes what another measures.
    for name in (name for name in NAMES if name in (arguments.only or NAMES)):
        for result in importlib.import_module(f"mlx_memviz.bench.{name}").run(options):
            results.append(result)
            measure.progress("")
            if not arguments.json:
                print(report.row(result), flush=True)
        if arguments.write:
            arguments.write.write_text(report.as_markdown(results, options))
    if arguments.json:
        print(report.as_json(results))
    return int(any(result.is_met is False for result in results))


if __name__ == "__main__":
    sys.exit(main())
