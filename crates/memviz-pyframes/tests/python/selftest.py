"""Compares every capture with Python's own stack, over every kind of call there is, at random."""

import asyncio
import functools
import gc
import random
import sys
import threading

import probe

R = random.Random(5)
walker = probe.start()
hit = probe.lib.probe_make_hit()
checks = bad = 0


def check():
    """The frame of `check` itself is left out: it moves between the calls."""
    global checks, bad
    expected = probe.python_stack()[1:]
    for mode in (1, 2):
        probe.lib.probe_mode(mode)
        hit()
        found = probe.stack(probe.lib.probe_last())[1:]
        checks += 1
        if found != expected:
            bad += 1
            if bad < 4:
                print("MISMATCH mode", mode, found[:6], expected[:6], len(found), len(expected))
    if checks % 7 == 0 and not probe.lib.probe_matches():
        bad += 1
        print("MISMATCH", probe.message())


class Init:
    def __init__(self, d):
        work(d)


class Call:
    def __call__(self, d):
        return work(d)


class Special:
    def __init__(self, d):
        self.d = d

    @property
    def p(self):
        return work(self.d)

    def __add__(self, other):
        return work(self.d)

    def __getitem__(self, i):
        return work(i)

    def __getattr__(self, name):
        return work(self.d)

    def __enter__(self):
        work(1)

    def __exit__(self, *exc):
        work(1)


def gen(d):
    for _ in range(2):
        check()
        yield work(d)


def gen2(d):
    yield from gen(d)
    yield from gen(d - 1)


async def coro(d):
    check()
    await asyncio.sleep(0)
    work(d)
    return await coro2(d - 1) if d > 0 else 0


async def coro2(d):
    check()
    return work(d)


async def agen(d):
    for i in range(2):
        check()
        yield i
        work(d)


async def amain(d):
    async for _ in agen(d):
        check()
    await asyncio.gather(coro(d), coro(d - 1))


def exc(d):
    try:
        work(d)
        raise ValueError
    except ValueError:
        check()
    finally:
        check()


open_gens = []


def suspended(d):
    g = gen2(d)
    next(g)
    open_gens.append(g)
    if len(open_gens) > 5:
        h = open_gens.pop(R.randrange(5))
        for _ in range(2):
            next(h, None)
    return work(d)


def in_with(d):
    with Special(d):
        check()
        return work(d)


WAYS = [
    lambda d: work(d),
    Init,
    lambda d: Call()(d),
    lambda d: list(map(work, [d])),
    lambda d: sorted([d], key=lambda x: (work(x), 1)[1]),
    lambda d: functools.partial(work, d)(),
    lambda d: [x for x in gen(d)],
    lambda d: sum((work(i), 1)[1] for i in (0, d)),
    lambda d: Special(d).p,
    lambda d: Special(d) + 1,
    lambda d: Special(1)[d],
    lambda d: Special(d).zzz,
    in_with,
    exc,
    suspended,
    lambda d: [work(i) for i in (0, d)],
    lambda d: eval("work(d)"),
    lambda d: (check(), work(d)),
]


def work(d):
    if d <= 0:
        check()
        return 1
    R.choice(WAYS)(d - 1)
    return 1


def rec(n, f):
    if n % 7 == 0:
        check()
    r = rec(n - 1, f) if n else f()
    if n % 5 == 0:
        check()
    return r


def main():
    for _ in range(300):
        work(R.randrange(1, 7))
    rec(150, lambda: work(3))
    rec(300, check)
    for _ in range(100):
        Init(1)
    for _ in range(10):
        asyncio.run(amain(3))

    def other():
        for _ in range(60):
            work(4)

    for _ in range(3):
        t = threading.Thread(target=other)
        t.start()
        t.join()
    gc.collect()
    for _ in range(300):
        exec("def f(x):\n  return work(x)\nf(%d)" % R.randrange(1, 4), globals())


def crate_self_test():
    names = {"probe": probe.lib.probe_matches}
    exec(compile(probe.lib.probe_self_test_source(), "self_test.py", "exec"), names)
    assert names["matches"] and names["probes"] >= 5, (names["probes"], probe.message())
    return names["probes"]


if __name__ == "__main__":
    probes = crate_self_test()
    main()
    nodes, size = probe.lib.probe_node_count(), probe.lib.probe_memory_bytes()
    print(f"{walker}; crate self-test probes {probes}; checks {checks} mismatches {bad}; nodes {nodes}, {size} bytes")
    sys.exit(bad > 0)
