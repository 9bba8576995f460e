"""Failed allocations in a snapshot, as PyTorch's page sees them. usage: failures.py FILE"""

import json
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
failures = [entry for trace in snapshot["device_traces"] for entry in trace if entry["action"] == "oom"]
for failure in failures:
    print(failure["size"], "bytes wanted,", failure["device_free"], "free")
    print(failure["user_metadata"])
    for frame in failure["frames"][:4]:
        print("   ", frame["filename"], frame["line"], frame["name"])
print(json.dumps([{key: failure[key] for key in ("size", "device_free", "user_metadata")} for failure in failures]))
