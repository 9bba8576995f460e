"""Memory profiler for MLX: what uses the memory, which line built it, why it grows.

    import mlx.core as mx
    import mlx_memviz

    with mlx_memviz.record("run.pickle") as recording:
        train()
    print(recording.summary())

The file opens in PyTorch's page, https://docs.pytorch.org/memory_viz. `memviz run script.py` records a program that does
not know of us. Sizes are bytes everywhere, times are seconds unless a name says otherwise.
"""

from mlx_memviz import _native, _notebook
from mlx_memviz._compat import dump_snapshot, get_memory_events, record_memory_events
from mlx_memviz._compat import install as _install_names
from mlx_memviz._graph import Graph, graph
from mlx_memviz._native import AttachError, MemvizError, TraceError
from mlx_memviz._recording import (
    Recording,
    annotate,
    attach_oom_observer,
    record,
    snapshot,
    start,
    stats,
    step,
    stop,
)
from mlx_memviz._trace import Trace, load, load_ranks, merge
from mlx_memviz._viewer import Viewer, view

__version__ = "0.1.0"

if _native.__version__ != __version__:
    raise ImportError(
        f"mlx_memviz {__version__} found a native module of version {_native.__version__}; "
        "reinstall it: pip install --force-reinstall mlx-memviz"
    )

__all__ = [
    "AttachError",
    "Graph",
    "MemvizError",
    "Recording",
    "Trace",
    "TraceError",
    "Viewer",
    "annotate",
    "attach_oom_observer",
    "dump_snapshot",
    "get_memory_events",
    "graph",
    "load",
    "load_ranks",
    "merge",
    "record",
    "record_memory_events",
    "snapshot",
    "start",
    "stats",
    "step",
    "stop",
    "view",
]


def load_ipython_extension(shell) -> None:
    """`%load_ext mlx_memviz`: adds the cell magic `%%memviz`."""
    _notebook.load(shell)


_install_names()
