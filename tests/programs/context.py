"""Which events carry stacks, for each value of `context`."""

import harness
import mlx.core as mx

import mlx_memviz

FREES = ("FreeActiveToCache", "FreeActiveToOS", "Release")


def facts_for(context) -> dict:
    with mlx_memviz.record(context=context) as recording:
        kept = mx.zeros((30_001,))  # L:kept
        mx.eval(kept)
        for number in range(10):
            gone = mx.zeros((10_000 + number,))
            mx.eval(gone)
            mx.synchronize()
            del gone
        live = [buffer for buffer in recording.live() if buffer["requested"] == 4 * 30_001]
    events = recording.events()
    allocs = [event for event in events if harness.is_alloc(event) and event["requested"] > 30_000]
    frees = [event for event in events if event["action"] in FREES and event["requested"] > 30_000]
    return {
        "allocs": len(allocs),
        "allocs_with_stack": sum(bool(event["traceback"]) for event in allocs),
        "allocs_with_trigger": sum(bool(event["evaluated_at"]) for event in allocs),
        "frees": len(frees),
        "frees_with_place": sum(bool(event["evaluated_at"]) for event in frees),
        "live_lines": [harness.innermost(buffer) and harness.innermost(buffer)[2] for buffer in live],
        "check": recording.check(),
    }


harness.finish(
    line=harness.marked_line(__file__, "kept"),
    **{str(context): facts_for(context) for context in ("all", "alloc", "state", None)},
)
