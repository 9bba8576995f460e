"""Realistic memory problems, as programs that do not know of us: the facts that each states must be in its recording.

The programs are in $MEMVIZ_CASES, else in ../shared/cases beside the repository. Each marks lines with `# L:name` and says in
its header what a recording must show; here one function per program checks that. All of them also check, for every time
the program read MLX's active or peak memory, that our events give the same number.
"""

import os
import pickle
from pathlib import Path

import pytest
from replay import Recorded, is_alloc, is_free
from running import PROGRAMS, run_python
from venvs import ROOT

CASES = Path(os.environ.get("MEMVIZ_CASES", ROOT.parent / "shared" / "cases"))
KIB, MIB = 1 << 10, 1 << 20

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no programs in {CASES}; set MEMVIZ_CASES to the folder with them"
)

# What depends on when worker threads ran, with and without us: ranges of these are checked by the programs themselves.
TIMING = {
    "01_lazy_loss_accumulation": {"peak"},
    "02_list_keeps_logits": {"peak"},
    "07_adam_state_init": {"peak_in_step"},
    "10_compile_per_shape_constants": {"peak"},
    "12_missing_eval_train_loop": {"lazy_peak", "eager_peak"},
    "19_threads_hold_results": {"peak", "streams"},
    "20_two_streams": {"peak_fused"},
    "28_cpu_runahead_peak": {"peak_once"},
    "31_async_eval_in_flight": {"async_peak", "async_max_seen"},
    "33_nn_module_attribution": {"forward_peak"},
}


@pytest.fixture
def case(request, tmp_path):
    """Runs the program named by the test, alone and recorded; gives the recording."""
    number = request.function.__name__.split("_")[1]
    (script,) = CASES.glob(f"{number}_*.py")
    plain = run_python([script], cwd=tmp_path)
    assert plain.returncode == 0, str(plain)
    out = tmp_path / "recorded.pickle"
    recorded = run_python([PROGRAMS / "record_script.py", out, script], cwd=tmp_path)
    assert recorded.returncode == 0, str(recorded)
    timing = TIMING.get(script.stem, set())
    assert recorded.facts["ok"] is True, recorded.facts
    without_timing = [{k: v for k, v in done.facts.items() if k not in timing} for done in (plain, recorded)]
    assert without_timing[0] == without_timing[1]
    trace = Recorded(script, pickle.loads(out.read_bytes()))
    trace.facts = recorded.facts
    assert trace.hooked_after == 0
    assert trace.stats["lost"] == 0
    trace.assert_readings_agree()
    assert trace.check["peak_active"] == max(trace.active)
    return trace


def sizes(events):
    return [event["size"] for event in events]


def test_01_lazy_loss_accumulation(case):
    before, after = case.read("before, peak_before")[0], case.read("after =")[0]
    kept = case.live_at("batch", until=before, size=MIB)
    assert len(kept) == 32
    assert len(case.live(until=before)) == 1 + 32 * 2, "total, and a batch and its scalar for each step"
    for marker in ("loss", "accumulate"):
        assert case.allocs(marker, MIB, until=before) == []
    squares = case.allocs("loss", MIB, since=before, until=after)
    assert len(squares) == 32
    assert {event["primitive"] for event in squares} == {"Multiply"}
    assert all(case.line("final_eval") in case.own_lines(event, "evaluated_at") for event in squares)
    assert len(case.frees_of(squares)) == 32
    assert sizes(case.live(until=after)) == [4]


def test_02_list_keeps_logits(case):
    held, after = case.read("held =")[0], case.read("after =")[0]
    logprobs = [event for event in case.live(until=held) if event["size"] == MIB]
    assert len(logprobs) == 40
    assert {case.own_lines(event)[-1] for event in logprobs} == {case.line("logprobs")}
    tokens = case.live_at("argmax", until=held)
    assert [(event["size"], event["dtype"]) for event in tokens] == [(4, "uint32")] * 40
    assert len(case.live(until=held)) == 80
    dropped = case.events[held:after]
    assert [(event["action"], event["size"]) for event in dropped] == [("FreeActiveToOS", MIB)] * 40
    assert {case.own_lines(event, "evaluated_at")[-1] for event in dropped} == {case.line("drop")}


