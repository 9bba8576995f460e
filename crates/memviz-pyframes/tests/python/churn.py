"""Four hundred short-lived functions: memory of code objects is reused, yet no two stacks become one."""

import gc
import sys

import probe

print(probe.start())
hit = probe.lib.probe_make_hit()
for mode in (1, 2):
    probe.lib.probe_mode(mode)
    seen = {}
    for i in range(400):
        names = {"hit": hit}
        exec(f"def f{i}():\n    hit()\nf{i}()", names)
        node = probe.lib.probe_last()
        file, function, line, _ = probe.site(node)
        assert (function, line) == (f"f{i}", 2), (i, function, line)
        seen[node] = i
        del names
        if i % 50 == 0:
            gc.collect()
    assert len(seen) == 400, len(seen)
    print("mode", mode, "distinct ids", len(seen), "of 400")


# Equal stacks have equal ids, other lines of one function have others.
def twice():
    ids = []
    for _ in range(3):
        hit()
        ids.append(probe.lib.probe_last())
    hit()
    return ids, probe.lib.probe_last()


for mode in (1, 2):
    probe.lib.probe_mode(mode)
    (ids, other) = twice()
    assert len(set(ids)) == 1 and other not in ids, (ids, other)


# Offsets beyond 2^18 code units do not fit the packed key of 3.10.
LONG = 140_000
names = {"hit": hit, "last": probe.lib.probe_last, "ids": []}
source = "x = 0\n" * LONG + "hit(); ids.append(last())\n" * 2
long_code = compile(source, "long.py", "exec")
for mode in (1, 2):
    probe.lib.probe_mode(mode)
    names["ids"].clear()
    exec(long_code, names)
    exec(long_code, names)
    first, second, first_again, second_again = names["ids"]
    assert [probe.site(node)[2] for node in (first, second)] == [LONG + 1, LONG + 2]
    assert first != second, "two lines, two ids"
    assert probe.stack(first)[0] == probe.stack(first_again)[0]
    assert probe.stack(second)[0] == probe.stack(second_again)[0]
print("long code ok")


# A pending exception and the column survive resolving.
def columns():
    return (1, hit())


columns()
node = probe.lib.probe_last()
try:
    raise KeyError
except KeyError:
    file, function, line, column = probe.site(node)
    assert sys.exc_info()[0] is KeyError
assert file == __file__ and function == "columns", (file, function)
assert line == columns.__code__.co_firstlineno + 1
assert column == (16 if sys.version_info >= (3, 11) else 0), column
print("sites right")


# Deep stacks are not cut.
sys.setrecursionlimit(15_000)


def deep(n):
    return deep(n - 1) if n else hit()


import threading  # noqa: E402

threading.stack_size(512 << 20)
for mode in (1, 2):
    probe.lib.probe_mode(mode)
    t = threading.Thread(target=deep, args=(10_000,))
    t.start()
    t.join()
    depth = len(probe.stack(probe.lib.probe_last()))
    assert depth > 10_000, depth
print("depth", depth, "not cut")


# After shut_down nothing is captured, and what was stays readable.
probe.lib.probe_mode(1)
hit()
kept = probe.lib.probe_last()
probe.lib.probe_shut_down()
hit()
assert probe.lib.probe_last() == 0 and not probe.lib.probe_holds_gil()
assert probe.stack(kept) and probe.site(kept)[0] == __file__
print("shut down")
