"""Records a whole program that does not know of us, and keeps its events and every reading of MLX's counters.

    record_script.py OUT SCRIPT [arguments]

OUT gets a pickle: events, what `check()` found, stats, and the readings: for each call of `mx.get_active_memory`,
`get_cache_memory`, `get_peak_memory`, `reset_peak_memory`, the line of the program, the value, and how many events there were
just before and just after it.
"""

import functools
import pickle
import runpy
import sys
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz

READ = ("get_active_memory", "get_cache_memory", "get_peak_memory", "reset_peak_memory")


def watched(name: str, readings: list):
    function = getattr(mx, name)

    @functools.wraps(function)
    def read():
        before = mlx_memviz.stats()["seen"]
        value = function()
        after = mlx_memviz.stats()["seen"]
        readings.append(
            {"name": name, "line": sys._getframe(1).f_lineno, "value": value, "before": before, "after": after}
        )
        return value

    return read


def main() -> None:
    out, script, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[2:]
    sys.argv, readings = arguments, []
    with mlx_memviz.record(max_entries=None) as recording:
        for name in READ:
            setattr(mx, name, watched(name, readings))
        sys.path[0] = str(Path(script).parent)
        # The names stay referenced until the recording ends, as they would in a program's own main module.
        names = runpy.run_path(script, run_name="__main__")
    del names
    record = {
        "events": recording.events(),
        "check": recording.check(),
        "stats": recording.stats(),
        "readings": readings,
        "hooked_after": harness.hooked_slots(),
    }
    out.write_bytes(pickle.dumps(record))


if __name__ == "__main__":
    main()