def test_03_view_keeps_base(case):
    (pinned_at,) = case.read("a2 =")
    (base,) = [event for event in case.live(until=pinned_at) if event["size"]]
    assert base["size"] == 64 * MIB
    assert case.own_lines(base) == [case.line("base")]
    assert [event for event in case.allocs("view") if event["size"]] == []
    assert sizes(case.allocs("compact")) == [4096]
    assert len(case.frees_of([base])) == 1
    (end,) = case.live(until=case.read("a4 =")[0])
    assert case.own_lines(end) == [case.line("compact")]
    assert end["size"] == 4096


def test_05_default_cache_limit_events(case):
    three = case.allocs("three", 12 * MIB)
    assert [event["action"] for event in three] == ["AllocNew"] * 3
    assert [event["action"] for event in case.frees_of(three)] == ["FreeActiveToCache"] * 2 + ["FreeActiveToOS"]
    (big,) = case.allocs("big", 40 * MIB)
    assert [event["action"] for event in case.frees_of([big])] == ["FreeActiveToOS"]
    (reuse,) = case.allocs("reuse", 12 * MIB)
    assert reuse["action"] == "AllocReuse"
    (near,) = case.allocs("near", 12 * MIB)
    assert (near["action"], near["requested"]) == ("AllocReuse", 12 * MIB - 4096)
    (miss,) = case.allocs("miss", 6 * MIB)
    assert miss["action"] == "AllocNew"
    assert {reuse["address"], near["address"]} < {event["address"] for event in three}
    evicted = [event for event in case.events if event["action"] == "FreeCacheToOS"]
    assert sum(sizes(evicted)) >= 26 * MIB
    shrink = case.line("shrink")
    assert {case.own_lines(event, "evaluated_at")[-1] for event in evicted if event["evaluated_at"]} <= {shrink}
    cached = replayed_cache(case)
    for reading in case.readings:
        if reading.name == "get_cache_memory":
            assert reading.value in cached[reading.before : reading.after + 1], reading


def replayed_cache(case):
    """Cached bytes after each number of events."""
    change = {"FreeActiveToCache": 1, "AllocReuse": -1, "FreeCacheToOS": -1}
    cached = [0]
    for event in case.events:
        cached.append(cached[-1] + change.get(event["action"], 0) * event["size"])
    return cached


def test_07_adam_state_init(case):
    size = 4 * MIB
    first, *later = case.read("live.append")
    assert len(case.allocs("params", size)) == 4
    assert len(case.live_at("params", until=first, size=size)) == 4, "the new parameters take the old ones' buffers"
    state = case.live_at("update", until=first, size=size)
    assert len(state) == 8, "m and v of four parameters"
    assert all(any("mlx/optimizers" in file for file, _, _ in event["traceback"]) for event in state)
    gradients = case.allocs("grads", size)
    assert len(gradients) == 4 * 4
    assert len(case.frees_of(gradients)) == 16
    for moment in (first, *later):
        assert case.live_at("grads", until=moment, size=size) == []
    live = [case.active[moment] for moment in (first, *later)]
    assert len(set(live)) == 1
    assert 48 * MIB <= live[0] < 48 * MIB + KIB


def test_08_kv_concat_vs_prealloc(case):
    step = 64 * KIB
    concat = case.allocs("concat")
    assert sizes(concat) == [step * n for n in range(2, 129)]
    assert sum(sizes(concat)) == 8255 * step
    assert sizes(case.allocs("pad", 2 * MIB)) == [2 * MIB] * 4
    assert [size for size in sizes(case.allocs("prealloc")) if size > KIB] == [4 * MIB, 6 * MIB, 8 * MIB]
    assert [size for size in sizes(case.allocs("write")) if size > KIB] == []
    for start in ("concat_live", "pre_live"):
        live = [event for event in case.live(until=case.read(start)[0]) if event["size"] == 8 * MIB]
        assert len(live) == 1


