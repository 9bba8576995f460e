"""The graph before it runs: which operations wait, what they will need, and which line built each.

The walk is native (`_native.read_graph`); here it becomes objects, tables and pictures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import Any

from mlx_memviz import _attach, _native, _notebook, _text

_DRAWN = 500
_DRAWN_IN_A_NOTEBOOK = 60
_UNKNOWN = "line not known"
_NO_LINE = "no Python line"
_OWN_FOLDER = os.path.dirname(__file__) + os.sep


@dataclass(frozen=True, slots=True)
class Output:
    """An array that an operation will make."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Input:
    """An array that an operation takes. `node` is the index of the operation that makes it, None when it needs none."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    node: int | None
    leaf: int | None
    is_in_memory: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array at the edge: it is in memory, or it is the argument of a function that MLX traces."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    is_in_memory: bool
    file: str | None
    function: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """An operation that waits. `shape` and `dtype` are those of its first output; `file` is None when not known.

    `bytes` is what its outputs need when no buffer is reused: 0 for views, and for a reshape that need not copy. MLX may
    need less, because an operation may take over the buffer of an input that nobody else uses.
    """

    index: int
    primitive: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    outputs: tuple[Output, ...]
    inputs: tuple[Input, ...]
    file: str | None
    function: str | None
    line: int | None
    traceback: list[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class GraphLine:
    """What one line of the program built. `file` is None for operations without a known line, and `place` says why."""

    place: str
    file: str | None
    function: str | None
    line: int | None
    count: int
    bytes: int
    primitives: dict[str, int]


def graph(*arrays: Any) -> Graph:
    """The operations that MLX would run to make `arrays`: arrays, or lists, tuples, dicts and modules of them.

    Nothing is evaluated, kept alive or changed. Lines are known for operations that were built while a recording ran, and
    as long as it runs. No other thread may evaluate these arrays meanwhile.
    """
    version = _attach.prepare()
    found = _arrays_in(arrays, _attach.mlx_core().array)
    if not found:
        raise TypeError("found no mx.array among the arguments; expected arrays, or lists, tuples and dicts of them")
    raw = _native.read_graph(version, _OWN_FOLDER, found)
    names = _notebook.cell_names()
    if names:
        raw["stacks"] = [_renamed(stack, names) for stack in raw["stacks"]]
    return Graph(raw)


def _renamed(stack, names: dict[str, str]):
    line, frames = stack
    every = [
        (names.get(file, file), function, number) for file, function, number in [*frames, *([line] if line else [])]
    ]
    return (every[-1] if line else None), every[: len(frames)]


def _arrays_in(tree: Any, array: type) -> list[Any]:
    """Every array of a tree, in order. Without recursion; a container that holds itself is entered once."""
    found, seen, waiting = [], set(), [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, array):
            found.append(item)
        elif isinstance(item, (list, tuple, dict)) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(reversed(list(item.values()) if isinstance(item, dict) else item))
    return found


class Graph:
    """What waits. Made by `graph`; a copy, so it stays as it is when the arrays are evaluated."""

    def __init__(self, raw: dict[str, Any]):
        self._raw = raw
        self._nodes: list[Node] | None = None
        self._leaves = [self._leaf(index, *leaf) for index, leaf in enumerate(raw["leaves"])]

    def __len__(self) -> int:
        """Number of operations that wait."""
        return len(self._raw["nodes"])

    @property
    def bytes(self) -> int:
        """Bytes that the operations need when no buffer is reused and all results are kept."""
        return sum(node[3] for node in self._raw["nodes"])

    @property
    def nodes(self) -> list[Node]:
        """Every operation, inputs before those that take them."""
        if self._nodes is None:
            self._nodes = [self._node(index, *node) for index, node in enumerate(self._raw["nodes"])]
        return self._nodes

    @property
    def leaves(self) -> list[Leaf]:
        """The arrays that the operations start from, and arrays that were asked for and wait for nothing."""
        return self._leaves

    def _place(self, stack: int | None) -> tuple[str | None, str | None, int | None]:
        line = None if stack is None else self._raw["stacks"][stack][0]
        return line or (None, None, None)

    def _leaf(self, index: int, is_in_memory: bool, output, stack: int | None) -> Leaf:
        shape, dtype, size = output
        return Leaf(index, tuple(shape), dtype, size, is_in_memory, *self._place(stack))

    def _node(self, index: int, primitive: str, outputs, inputs, size: int, stack: int | None) -> Node:
        made = tuple(Output(tuple(shape), dtype, bytes) for shape, dtype, bytes in outputs)
        taken = tuple(self._input(*source) for source in inputs)
        traceback = [] if stack is None else self._raw["stacks"][stack][1]
        first = made[0]
        return Node(index, primitive, first.shape, first.dtype, size, made, taken, *self._place(stack), traceback)

    def _input(self, kind: str, index: int, output: int) -> Input:
        if kind == "leaf":
            leaf = self._leaves[index]
            return Input(leaf.shape, leaf.dtype, leaf.bytes, None, index, leaf.is_in_memory)
        shape, dtype, size = self._raw["nodes"][index][1][output]
        return Input(tuple(shape), dtype, size, index, None, False)

    def by_line(self) -> list[GraphLine]:
        """Operations by the line that built them, most bytes first, then most operations."""
        sums: dict[tuple, list] = {}
        for primitive, _, _, size, stack in self._raw["nodes"]:
            key = (stack is None, *self._place(stack))
            total = sums.setdefault(key, [0, 0, Counter()])
            total[0] += 1
            total[1] += size
            total[2][primitive] += 1
        lines = []
        for (is_unknown, file, function, number), (count, size, primitives) in sums.items():
            place = _place_text(is_unknown, file, number)
            lines.append(GraphLine(place, file, function, number, count, size, dict(primitives.most_common())))
        return sorted(lines, key=lambda line: (-line.bytes, -line.count, line.place))

    def __str__(self) -> str:
        rows = self._rows()
        parts = [self._headline()]
        if rows:
            parts.append(_text.text_table(_HEAD, rows, numbers=2))
        if self._is_unknown():
            parts.append(_HINT)
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"<mlx_memviz.Graph: {self._headline()}>"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [(f"{line.count:,}", _text.size(line.bytes), line.place, _names(line)) for line in self.by_line()]

    def _is_unknown(self) -> bool:
        return any(node[4] is None for node in self._raw["nodes"])

    def _headline(self) -> str:
        """9,412 nodes wait; 9,400 built at train.py:57"""
        if not len(self):
            return "nothing waits: every array is in memory"
        text = f"{len(self):,} node{'s wait' if len(self) > 1 else ' waits'}"
        known = [line for line in self.by_line() if line.file is not None]
        if known:
            most = max(known, key=lambda line: line.count)
            text += f"; {most.count:,} built at {most.place}"
        return f"{text}; up to {_text.size(self.bytes)} to allocate"

    def to_dot(self, *, max_nodes: int | None = _DRAWN) -> str:
        """The graph in Graphviz's language. Raises `ValueError` when there are more than `max_nodes`; None draws any."""
        if max_nodes is not None and len(self) > max_nodes:
            raise ValueError(
                f"{len(self):,} nodes wait, too many to draw (max_nodes={max_nodes}); see by_line(), or pass max_nodes=None"
            )
        lines = ["digraph {", '  rankdir="TB"; node [fontname="Helvetica", fontsize=10];']
        lines += [f"  l{leaf.index} [{_leaf_style(leaf)}];" for leaf in self._leaves]
        for node in self.nodes:
            lines.append(f"  n{node.index} [shape=box, label={_quoted(_node_label(node))}];")
            for source in node.inputs:
                start = f"l{source.leaf}" if source.node is None else f"n{source.node}"
                lines.append(f"  {start} -> n{node.index} [label={_quoted(_array_text(source))}, fontsize=8];")
        return "\n".join([*lines, "}", ""])

    def to_svg(self, *, max_nodes: int | None = _DRAWN) -> str:
        """The graph as a picture. Needs Graphviz's `dot` on PATH."""
        program = shutil.which("dot")
        if program is None:
            raise _native.MemvizError("cannot draw: Graphviz's `dot` is not on PATH; install graphviz, or use to_dot()")
        dot = self.to_dot(max_nodes=max_nodes)
        done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, encoding="utf-8")
        if done.returncode != 0:
            raise _native.MemvizError(f"cannot draw: dot ended with {done.returncode}: {done.stderr.strip()[:300]}")
        return done.stdout

    def _repr_html_(self) -> str:
        parts = [f"<div>{_text.escape(self._headline())}</div>"]
        if 0 < len(self) <= _DRAWN_IN_A_NOTEBOOK and shutil.which("dot"):
            svg = self.to_svg()
            # Black on white whatever the theme: Graphviz draws with fixed colours.
            parts.append(f'<div style="background:#fff;overflow:auto">{svg[svg.index("<svg") :]}</div>')
        if len(self):
            parts.append(_text.html_table(_HEAD, self._rows(), numbers=2))
        if self._is_unknown():
            parts.append(f"<div>{_text.escape(_HINT)}</div>")
        return f"<div>{''.join(parts)}</div>"


