"""Runs every script with this interpreter, one process each; prints what each said, exits 1 if one failed."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MINOR = sys.version_info[1]

SCRIPTS = [
    ["selftest.py"],
    ["traced.py", "trace"],
    ["traced.py", "profile"],
    ["traced.py", "monitoring"],
    ["greenlets.py"],
    ["threads.py"],
    ["churn.py"],
    ["gil.py"],
    ["fork.py"],
    ["unknown_version.py"],
]
# The tables of the probe that are right in one release are wrong in every other.
LAYOUTS = ["WildFrame", "WildPrevious", "Misaligned"]
LAYOUTS += [f"Like3{minor}" for minor in (10, 11, 12, 13) if minor != MINOR]


def run(script):
    command = [sys.executable, os.path.join(HERE, script[0]), *script[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = done.stdout.strip()
    if done.returncode:
        print(f"FAILED ({done.returncode}): {' '.join(script)}\n{said}")
    else:
        print(f"{' '.join(script)}: {said}".replace("\n", "; "))
    return done.returncode != 0


print(f"== {sys.version.split()[0]} {sys.executable}", flush=True)
failed = [run(script) for script in SCRIPTS + [["wrong_layout.py", layout] for layout in LAYOUTS]]
sys.exit(any(failed))
