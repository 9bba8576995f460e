"""The tables are plain memory: a child goes on with the ids of its parent."""

import os
import sys

import probe

probe.start()
hit = probe.lib.probe_make_hit()
probe.lib.probe_mode(1)


def place():
    hit()
    return probe.lib.probe_last()


def stack_in_child():
    ids = [place() for _ in range(2)]
    assert ids[0] == ids[1]
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    again = [place() for _ in range(2)]
    same = again[0] == again[1] and probe.stack(again[0])[0] == probe.stack(ids[0])[0]
    os._exit(0 if same and probe.lib.probe_matches() else 1)


status = stack_in_child()
assert status == 0, status
print("child ok")
sys.exit()
