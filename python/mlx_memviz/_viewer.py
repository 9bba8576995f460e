"""The viewer: recordings in the browser of this machine, or packed into one HTML file."""

from __future__ import annotations

import os
import pathlib

from mlx_memviz import _native
from mlx_memviz._trace import Trace


class Viewer:
    """A viewer in the background of this process, which ends with it. `with` closes it earlier.

    It answers on 127.0.0.1 only, to the browser that opens its address.
    """

    def __init__(self, inner: _native.Viewer):
        self._inner = inner

    @property
    def url(self) -> str:
        """Where it answers. Who knows this address can see the recordings from this machine."""
        return self._inner.url

    def close(self) -> None:
        """Ends it. A second call does nothing."""
        self._inner.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.url!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noopener">open the viewer</a>'


def view(*traces: Trace, port: int | None = None, open_browser: bool = True) -> Viewer:
    """Shows traces in the browser: the timeline, what was live at any moment, the reports; several side by side.

    port          to listen on; None is any that is free
    open_browser  False leaves it at the address, `url`
    """
    viewer = Viewer(_native.serve(_names(traces), [trace._inner for trace in traces], port))
    if open_browser:
        import webbrowser

        webbrowser.open(viewer._inner.url_once)
    return viewer


def write_html(traces: tuple[Trace, ...], path) -> pathlib.Path:
    """Writes one HTML file that shows the traces without memviz and without a network."""
    written = pathlib.Path(os.fspath(path))
    _native.write_html(_names(traces), [trace._inner for trace in traces], written)
    return written


def _names(traces: tuple[Trace, ...]) -> list[str]:
    if not traces:
        raise ValueError("no trace to show, expected one or more")
    if len(traces) == 1:
        return ["recording"]
    return [f"recording {number}" for number in range(1, len(traces) + 1)]
