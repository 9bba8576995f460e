"""Greenlets: several chains of frames on one thread state, each with its own root."""

import os
import subprocess
import sys


def fetch():
    """From the package index, once, into the folder that PYFRAMES_SITE names."""
    site = os.environ.get("PYFRAMES_SITE", "")
    site = os.path.join(site, sys.version.split()[0]) if site else ""
    if site and not os.path.isdir(os.path.join(site, "greenlet")):
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", site, "greenlet"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.path.append(site)


fetch()
try:
    import greenlet
except ImportError as error:
    print("SKIP greenlets:", error)
    sys.exit()
import selftest  # noqa: E402


def loop(n):
    for i in range(n):
        selftest.work(3)
        greenlet.getcurrent().parent.switch(i)


def main():
    lets = [greenlet.greenlet(loop) for _ in range(4)]
    for let in lets:
        let.switch(30)
    for _ in range(29):
        for let in lets:
            selftest.check()
            let.switch()


main()
print(f"greenlet {greenlet.__version__}: checks {selftest.checks} mismatches {selftest.bad}")
sys.exit(selftest.bad > 0)
