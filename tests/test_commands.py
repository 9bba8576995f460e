"""What `memviz peak`, `growth`, `leaks` and `report` say about the programs of `tests/test_cases.py`: the fact that each
program states must be in the JSON, at the right line, with the right bytes and count.
"""

import json

import pytest
from recorded_cases import KIB, MIB, recorded
from running import run_python
from test_cases import CASES

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no programs in {CASES}; set MEMVIZ_CASES to the folder with them"
)


def main_loop(growth: dict) -> dict:
    return growth["loops"][growth["main"]]


def assert_adds_up(peak: dict) -> None:
    for unit in ("bytes", "count"):
        groups = sum(group[unit] for group in peak["groups"]) + peak["rest"][unit]
        assert groups == peak["total"][unit]
        assert peak["temporary"][unit] + peak["surviving"][unit] == peak["total"][unit]


def test_01_lazy_loss_accumulation():
    case = recorded("01")
    loop = main_loop(case.ask("growth", "--limit", "1GB"))
    assert (loop["verdict"], loop["steps"], loop["bytes"]["slope"]) == ("grows", 31, MIB + 4)
    first = loop["lines"][0]
    assert case.is_at(first, "batch")
    assert first["bytes_trend"]["slope"] == MIB
    assert loop["steps_to_limit_bytes"] in range(915, 930)
    peak = case.ask("peak")
    assert_adds_up(peak)
    assert peak["moment"]["active_bytes"] == case.facts["peak"]
    assert case.row(peak["groups"], "batch")["temporary"]["bytes"] == 0
    loss = case.row(peak["groups"], "loss")
    assert loss["temporary"]["bytes"] >= loss["bytes"] - KIB, "the x*x are temporaries of the late evaluation"
    assert peak["evaluated_at"]["line"] == case.line("final_eval")
    assert case.ask("leaks")["leaked"] == {"bytes": 4, "count": 1}
    assert case.ask("report")["next"][0]["command"] == "growth"


def test_02_list_keeps_logits():
    case = recorded("02")
    loop = main_loop(case.ask("growth"))
    assert (loop["verdict"], loop["steps"], loop["bytes"]["slope"]) == ("grows", 39, MIB + 4)
    assert case.is_at(loop["lines"][0], "logprobs")
    assert loop["lines"][0]["buffers_trend"]["slope"] == 1
    kept = case.row(case.ask("peak")["groups"], "logprobs")
    assert kept["bytes"] - kept["temporary"]["bytes"] == 40 * MIB
    assert kept["count"] - kept["temporary"]["count"] == 40
    left = case.ask("leaks")
    assert case.row(left["lines"], "argmax")["count"] == 40
    assert left["leaked"] == {"bytes": 160, "count": 40}
    moment = f"{case.ask('peak')['moment']['time_nanos'] / 1e9:.9f}s"
    held = case.ask("leaks", "--idle", f"start:{moment}", "--fail-over", "40MiB", status=1)
    assert held["is_over"] is True
    case.ask("leaks", "--fail-over", "1KB")


def test_05_default_cache_limit_events():
    case = recorded("05")
    peak = case.ask("peak", "--reserved")
    assert_adds_up(peak)
    assert peak["moment"]["active_bytes"] + peak["moment"]["cached_bytes"] == 64 * MIB + 4
    assert case.ask("peak")["moment"]["active_bytes"] == case.facts["peak"]
    end = case.ask("peak", "--at", "last")
    assert end["total"] == {"bytes": 0, "count": 0}