def test_10_compile_per_shape_constants(case):
    first = case.read("curve.append")[-1]
    second, third, end = (case.read(f"{name} =")[0] for name in ("second", "third", "end"))
    for moment in (first, second, third):
        assert sizes(case.live_at("body", until=moment)) == [4] * 150
        assert case.active[moment] == 600
    by_line = {}
    for event in case.live(until=third):
        by_line[case.own_lines(event)[-1]] = by_line.get(case.own_lines(event)[-1], 0) + 1
    assert by_line == {case.line("body"): 150}
    assert case.live(until=end) == []


def test_12_missing_eval_train_loop(case):
    before, after = case.read("before, peak_before")[0], case.read("after, lazy_peak")[0]
    assert len(case.live_at("batch", until=before, size=MIB)) == 16
    assert len(case.live_at("weights", until=before, size=MIB)) == 1
    for marker in ("loss", "grad", "update"):
        assert case.live_at(marker, until=before, size=MIB) == []
    late = [event for event in case.events[before:after] if is_alloc(event) and event["size"] == MIB]
    # Gradients and new weights may take over the buffer of a forward array, which then keeps the forward line.
    possible = {case.line(marker) for marker in ("loss", "grad", "update")}
    assert case.line("loss") in {case.own_lines(event)[-1] for event in late} <= possible
    assert all(case.line("late_eval") in case.own_lines(event, "evaluated_at") for event in late)
    weights, new = [case.own_lines(event)[-1] for event in case.live(until=after) if event["size"] == MIB]
    assert weights == case.line("weights")
    assert new in possible


def test_15_concatenate_parts(case):
    parts = case.live_at("part", until=case.read("a_parts")[0], size=4 * MIB)
    assert len(parts) == 8
    assert sizes(case.allocs("join")) == [32 * MIB]
    dropped = case.read("a_drop")[0]
    big = [event for event in case.live(until=dropped) if event["size"] > KIB]
    assert [case.own_lines(event)[-1] for event in big] == [case.line("join")]
    to_numpy = case.read("a_np")[0]
    assert [event for event in case.events[dropped:to_numpy] if event["size"] > KIB] == []
    filling = case.allocs("fill", 4 * MIB)
    assert len(filling) == 8
    assert {case.own_lines(event)[-1] for event in filling} == {case.line("part")}


def test_17_numpy_view_pins_buffer(case):
    size = 20 * MIB
    arrays = case.allocs("array", size)
    assert len(arrays) == 3
    (pinned,) = case.live(until=case.read("m1 =")[0])[-1:]
    assert (pinned["size"], case.own_lines(pinned)[-1]) == (size, case.line("array"))
    freed_at = [case.own_lines(event, "evaluated_at")[-1] for event in case.frees_of(arrays)]
    assert freed_at[:2] == [case.line("drop_view"), case.line("drop_mv")]
    for start in ("m2 =", "m4 =", "m5 ="):
        assert [event for event in case.live(until=case.read(start)[0]) if event["size"] == size] == []


def test_19_threads_hold_results(case):
    joined, released = case.read("live =")[0], case.read("released =")[0]
    held = case.live_at("alloc", until=joined, size=MIB)
    by_thread = {}
    for event in held:
        by_thread.setdefault(event["thread"], []).append(event["stream"])
    assert {thread: len(streams) for thread, streams in by_thread.items()} == {f"w{n}": 4 for n in range(4)}
    streams = [set(streams) for streams in by_thread.values()]
    assert all(len(one) == 1 for one in streams)
    assert len(set.union(*streams)) == 4
    freed = [event for event in case.events[joined:released] if is_free(event) and event["size"] == MIB]
    assert len(freed) == 16
    assert {event["thread"] for event in freed} == {"MainThread"}
    (foreign,) = case.read("after_error =")
    assert [event for event in case.events[released:foreign] if event["size"] == MIB] == []
    main = case.live_at("lazy_main", until=case.read("after_main =")[0], size=MIB)
    assert len(main) == 1


