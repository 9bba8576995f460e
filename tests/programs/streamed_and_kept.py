"""The same deterministic program, streamed or kept in memory: what both recordings say, with addresses as ordinals.

streamed_and_kept.py FILE|- LEVEL CONTEXT MIN_SIZE
"""

import collections
import hashlib
import json
import sys

import harness
import mlx.core as mx

import mlx_memviz

path, level, context, min_size = sys.argv[1:]
before = [mx.ones((size,)) for size in (1000, 2000, 3000)]
mx.eval(before)
cached = mx.ones((5000,))
mx.eval(cached)
del cached
recording = mlx_memviz.record(
    None if path == "-" else path, level=level, context=context, min_size=int(min_size), native=False
)
with recording:
    at = harness.Checkpoints(recording)
    kept = []
    for number in range(60):
        with mlx_memviz.annotate(f"part {number % 3}"):
            x = mx.random.normal((32, number + 1))
            y = mx.softmax(x @ x.T, axis=-1) + 1
            mx.eval(y)
            kept.append(y[:2])
        if number == 30:
            del before[0]
        mlx_memviz.step()
        at("step")
    mx.clear_cache()


# Which of two threads frees first differs from run to run, and with it addresses, reuse and the order of events. A stack of
# what triggered an allocation is not in a streamed file of context "state".
VARIES = {"time_us", "address", "index", "array", "action", "evaluated_at"}


def digest(events: list) -> str:
    lines = (json.dumps({name: value for name, value in event.items() if name not in VARIES}) for event in events)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


events = recording.events()
actions = collections.Counter(event["action"].replace("AllocReuse", "AllocNew") for event in events)
allocs = [event for event in events if event["action"] in ("AllocNew", "AllocReuse")]
check = recording.check()
harness.finish(
    **at.facts(),
    allocs=digest(allocs),
    triggered=sorted(str(event["evaluated_at"]) for event in allocs),
    actions={name: actions[name] for name in sorted(actions) if not name.startswith("Free")},
    live=digest(recording.live()),
    stats={name: recording.stats()[name] for name in ("seen", "recorded", "dropped", "filtered", "lost")},
    check={name: check[name] for name in ("events", "checkpoints", "active", "cached")},
)
