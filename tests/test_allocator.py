"""The model of MLX's allocator against MLX: recorded runs, replayed as they were, must take the same decision at each event.

Also: what a replay predicts for another cache limit is what the program does under it, and the advised limit pays.
"""

import json
import statistics
from pathlib import Path

import pytest
from recorded_cases import KIB, MIB, ask, recorded
from running import PROGRAMS, run_program, run_python
from test_cases import CASES
from venvs import ROOT

needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"no programs in {CASES}; set MEMVIZ_CASES to their folder")
CASE_NUMBERS = ("01", "02", "03", "05", "07", "08", "10", "12", "15", "17", "19", "20", "24", "28", "31", "33")


def agreement(file) -> dict:
    """The comparison, which must have taken place and found no difference."""
    replay = ask("replay", file)
    found = replay["agreement"]
    assert found is not None, replay["under"]
    assert found["difference"] is None, found
    for unit in ("hits", "misses", "made", "given_back", "evicted"):
        assert replay["recorded"][unit] == replay["replayed"][unit], unit
    for moment in ("peak_active", "peak_reserved", "end"):
        assert replay["recorded"][moment] == replay["replayed"][moment], moment
    print(f"{file}: {found['events']} events, {found['reuses']} reuses, {found['evictions']} evictions, 0 differences")
    return found


