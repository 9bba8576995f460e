"""A trace as HTML for notebooks: memory over time as a small SVG, and the lines behind the peak as a table.

Needs nothing but a page: no script, no style sheet, no font. Text takes the page's colour and areas are half transparent,
so it reads on a light and on a dark page. Everything that comes from the program is escaped.
"""

from __future__ import annotations

from mlx_memviz import _native, _text
from mlx_memviz._trace import Trace

_WIDTH, _HEIGHT = 640, 110
_COLUMNS = 160
_ACTIVE, _CACHED = "#3b82f6", "#f59e0b"
LINES = 10


def trace_html(trace: Trace, lines: int = LINES) -> str:
    """Headline, timeline and the `lines` largest lines at the peak."""
    report = trace.report()
    rows = _native.lines_at(trace._inner, "peak")
    shown = [_row(row) for row in rows[:lines]]
    parts = [f"<div>{_text.escape(_headline(report))}</div>", _timeline(trace)]
    if shown:
        parts.append(
            _text.html_table(("bytes", "buffers", "alive at the peak, built at", "primitives"), shown, numbers=2)
        )
    if len(rows) > len(shown):
        rest = sum(row["bytes"] for row in rows[lines:])
        parts.append(f"<div>and {_text.size(rest)} in {len(rows) - len(shown):,} more lines</div>")
    parts += [f"<div>{_text.escape(note)}</div>" for note in report["notes"]]
    return f"<div>{''.join(parts)}</div>"


def _headline(report: dict) -> str:
    rate = "" if report["hit_rate"] is None else f", {report['hit_rate']:.0%} of the allocations from the cache"
    peak, reserved, end = report["peak_active"], report["peak_reserved"], report["end"]
    return (
        f"peak {_text.size(peak['active_bytes'])} active at {_seconds(peak['time_nanos'])}, "
        f"{_text.size(reserved['active_bytes'] + reserved['cached_bytes'])} with the cache; "
        f"at the end {_text.size(end['active_bytes'])} active, {_text.size(end['cached_bytes'])} cached; "
        f"{report['events']['seen']:,} events{rate}"
    )


def _seconds(nanos: float) -> str:
    seconds = nanos / 1e9
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _row(row: dict) -> tuple[str, str, str, str]:
    place = row["kind"] or f"{_text.place(row['file'], row['line'])} in {row['function']}"
    primitives = ", ".join(name or "Python data" for name in row["primitives"])
    return _text.size(row["bytes"]), f"{row['count']:,}", place, primitives


def _timeline(trace: Trace) -> str:
    """Columns of the highest sums: active below, what the cache adds above it."""
    nanos, columns = _native.timeline_of(trace._inner, _COLUMNS)
    top = max((reserved for _, reserved in columns), default=0)
    if top == 0:
        return ""
    width = _WIDTH / len(columns)
    areas = [
        _area([reserved for _, reserved in columns], top, width, _CACHED, 0.45),
        _area([active for active, _ in columns], top, width, _ACTIVE, 0.75),
    ]
    hovers = [
        f'<rect x="{at * width:.1f}" y="0" width="{width:.1f}" height="{_HEIGHT}" fill="#000" fill-opacity="0">'
        f"<title>from {_seconds(nanos * at / len(columns))}: up to {_text.size(active)} active, "
        f"{_text.size(reserved)} with the cache</title></rect>"
        for at, (active, reserved) in enumerate(columns)
    ]
    label = 'fill="currentColor" font-size="10" font-family="sans-serif"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 -14 {_WIDTH + 4} {_HEIGHT + 30}" role="img" '
        f'width="{_WIDTH}" style="max-width:100%;color:inherit" aria-label="MLX memory over time">'
        f'<text x="0" y="-4" {label}>{_text.size(top)}</text>'
        f'<rect x="{_WIDTH - 150}" y="-12" width="9" height="9" fill="{_ACTIVE}" fill-opacity="0.75"/>'
        f'<text x="{_WIDTH - 138}" y="-4" {label}>active</text>'
        f'<rect x="{_WIDTH - 90}" y="-12" width="9" height="9" fill="{_CACHED}" fill-opacity="0.45"/>'
        f'<text x="{_WIDTH - 78}" y="-4" {label}>with the cache</text>'
        f"{''.join(areas)}"
        f'<path d="M0 {_HEIGHT}H{_WIDTH}" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<text x="0" y="{_HEIGHT + 12}" {label}>0 s</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 12}" text-anchor="end" {label}>{_seconds(nanos)}</text>'
        f"{''.join(hovers)}</svg>"
    )


def _area(values: list[int], top: int, width: float, colour: str, opacity: float) -> str:
    """Steps, because memory does not change between events."""
    steps = [f"V{_HEIGHT * (1 - value / top):.2f}H{(at + 1) * width:.2f}" for at, value in enumerate(values)]
    return f'<path d="M0 {_HEIGHT}{"".join(steps)}V{_HEIGHT}Z" fill="{colour}" fill-opacity="{opacity}"/>'