def test_07_adam_state_init():
    case = recorded("07")
    left = case.ask("leaks")
    assert 48 * MIB <= left["leaked"]["bytes"] < 48 * MIB + KIB
    # The new parameters take the old ones' buffers, which keep the line that built them.
    assert case.row(left["lines"], "params")["bytes"] == 16 * MIB
    assert 32 * MIB <= case.row(left["lines"], "update")["bytes"] < 32 * MIB + KIB
    assert case.row(left["lines"], "grads")["bytes"] == 0
    peak = case.ask("peak")
    assert peak["moment"]["active_bytes"] == max(case.facts["peak_in_step"])
    grads = case.row(peak["groups"], "grads")
    assert (grads["bytes"], grads["temporary"]["bytes"]) == (16 * MIB, 0), "a name holds them"
    tree = case.ask("peak", "--frames", "all", "--top", "100")["tree"]
    assert any("mlx/optimizers" in call["file"] for call in tree)


def test_08_kv_concat_vs_prealloc():
    case = recorded("08")
    peak = case.ask("peak")
    assert case.row(peak["groups"], "prealloc")["bytes"] == 14 * MIB, "6 old and 8 new"
    assert case.row(peak["groups"], "pad")["bytes"] in (2 * MIB, 2 * MIB + 4)
    left = case.ask("leaks")
    held = [case.row(left["lines"], marker) for marker in ("concat", "prealloc", "write")]
    assert sorted(row["bytes"] for row in held) == [0, 0, 8 * MIB]


def test_12_missing_eval_train_loop():
    case = recorded("12")
    growth = case.ask("growth")
    lazy, *_, eager = growth["loops"]
    assert growth["loops"][growth["main"]] == lazy
    assert (lazy["verdict"], lazy["steps"]) == ("grows", 15)
    assert MIB <= lazy["bytes"]["slope"] <= MIB + 64
    assert case.is_at(lazy["lines"][0], "batch")
    assert eager["verdict"] in ("flat", "warm_up")
    assert eager["bytes"]["slope"] == 0
    assert lazy["lines"][0]["bytes_trend"]["last"] >= 14 * MIB, "the sixteenth is live when the loop has ended"
    peak = case.ask("peak")
    batches = case.row(peak["groups"], "batch")
    assert batches["bytes"] == batches["count"] * MIB
    assert batches["count"] in range(8, 17), "MLX's threads free the first batches while the backward pass allocates"
    assert peak["moment"]["active_bytes"] == case.facts["lazy_peak"]
    assert peak["evaluated_at"]["line"] == case.line("late_eval")


def test_15_concatenate_parts():
    case = recorded("15")
    peak = case.ask("peak")
    assert peak["total"] == {"bytes": 64 * MIB, "count": 9}
    part, join = case.row(peak["groups"], "part"), case.row(peak["groups"], "join")
    assert (part["bytes"], part["count"]) == (32 * MIB, 8)
    assert (join["bytes"], join["count"], join["primitives"][0]["primitive"]) == (32 * MIB, 1, "Concatenate")
    by = case.ask("peak", "--by", "primitive")["groups"]
    assert {group["name"]: group["bytes"] for group in by} == {"Concatenate": 32 * MIB, "Full": 32 * MIB}


def test_19_threads_hold_results():
    case = recorded("19")
    peak = case.ask("peak")
    held = case.row(peak["groups"], "alloc")
    assert 16 * MIB <= held["bytes"] - held["temporary"]["bytes"] <= 16 * MIB + 16
    primitives = {one["primitive"]: one["count"] for one in held["primitives"]}
    assert primitives["Full"] == 16
    left = case.ask("leaks")
    assert case.row(left["lines"], "alloc")["bytes"] == 0
    assert case.row(left["lines"], "lazy_main")["bytes"] >= MIB


def test_20_two_streams():
    case = recorded("20")
    peak = case.ask("peak", "--at", "peak")
    for marker in ("a", "a2", "b"):
        row = case.row(peak["groups"], marker)
        assert 4 * MIB <= row["bytes"] <= 4 * MIB + 16, marker
        assert row["temporary"]["bytes"] <= 16, "Python names them"
    left = case.ask("leaks")
    assert [case.row(left["lines"], marker)["bytes"] for marker in ("a", "a2", "b")] == [0, 0, 4 * MIB]