_HEAD = ("nodes", "bytes", "built at", "primitives")
_HINT = f'"{_UNKNOWN}": no recording ran when these were built; build them inside mlx_memviz.record() and ask before it ends.'


def _place_text(is_unknown: bool, file: str | None, line: int | None) -> str:
    if file is None:
        return _UNKNOWN if is_unknown else _NO_LINE
    return _text.place(file, line or 0)


def _names(line: GraphLine) -> str:
    names = [f"{name} ×{count:,}" if count > 1 else name for name, count in line.primitives.items()]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _array_text(array: Output | Input | Leaf) -> str:
    return f"{array.dtype} [{', '.join(map(str, array.shape))}]"


def _node_label(node: Node) -> str:
    lines = [node.primitive, *(_array_text(output) for output in node.outputs), _text.size(node.bytes)]
    if node.file is not None:
        lines.append(_text.place(node.file, node.line or 0))
    return "\n".join(lines)


def _leaf_style(leaf: Leaf) -> str:
    kind = "in memory" if leaf.is_in_memory else "argument"
    lines = [_array_text(leaf), f"{kind}, {_text.size(leaf.bytes)}"]
    if leaf.file is not None:
        lines.append(_text.place(leaf.file, leaf.line or 0))
    colour = "#cfe8d5" if leaf.is_in_memory else "#eeeeee"
    return f'shape=ellipse, style=filled, fillcolor="{colour}", label={_quoted(chr(10).join(lines))}'


def _quoted(text: str) -> str:
    """A string of DOT: lines are centred. Control characters and lone surrogates cannot be in an SVG."""
    text = "".join(character for character in text if character >= " " or character == "\n")
    text = text.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n") + '"'