@pytest.mark.parametrize("kind", ["mixed", "edges", "small", "no_cache"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs_take_the_same_decisions(tmp_path, kind, seed):
    file = tmp_path / "run.memviz"
    facts = run_program("random_allocations.py", file, seed, 10_000, kind)
    assert facts["check"]["active"] == facts["check"]["mlx_active"]
    found = agreement(file)
    assert found["events"] > 20_000
    assert (found["reuses"] == 0) == (kind == "no_cache")
    assert (found["evictions"] > 100) == (kind in ("mixed", "edges"))


@needs_cases
@pytest.mark.parametrize("number", CASE_NUMBERS)
def test_recorded_cases_take_the_same_decisions(number):
    agreement(recorded(number).file)


@pytest.mark.parametrize("name", ["cuda_generate", "cuda_train"])
def test_recorded_cuda_runs_come_to_the_same_numbers(name):
    replay = ask("replay", ROOT / "tests" / "traces" / f"{name}.memviz")
    assert replay["under"]["policy"] == "cuda"
    for number in ("hits", "misses", "made", "given_back", "evicted", "peak_active", "peak_reserved", "end"):
        assert replay["recorded"][number] == replay["replayed"][number], number


def test_a_training_run_takes_the_same_decisions(tmp_path):
    file = tmp_path / "train.memviz"
    done = run_python(["-m", "mlx_memviz", "run", "-o", file, ROOT / "demo" / "train_transformer.py"], cwd=tmp_path)
    assert done.returncode == 0, str(done)
    assert agreement(file)["reuses"] > 1000


def chain(path, limit, rounds) -> dict:
    return run_program("elementwise_chain.py", path, limit, rounds)


def test_the_advised_limit_is_worth_it(tmp_path):
    file = tmp_path / "chain.memviz"
    chain(file, "-", 10)
    advised = ask("advise", file)
    (raised,) = [advice["to"] for advice in advised["advice"] if advice["kind"] == "raise_limit"]
    limit = raised["cache_limit_bytes"]
    assert 32 * MIB < limit <= 34 * MIB
    assert advised["halvings"][-1]["hit_rate"] == 0 and advised["halvings"][-1]["cache_limit_bytes"] == 0
    again = tmp_path / "again.memviz"
    chain(again, limit, 10)
    real = ask("replay", again)["recorded"]
    assert real["hit_rate"] == pytest.approx(raised["hit_rate"], abs=0.05)
    seconds = {what: [] for what in ("-", limit)}
    for _ in range(3):
        for what, values in seconds.items():
            values.append(chain("-", what, 15)["seconds"])
    before, after = (statistics.median(values) for values in seconds.values())
    print(f"elementwise chain: {before * 1e3:.1f} ms at the default limit, {after * 1e3:.1f} ms at {limit} bytes")
    assert before >= 2 * after
    assert [advice["kind"] for advice in ask("advise", again)["advice"]] == []


def test_a_replay_elsewhere(tmp_path):
    file = tmp_path / "chain.memviz"
    chain(file, "-", 10)
    metal = ask("replay", file, "--policy", "metal", "--device", "m3-16gb")
    assert metal["most_blocks"]["limit"] == 499_000
    assert metal["is_out_of_memory"] is False
    assert metal["replayed"]["peak_active"]["active_bytes"] in range(64 * MIB, 64 * MIB + KIB)
    small = ask("replay", file, "--device", "60MiB:56MiB", status=1)
    assert small["is_out_of_memory"] is True
    assert small["over_memory"]["index"] <= small["replayed"]["peak_reserved"]["index"]
    plot = tmp_path / "sweep.svg"
    swept = ask("replay", file, "--sweep", "cache-limit=0..64MiB/9", "-o", plot)
    assert [point["cache_limit_bytes"] for point in swept["sweep"]] == [at * 8 * MIB for at in range(9)]
    assert swept["sweep"][0]["hit_rate"] == 0
    assert plot.read_text().count("<polyline") == 2


def test_a_replay_beside_other_allocators(tmp_path):
    file = tmp_path / "chain.memviz"
    chain(file, "-", 10)
    answers = {name: ask("replay", file, "--policy", name) for name in ("pytorch", "expandable", "ideal")}
    reserved = {name: answer["over_time"]["reserved_bytes"] for name, answer in answers.items()}
    peaks = {name: max(values) for name, values in reserved.items()}
    # 32 MiB from before the recording, an array of 32 MiB and scalars: segments of 32 MiB and 2, or 2 pages of 20 and 1 of 2.
    assert (peaks["pytorch"], peaks["expandable"]) == (66 * MIB, 74 * MIB)
    assert peaks["ideal"] in range(64 * MIB, 64 * MIB + KIB)
    assert [answer["replayed"]["made"]["count"] for answer in answers.values()] == [1, 1, 1]
    for answer in answers.values():
        assert answer["under"]["cache_limit_bytes"] is None and answer["agreement"] is None
        peak = answer["at_peak_active"]
        rows = sum(group["bytes"] for group in peak["groups"]) + peak["rest"]["bytes"] + peak["added_bytes"]
        assert rows == peak["moment"]["active_bytes"] == answer["replayed"]["peak_active"]["active_bytes"]
        lines = {(Path(group["file"]).name, group["kind"]) for group in peak["groups"]}
        assert lines == {("elementwise_chain.py", "line"), ("", "not_listed")}


@pytest.mark.parametrize(
    "options, says",
    [
        (["--policy", "best"], "no policy"),
        (["--policy", "metal"], "needs a machine"),
        (["--policy", "cuda"], "needs a machine"),
        (["--device", "m9"], "no machine"),
        (["--clear-every", "step"], "no steps are marked"),
        (["--sweep", "cache-limit=1..1"], "a sweep goes up"),
        (["--sweep", "limit=0..1"], "expected cache-limit=FROM..TO"),
        (["--cache-limit", "much"], "no unit"),
        (["--policy", "pytorch", "--cache-limit", "1MiB"], "pytorch has no cache limit"),
        (["--policy", "ideal", "--sweep", "cache-limit=0..1MiB"], "ideal has no cache limit"),
    ],
)
def test_wrong_questions_are_refused(tmp_path, options, says):
    file = tmp_path / "run.memviz"
    run_program("random_allocations.py", file, 1, 10, "small")
    done = run_python(["-m", "mlx_memviz", "replay", file, *options])
    assert done.returncode == 2 and says in done.stderr, str(done)


def test_python_has_the_same_answers(tmp_path):
    file = tmp_path / "run.memviz"
    run_program("random_allocations.py", file, 3, 500, "mixed")
    code = (
        "import json, sys, mlx_memviz; trace = mlx_memviz.load(sys.argv[1]);"
        "print(json.dumps([trace.replay(cache_limit='1MiB'), trace.advise()]))"
    )
    replay, advise = json.loads(run_python(["-c", code, file]).stdout)
    assert replay == ask("replay", file, "--cache-limit", "1MiB")
    assert advise == ask("advise", file)


LIVE = """
import json, sys
import mlx.core as mx
import mlx_memviz

recording = mlx_memviz.start(max_entries=int(sys.argv[1]) or None)
live = []
for size in (1000, 1000, 50_000, 9_000_000):
    for extra in range(40):
        mx.eval(mx.ones((size + extra,)) * 2 + 1)
    live.append(mlx_memviz.stats())
recording.stop()
trace = recording.trace
print(json.dumps([live, trace.report(), trace.cache(), trace.replay()["recorded"], trace.dropped]))
"""


def live_and_reported(entries: int) -> list:
    done = run_python(["-c", LIVE, str(entries)])
    assert done.returncode == 0, str(done)
    return json.loads(done.stdout)


def test_the_hit_rate_seen_live_is_that_of_the_reports():
    live, summary, cache, recorded, dropped = live_and_reported(0)
    rates = [stats["hit_rate"] for stats in live]
    assert dropped == 0 and len(set(rates)) == len(rates), rates
    hits, misses = (live[-1]["by_action"][action][0] for action in ("AllocReuse", "AllocNew"))
    assert hits > 100 and misses > 100, (hits, misses)
    assert (recorded["hits"], recorded["misses"]) == (hits, misses)
    assert rates[-1] == summary["hit_rate"] == cache["hit_rate"] == recorded["hit_rate"] == hits / (hits + misses)
    print(f"hit rate live {rates}, reported {summary['hit_rate']}")


def test_the_live_hit_rate_has_what_fell_out_of_the_ring():
    live, summary, _, recorded, dropped = live_and_reported(100)
    hits, misses = (live[-1]["by_action"][action][0] for action in ("AllocReuse", "AllocNew"))
    assert dropped > 0 and live[-1]["hit_rate"] == hits / (hits + misses)
    assert recorded["hits"] + recorded["misses"] < hits + misses
    assert summary["hit_rate"] == recorded["hit_rate"]


@pytest.mark.parametrize("which", ["training", "growing_cache", "lengths", "images", "scalars", "phases"])
def test_another_limit_is_predicted(tmp_path, which):
    def record(limit):
        file = tmp_path / f"{limit}.memviz"
        done = run_python([PROGRAMS / "six_programs.py", which, limit, file])
        assert done.returncode == 0, str(done)
        return file

    usual = record("-")
    for limit in (0, 64 * KIB, MIB, 5 * MIB, 256 * MIB):
        predicted = ask("replay", usual, "--cache-limit", limit)["replayed"]
        real = ask("replay", record(limit))["recorded"]
        peaks = [
            run["peak_reserved"]["active_bytes"] + run["peak_reserved"]["cached_bytes"] for run in (predicted, real)
        ]
        print(f"{which} at {limit}: hits {predicted['hit_rate']:.4f} predicted, {real['hit_rate']:.4f} real;", end=" ")
        print(f"peak {peaks[0]} and {peaks[1]}; made {predicted['made']['count']} and {real['made']['count']}")
        assert predicted["hit_rate"] == pytest.approx(real["hit_rate"], abs=0.02)
        assert peaks[0] == pytest.approx(peaks[1], rel=0.02)
        assert predicted["made"]["count"] == pytest.approx(real["made"]["count"], rel=0.02, abs=2)