def test_28_cpu_runahead_peak():
    case = recorded("28")
    peak = case.ask("peak")
    assert_adds_up(peak)
    assert peak["moment"]["active_bytes"] == max(case.facts["peak_once"], case.facts["peak_each"])
    chain = case.row(peak["groups"], "matmul")
    assert chain["count"] >= 2
    assert chain["temporary"]["bytes"] >= chain["bytes"] - 2 * MIB
    assert peak["evaluated_at"]["line"] in (case.line("eval_once"), case.line("eval_each"))


def test_31_async_eval_in_flight():
    case = recorded("31")
    peak = case.ask("peak")
    assert peak["moment"]["active_bytes"] == max(case.facts["async_peak"], case.facts["sync_peak"])
    assert case.row(peak["groups"], "next")["bytes"] >= 8 * MIB
    loop = main_loop(case.ask("growth"))
    assert loop["verdict"] != "grows"
    left = case.ask("leaks")
    assert [case.row(left["lines"], marker)["bytes"] for marker in ("w", "init")] == [4 * MIB, 0]


def test_33_nn_module_attribution():
    case = recorded("33")
    peak = case.ask("peak", "--top", "100")
    assert {row["line"] for row in peak["groups"]} <= {case.line(name) for name in ("model", "input", "forward")}
    forward = case.row(peak["groups"], "forward")
    assert forward["bytes"] >= MIB
    tree = case.ask("peak", "--frames", "all", "--top", "100")["tree"]
    linear = [call for call in tree if call["file"].endswith("mlx/nn/layers/linear.py")]
    assert linear, "library frames are folded, not lost"
    modules = {row["name"]: row for row in case.ask("peak", "--by", "module", "--top", "100")["groups"]}
    assert any(name.startswith("TransformerEncoderLayer") and name.endswith("Linear") for name in modules)
    shapes = case.ask("peak", "--by", "shape", "--top", "100")["groups"]
    assert any(row["name"].startswith("float32 [") for row in shapes)
    left = case.ask("leaks")
    assert case.row(left["lines"], "input")["bytes"] == 128 * KIB
    assert case.row(left["lines"], "forward")["bytes"] == 128 * KIB


PYTHON = """
import json, sys, mlx_memviz
trace = mlx_memviz.load(sys.argv[1])
print(json.dumps([trace.peak(at="last", by="primitive", top=3), trace.growth(every="eval", limit="1GB"),
                  trace.leaks(fail_over="1KB"), trace.report()]))
"""


def test_python_gives_what_the_command_line_prints():
    case = recorded("02")
    done = run_python(["-c", PYTHON, case.file])
    assert done.returncode == 0, str(done)
    assert json.loads(done.stdout) == [
        case.ask("peak", "--at", "last", "--by", "primitive", "--top", "3"),
        case.ask("growth", "--every", "eval", "--limit", "1GB"),
        case.ask("leaks", "--fail-over", "1KB"),
        case.ask("report"),
    ]


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [
        ("peak", ["--at", "3"], "no steps"),
        ("peak", ["--at", "yesterday"], "expected start, last, peak"),
        ("growth", ["--every", "step"], "mlx_memviz.step()"),
        ("growth", ["--every", "0s"], "a step of 0 s"),
        ("leaks", ["--idle", "last:start"], "before the first"),
        ("leaks", ["--fail-over", "many"], "expected"),
    ],
)
def test_what_cannot_be_answered_is_said(command, options, text):
    done = run_python(["-m", "mlx_memviz", command, recorded("02").file, *options])
    assert done.returncode == 2, str(done)
    assert text in done.stderr


def test_a_file_that_is_no_recording_is_an_error(tmp_path):
    for content in (b"", b"no recording", b"\x80\x04N."):
        file = tmp_path / "file.pickle"
        file.write_bytes(content)
        for command in ("report", "peak", "growth", "leaks"):
            done = run_python(["-m", "mlx_memviz", command, file])
            assert done.returncode == 2, str(done)
            assert "cannot read" in done.stderr
