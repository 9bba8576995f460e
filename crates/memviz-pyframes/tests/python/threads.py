"""Many threads that switch often, more of them than shadows are kept, some ending while others begin."""

import os
import sys
import threading

import selftest

sys.setswitchinterval(1e-5)


def short():
    selftest.rec(10, selftest.check)


def long_lived(barrier):
    barrier.wait()
    for _ in range(3):
        selftest.rec(12, lambda: selftest.work(2))
    barrier.wait()


def main():
    count = 80
    barrier = threading.Barrier(count)
    threads = [threading.Thread(target=long_lived, args=(barrier,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(100):
        thread = threading.Thread(target=short)
        thread.start()
        thread.join()


def check():
    """`selftest.check` keeps the captured id in a global that threads share; here each reads its own at once."""
    expected = selftest.probe.python_stack()[1:]
    for capture in (selftest.probe.lib.probe_capture, selftest.probe.lib.probe_capture_public):
        node = capture()
        with lock:  # the buffer of `stack` is shared
            found = selftest.probe.stack(node)[1:]
            results.append(found == expected)


lock = threading.Lock()
results = []
selftest.check = check
main()
print(f"{selftest.walker}: checks {len(results)} mismatches {results.count(False)}")
sys.stdout.flush()
os._exit(not all(results))
