"""Words that tables share: sizes, places in the source, and escaping for HTML."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence

from mlx_memviz import _native

size = _native.text_from_bytes


def place(file: str, line: int) -> str:
    """ "train.py:57": paths below the working folder or an installed package are cut there."""
    inside = file.rpartition(f"{os.sep}site-packages{os.sep}")
    if inside[1]:
        file = inside[2]
    else:
        try:
            file = file.removeprefix(os.path.join(os.getcwd(), ""))
        except OSError:  # the folder was deleted
            pass
    return f"{file}:{line}" if line else file


def escape(text: str) -> str:
    """For HTML, in text and in attributes. Characters that no document may hold become U+FFFD."""
    allowed = (
        character if character >= " " or character in "\t\n" else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    return html.escape("".join(allowed).encode("utf-8", "replace").decode())


_CELL = "padding:2px 10px 2px 0;border:none;background:none;vertical-align:top"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """A table; the first `numbers` columns are right-aligned. Everything is escaped."""
    lines = [_row("th", head, numbers), *(_row("td", row, numbers) for row in rows)]
    return f'<table style="border-collapse:collapse;border:none">{"".join(lines)}</table>'


def _row(tag: str, cells: Sequence[str], numbers: int) -> str:
    parts = []
    for column, cell in enumerate(cells):
        side = "right;white-space:nowrap" if column < numbers else "left"
        parts.append(f'<{tag} style="{_CELL};text-align:{side}">{escape(cell)}</{tag}>')
    return f'<tr style="background:none">{"".join(parts)}</tr>'


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """The same for a terminal, indented by two."""
    every = [head, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(head))]
    lines = []
    for row in every:
        cells = [
            cell.rjust(width) if column < numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
