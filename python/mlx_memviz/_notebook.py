"""IPython and Jupyter: the cell magic `%%memviz`, and names that people know cells by.

IPython compiles a cell under a name of its own, `/tmp/ipykernel_71/1926931301.py`; in what we record it is `In [3]`.
Loaded by `%load_ext mlx_memviz`; nothing here imports IPython before that.
"""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any


def cell_names() -> dict[str, str]:
    """What to show instead of the file names under which this process's cells were compiled."""
    shell = _shell()
    numbers = {} if shell is None else _numbers(shell)
    return {file: f"In [{number}]" for file, number in numbers.items()}


def _shell() -> Any:
    # Not imported: a program that runs without IPython stays without.
    module = sys.modules.get("IPython")
    return None if module is None or not hasattr(module, "get_ipython") else module.get_ipython()


def _numbers(shell: Any) -> dict[str, int]:
    """File name to execution count. Private to IPython's compiler since 8.0, and what its own tracebacks use."""
    return dict(getattr(shell.compile, "_filename_map", {}))


def load(shell: Any) -> None:
    """Registers `%%memviz`."""
    shell.register_magic_function(_memviz, magic_kind="cell", magic_name="memviz")


def _parser():
    from IPython.core.magic_arguments import MagicArgumentParser  # type: ignore[import-not-found,unused-ignore]

    parser = MagicArgumentParser("%%memviz", description="Records this cell and shows its memory and its lines.")
    parser.add_argument("-o", "--output", metavar="NAME", help="variable that gets the Recording")
    parser.add_argument("--save", metavar="PATH", help="file to write, as for mlx_memviz.record")
    parser.add_argument("--level", default="buffers", choices=("buffers", "arrays"))
    parser.add_argument("--min-size", default="0", help="leave smaller buffers out of the lines, such as 4KiB")
    parser.add_argument("--native", action="store_true", help="C++ frames below Python's")
    parser.add_argument("--lines", type=int, default=10, help="rows of the table")
    return parser


def _options(line: str):
    from IPython.core.error import UsageError  # type: ignore[import-not-found,unused-ignore]

    from mlx_memviz import _native

    try:
        options = _parser().parse_argstring(line)
        options.min_size = _native.bytes_from_text(options.min_size)
    except ValueError as error:
        raise UsageError(f"--min-size {error}") from None
    if options.lines < 0 or (options.output is not None and not options.output.isidentifier()):
        raise UsageError(
            f"--lines {options.lines} -o {options.output}: expected a number from 0, and a variable's name"
        )
    return options


def _memviz(line: str, cell: str) -> Any:
    """Records this cell and shows its memory over time and its top lines. `%%memviz -h` lists the options."""
    # IPython leaves frames with this name out of tracebacks: an exception of the cell looks as it does without us.
    __tracebackhide__ = True
    from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

    from mlx_memviz import _html, _recording

    options = _options(line)
    shell = _shell()
    code = _Code(shell, cell)
    recording = _recording.record(options.save, level=options.level, min_size=options.min_size, native=options.native)
    try:
        with recording:
            return code.run(shell.user_ns)
    finally:
        if options.output is not None:
            shell.user_ns[options.output] = recording
        display(HTML(_html.trace_html(recording.trace, options.lines)))


class _Code:
    """A cell's code, compiled so that its lines have the numbers that the editor shows."""

    def __init__(self, shell: Any, cell: str):
        # IPython drops empty lines at the top; the magic itself was line 1.
        above = 1 + len(cell) - len(cell.lstrip("\n"))
        source = "\n" * above + shell.transform_cell(cell)
        name = shell.compile.cache(source, _own_number(shell))
        tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._body = shell.compile(tree, name, "exec")
        self._last = None if last is None else shell.compile(ast.Expression(last.value), name, "eval")
        self._is_silent = cell.rstrip().endswith(";")

    def run(self, namespace: dict[str, Any]) -> Any:
        """Value of the last expression, which IPython shows as the cell's, or None."""
        __tracebackhide__ = True
        exec(self._body, namespace)
        value = None if self._last is None else eval(self._last, namespace)
        return None if self._is_silent else value


def _own_number(shell: Any) -> int:
    """Execution count of the cell that is running: the shell's own is already the next one in some versions."""
    numbers = _numbers(shell)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename in numbers:
            return numbers[frame.f_code.co_filename]
        frame = frame.f_back
    return shell.execution_count
