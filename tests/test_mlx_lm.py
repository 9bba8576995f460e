"""mlx-lm, unchanged, under `memviz run`: a tiny model generates and is fine-tuned.

The model is made by `real/make_tiny_llama.py` of the cases. Recorded and unrecorded runs must print the same.
"""

import pickle
import re

import pytest
from running import run_python
from test_cases import CASES
from venvs import MLX_LM, Spec

SPEC = Spec(extras=(MLX_LM,))
MAKE_MODEL = CASES / "real" / "make_tiny_llama.py"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

pytestmark = pytest.mark.skipif(
    not MAKE_MODEL.is_file(), reason=f"no {MAKE_MODEL}; set MEMVIZ_CASES to the folder with the cases"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm") / "model"
    done = run_python([MAKE_MODEL, folder], SPEC, env=OFFLINE)
    assert done.returncode == 0, str(done)
    return folder


def commands(model):
    return {
        "generate": ["mlx_lm", "generate", "--model", model, "--prompt", "hello", "--max-tokens", 40, "--temp", 0],
        "lora": ["mlx_lm", "lora", "--model", model, "--train", "--data", model / "data", "--iters", 4]
        + ["--batch-size", 2, "--num-layers", 2, "--steps-per-report", 2, "--steps-per-eval", 4, "--val-batches", 2],
    }


def without_timing(text):
    """The lines it prints, without colours; measured speeds, times and memory, which depends on speed, are taken out."""
    text = re.sub(r"\x1b\[[\d;]*m", "", text)
    return re.sub(r"[\d.]+ (tokens-per-sec|GB)|[\d.]+s\b|(?<=[▼▲])\s+[\d,]+", "#", text).splitlines()


@pytest.mark.parametrize("command", ["generate", "lora"])
def test_same_output_and_the_peak_is_at_mlx_lm_s_lines(model, tmp_path, command):
    arguments = commands(model)[command]
    out = tmp_path / "run.pickle"
    runs = []
    for before in ([], ["mlx_memviz", "run", "-q", "-o", out, "-m"]):
        done = run_python(["-m", *before, *arguments], SPEC, cwd=tmp_path, env=OFFLINE, timeout=300)
        assert done.returncode == 0, str(done)
        runs.append(without_timing(done.stdout))
    assert runs[0] == runs[1]
    assert len(runs[0]) > 2
    checked = run_python(["-m", "mlx_memviz", "check", out], SPEC)
    assert checked.returncode == 0, str(checked)
    largest = live_at_peak(pickle.loads(out.read_bytes()))[0]
    files = [frame["filename"] for frame in largest["frames"]]
    assert any("/mlx_lm/" in file for file in files), files


def live_at_peak(snapshot):
    """Allocations that were live when most bytes were, the largest first."""
    (entries,) = snapshot["device_traces"]
    live, total, peak, at_peak = {}, 0, 0, []
    for entry in entries:
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry
            total += entry["size"]
            if total > peak:
                peak, at_peak = total, list(live.values())
        elif entry["action"] == "free_completed" and entry["addr"] in live:
            total -= live.pop(entry["addr"])["size"]
    return sorted(at_peak, key=lambda entry: -entry["size"])
