import mlx_memviz
import mlx.core as mx
from mlx._memory_viz import dump_snapshot

# 1. Turn on the recording.
mx.record_memory_events(enabled=True, max_entries=100000)

# 2. Add things to record.
a = mx.ones((1000, 1000)) * 2
mx.eval(a)

# 3. Get the memory events, either:
# 3.1. Get a list of event dictionaries to play around with, or
events = mx.get_memory_events()

# 3.2. Dump the events into a pickle file compatible with PyTorch's memory viz.
dump_snapshot(mx.get_memory_events(), "output.pickle")

# 4. Turn off the recording.
mx.record_memory_events(enabled=False)

import json

print(json.dumps({"events": len(events), "after": len(mx.get_memory_events()), "sizes": [e["size"] for e in events]}))
