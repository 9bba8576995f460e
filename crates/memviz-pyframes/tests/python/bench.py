"""Nanoseconds per capture, above an empty hook called from the same Python code: fast walk, public walk, GIL test.

Other processes may share the machine, so: short bursts in thread CPU time, all modes interleaved in every round, the
paired difference with the empty hook of the same round, median over the rounds. A virtual machine may change its
speed by half within seconds, so the lower quartile stands beside it.

    PYFRAMES_PROBE=target/release/examples/libpyframes_probe.so python bench.py [ROUNDS [DEPTH...]]
"""

import _thread
import gc
import sys
import time

import probe

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 31
DEPTHS = [int(d) for d in sys.argv[2:]] or [32]
BURST = 340
MODES = {"nothing": 0, "fast": 1, "public": 2, "gil": 3}

walker = probe.start()
hit = probe.lib.probe_make_hit()
clock = time.thread_time_ns
names = {"hit": hit, "clock": clock}


def timed(name, loop, body):
    lines = "".join(f"            {line}\n" for line in body)
    exec(
        f"def {name}():\n    for _ in (0, 1):\n        t = clock()\n        for _ in range({loop}):\n{lines}"
        f"        t = clock() - t\n    return t / {loop * len(body)}\n",
        names,
    )
    return names[name]


leaf_line = timed("leaf_line", BURST // 17, ["hit()"] * 17)
same = timed("same", BURST, ["hit()"])
for i in range(140):  # distinct functions for the lower part of the stack
    exec(f"def f{i}(k, leaf):\n    if k == 1:\n        return leaf()\n    return f{i + 1}(k - 1, leaf)\n", names)
f0 = names["f0"]
names["one"] = lambda: hit()


class Module:
    """A C boundary at every level, as in `nn.Module.__call__`."""

    def __call__(self, k, leaf):
        return leaf() if k <= 1 else Module()(k - 1, leaf)


def fresh(depth):
    """Every frame below the driver is new at every capture."""
    names["d"] = depth - 2
    return timed("fresh_driver", BURST, ["f0(d, one)"])()


def near_root(depth):
    """Every capture differs from the last one in the second frame from the root: the worst case."""
    names["d"] = depth - 2
    return timed("root_driver", BURST // 4, ["f0(d, one)"] * 4)()


SCENARIOS = {
    "leaf line changes": lambda d: f0(d - 1, leaf_line),
    "same place": lambda d: f0(d - 1, same),
    "C boundaries": lambda d: Module()(d - 1, leaf_line),
    "all frames new": fresh,
    "differs near root": near_root,
}


def measure(run, depth):
    """Differences with the empty hook by mode, sorted."""
    rounds = []
    for _ in range(ROUNDS):
        taken = {}
        for mode, number in MODES.items():
            probe.lib.probe_mode(number)
            taken[mode] = run(depth)
        rounds.append({mode: taken[mode] - taken["nothing"] for mode in MODES})
    return {mode: sorted(r[mode] for r in rounds) for mode in MODES}


def main():
    gc.disable()
    print(f"{sys.version.split()[0]}: {walker}; {ROUNDS} rounds; ns per capture: median, lower quartile")
    print(f"{'':20}{'depth':>6}{'fast':>16}{'public':>16}{'ratio':>7}{'gil':>14}")
    for name, run in SCENARIOS.items():
        for depth in DEPTHS:
            ns = measure(run, depth)
            median = {mode: values[ROUNDS // 2] for mode, values in ns.items()}
            text = {mode: f"{median[mode]:8.1f}{values[ROUNDS // 4]:8.1f}" for mode, values in ns.items()}
            ratio = median["public"] / max(median["fast"], 0.1)
            print(f"{name:20}{depth:6}{text['fast']}{text['public']}{ratio:6.1f}x{text['gil']}")


def bare(run):
    """On a thread of its own, so that the Python stack begins here."""
    done = _thread.allocate_lock()
    done.acquire()

    def thread():
        try:
            run()
        finally:
            done.release()

    _thread.start_new_thread(thread, ())
    done.acquire()


bare(main)
