"""Runs the stages of the GPU check, each in processes of its own with a time limit, and goes on when one fails.

    python3 ci/gpu/run.py --out OUT [--seconds 540] [STAGE ...]

Writes OUT/report.txt (everything printed, also while it runs), OUT/facts.json (the JSON line that each program ends with)
and the recordings. Needs MLX for CUDA, mlx-lm and, for `torch`, PyTorch in this Python; `README.md` says how they get there.
Does not judge the numbers: exit status 1 only says that a program failed.
"""

import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CASES = pathlib.Path(os.environ.get("MEMVIZ_CASES", ROOT.parent / "shared" / "cases"))
PROGRAMS = ROOT / "tests" / "programs"
MEMVIZ = ["-m", "mlx_memviz"]
# Recordings above are compressed when their stage is over: files of over 16 MiB may not come back from a machine.
PACKED_BYTES = 6 << 20
# Text that a longer output is cut to, from its middle.
KEPT = 60_000


def stages(out: pathlib.Path) -> dict[str, list[tuple[str, int, list]]]:
    """By name: programs as (label, seconds, arguments of Python)."""
    model = out.parent / "memviz-gpu-model"
    make_model = [CASES / "real" / "make_tiny_llama.py", model, "--layers", 8, "--dim", 1024]
    generate = [HERE / "lm_generate.py", model, 500]
    return {
        "doctor": [("doctor", 90, [*MEMVIZ, "doctor"])],
        "smoke": [("smoke", 90, [HERE / "smoke.py"])],
        "broad": [(f"broad {number}", 90, [PROGRAMS / "broad.py"]) for number in range(1, 6)]
        + [("broad arrays", 90, [PROGRAMS / "broad.py", "arrays"]), ("late", 60, [PROGRAMS / "attach_late.py"])],
        "oom": [
            ("oom, not recorded", 90, [HERE / "oom.py"]),
            ("oom, recorded", 120, [*MEMVIZ, "run", "-o", out / "oom.pickle", HERE / "oom.py"]),
            ("oom, check", 60, [*MEMVIZ, "check", out / "oom.pickle"]),
            ("oom, its events", 60, [HERE / "failures.py", out / "oom.pickle"]),
        ],
        "train": [
            ("train", 180, [HERE / "train.py", "large", out / "train.pickle"]),
            ("train, small", 60, [HERE / "train.py", "small", out / "small_train.pickle"]),
        ],
        "generate": [
            ("model", 90, make_model),
            ("generate, not recorded", 60, generate),
            ("generate", 90, [*MEMVIZ, "run", "-o", out / "generate.pickle", *generate]),
            ("generate, check", 60, [*MEMVIZ, "check", out / "generate.pickle"]),
            ("generate, small", 60, [HERE / "generate.py", out / "small_generate.pickle"]),
        ],
        "torch": [
            ("ops, mlx", 200, [HERE / "ops_mlx.py"]),
            ("ops, torch", 200, [HERE / "ops_torch.py"]),
        ],
        "text": [
            ("text, cpu", 150, ["-m", "mlx_memviz.bench", "--only", "text", "--rounds", 7, "--json"]),
            (
                "text, gpu",
                150,
                ["-m", "mlx_memviz.bench", "--only", "text", "--rounds", 7, "--json", "--device", "gpu"],
            ),
        ],
    }


class Report:
    """What is printed goes to the file at once: a run that is cut off has told all it knew."""

    def __init__(self, out: pathlib.Path):
        self._file = (out / "report.txt").open("a")
        self._facts_path = out / "facts.json"
        self._facts: dict[str, object] = {}

    def say(self, text: str) -> None:
        print(text, flush=True)
        print(text, file=self._file, flush=True)

    def keep(self, label: str, facts: object) -> None:
        self._facts[label] = facts
        self._facts_path.write_text(json.dumps(self._facts, indent=1))


def run(report: Report, label: str, seconds: float, arguments: list) -> bool:
    """Runs one program; says what it printed, and how it ended."""
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    command = [sys.executable, *(str(argument) for argument in arguments)]
    report.say(f"\n=== {label}: {' '.join(command[1:])}")
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=seconds, check=False
        )
        text, status = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as error:
        text, status = (error.stdout or b"").decode(errors="replace"), "too slow"
    if len(text) > KEPT:
        text = f"{text[: KEPT // 2]}\n… {len(text) - KEPT} characters left out …\n{text[-KEPT // 2 :]}"
    report.say(text.rstrip())
    report.say(f"--- {label}: status {status}, {time.monotonic() - start:.1f} s of {seconds:.0f}")
    facts = last_json(text)
    report.keep(label, {"status": status, "facts": facts})
    return status == 0


def pack(out: pathlib.Path) -> None:
    for path in out.glob("*.pickle"):
        if path.stat().st_size > PACKED_BYTES:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), 6))
            path.unlink()


def last_json(text: str) -> object:
    """The JSON of the last line, or of the whole text; None if there is none."""
    for candidate in (text, *reversed(text.strip().splitlines()[-3:])):
        try:
            return json.loads(candidate)
        except json.JSONDecodeError:
            continue
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=540, help="stages that would begin later are left out")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="default: all, in order")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    known = stages(out)
    unknown = set(options.stages) - set(known)
    if unknown:
        parser.error(f"unknown stages {sorted(unknown)}; expected some of {list(known)}")
    report, start, failed = Report(out), time.monotonic(), []
    for stage in options.stages or known:
        for label, seconds, arguments in known[stage]:
            left = options.seconds - (time.monotonic() - start)
            if left < 10:
                report.say(f"\n=== {label}: left out, no time")
                failed.append(label)
            elif not run(report, label, min(seconds, left), arguments):
                failed.append(label)
        pack(out)
    report.say(f"\nfailed: {failed or 'nothing'}; {time.monotonic() - start:.0f} s in all")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
