"""Reads recordings; prints for each what is in it, or why it cannot be read.

look.py FILE...
"""

import json
import sys

import mlx_memviz


def look(path: str) -> dict:
    try:
        trace = mlx_memviz.load(path)
        events = trace.events()
        return {
            "events": len(trace),
            "check": trace.check(),
            "ending": trace.ending,
            "rank": trace.rank,
            "oom": [event["size"] for event in events if event["action"] == "Oom"],
            "unresolved": sum("<not resolved>" in str(event["traceback"]) for event in events),
            "error": None,
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


print(json.dumps([look(path) for path in sys.argv[1:]]))