def test_20_two_streams(case):
    size, moments = 4 * MIB, case.read("return mx.get_active_memory()")
    (a,), (a2,), (b,) = (case.allocs(marker, size, until=moments[0]) for marker in ("a", "a2", "b"))
    assert a["stream"] == a2["stream"] != b["stream"]
    assert f"{a['stream']}" in case.facts["streams"][0]
    assert f"{b['stream']}" in case.facts["streams"][1]
    live = [event for event in case.live(until=moments[0]) if event["size"] == size]
    assert live == [a, a2, b]
    assert [event for event in case.live(until=moments[1]) if event["size"] == size] == [b]
    fused = case.allocs("fused", size)
    assert sum(event["stream"] == a["stream"] for event in fused) == 1
    assert sum(event["stream"] == b["stream"] for event in fused) <= 1
    assert len([event for event in case.live(until=moments[2]) if event["size"] == size]) == 2


def test_24_error_mid_eval(case):
    inside, outside = case.read("inside.append")[0], case.read("outside =")[0]
    for marker, size in (("a", 4 * MIB), ("c", 4 * MIB), ("e", 8 * MIB)):
        assert len(case.live_at(marker, until=inside, size=size)) == 1, marker
    big = [event for event in case.live(until=outside) if event["size"] > 16 * KIB]
    assert [case.own_lines(event)[-1] for event in big] == [case.line("e")]
    again = case.read("again =")[0]
    assert [event for event in case.events[outside:again] if is_alloc(event)] == []
    (freed,) = case.frees_of(big)
    assert case.own_lines(freed, "evaluated_at") == [case.line("drop")]


def test_28_cpu_runahead_peak(case):
    once, each = case.read("return mx.get_active_memory(), mx.get_peak_memory()")
    start = next(reading.before for reading in case.readings if reading.name == "reset_peak_memory")
    assert len(case.allocs("matmul", MIB, since=start, until=once)) == 64
    second = case.allocs("matmul", MIB, since=once, until=each)
    assert len(second) == 64
    assert {case.own_lines(event, "evaluated_at")[-1] for event in second} <= {
        case.line("eval_each"),
        case.line("eval_once"),
    }
    assert case.active[once] == case.active[each] == 2 * MIB + 16


def test_31_async_eval_in_flight(case):
    moments = case.read("return mx.get_active_memory(), mx.get_peak_memory(), max(seen)")
    size = 4 * MIB
    for moment, marker, since in ((moments[0], "async", 0), (moments[1], "eval", moments[0])):
        states = case.allocs("next", size, since=since, until=moment)
        assert len(states) == 12
        assert {case.own_lines(event, "evaluated_at")[-1] for event in states} == {case.line(marker)}
        assert {event["thread"] for event in states} == {"MainThread"}
        live = [event for event in case.live(until=moment) if event["size"] == size]
        assert [case.own_lines(event)[-1] for event in live] == [case.line("w"), case.line("next")]


def test_33_nn_module_attribution(case):
    params, base = case.read("params =")[0], case.read("base =")[0]
    model = case.live_at("model", until=params)
    for size, count in ((512 * KIB, 2), (64 * KIB, 4)):
        matrices = [event for event in model if event["size"] == size]
        assert len(matrices) == count
        assert all(event["traceback"][-1][0].endswith("mlx/nn/layers/linear.py") for event in matrices)
    assert sum(sizes(model)) == case.active[params]
    forward = [event for event in case.events[base:] if is_alloc(event) and event["size"] >= KIB]
    assert all(case.is_at(event, "forward") for event in forward)
    (widest,) = [event for event in forward if event["size"] == MIB]
    assert widest["traceback"][-1][0].endswith("mlx/nn/layers/linear.py")
    end = case.read("peak, live =")[0]
    assert sizes(case.live_at("input", until=end, size=128 * KIB)) == [128 * KIB]
    assert sizes(case.live_at("forward", until=end, size=128 * KIB)) == [128 * KIB]


def test_every_program_has_its_test():
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_") and name.split("_")[1].isdigit()}
    assert {path.name.split("_")[0] for path in CASES.glob("[0-9]*.py")} == tested
