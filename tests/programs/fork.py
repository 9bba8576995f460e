"""Forks while recording and while another thread evaluates: children are detached, the parent goes on.

fork.py COUNT
"""

import json
import multiprocessing
import os
import sys
import threading

import harness
import mlx.core as mx

import mlx_memviz

stop = threading.Event()


def work() -> None:
    while not stop.is_set():
        mx.eval(mx.random.normal((64, 64)) @ mx.ones((64, 64)))


def child_facts() -> dict:
    """MLX's worker threads do not survive a fork, so nothing that needs them is tried."""
    array = mx.array([1, 2, 3])
    try:
        mlx_memviz.start()
        refused = None
    except mlx_memviz.AttachError as error:
        refused = str(error)
    return {"hooked": harness.hooked_slots(), "shape": list(array.shape), "refused": refused}


def forked() -> dict:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps(child_facts()).encode())
        os._exit(0)
    os.close(write)
    with open(read) as answer:
        facts = json.load(answer)
    return {**facts, "status": os.waitpid(child, 0)[1]}


def send_facts(connection) -> None:
    connection.send(child_facts())


def forked_by_multiprocessing() -> dict:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=send_facts, args=(theirs,))
    process.start()
    facts = ours.recv()
    process.join()
    return {**facts, "status": process.exitcode}


recording = mlx_memviz.start()
at = harness.Checkpoints(recording)
worker = threading.Thread(target=work)
worker.start()
children = []
for _ in range(int(sys.argv[1])):
    children += [forked(), forked_by_multiprocessing()]
    at("after two forks")
stop.set()
worker.join()
mx.synchronize()
marked = mx.zeros((12_347,))
mx.eval(marked)
at("end")
during = harness.hooked_slots()
recording.stop()
harness.finish(
    **at.facts(),
    children=children,
    hooked_during=during,
    hooked_after=harness.hooked_slots(),
    recorded_after_the_forks=sum(event["requested"] == 4 * 12_347 for event in recording.events()),
    check=recording.check(),
)
# MLX sometimes aborts at exit after a thread used a stream of its own, with and without us.
sys.stdout.flush()
os._exit(0)
