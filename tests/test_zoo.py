"""Hostile programs, one per trap. Each runs in a process of its own; what it must show is judged here."""

import re
import subprocess
from pathlib import Path

import pytest
from running import PROGRAMS, run_program, run_python
from venvs import NEWEST_MLX, ROOT, Spec, environment

SEEDS = ROOT.parent / "shared" / "seeds"
OLDEST, COMPILING = Spec(mlx="0.28.0"), Spec(mlx="0.31.2")
# What MLX itself may end with when threads are inside it at exit; two threads that do so at once say it differently.
MLX_ABORT = {"terminate called without an active exception", "terminate called recursively"}


def assert_exact(facts, points=1):
    assert facts["mismatches"] == []
    assert facts["points"] >= points


@pytest.mark.parametrize("mlx", ["0.32.0", NEWEST_MLX])
def test_threads_with_evictor(mlx):
    facts = run_program("threads_with_evictor.py", 4, spec=Spec(mlx=mlx))
    assert_exact(facts, points=50)
    assert facts["errors"] == []
    assert facts["evicted"] > 100
    assert facts["lost"] == 0
    assert facts["hooked_after"] == 0


def test_start_stop_1000():
    facts = run_program("start_stop_1000.py")
    assert facts["cycles"] == facts["same"] == facts["checked"] == 1000
    assert facts["hooked"] == 0
    assert len(facts["events"]) == 1
    # One page lost per cycle would be 3.6 MB; what is seen is the allocator's noise, 0.2 MB.
    assert facts["growth"] < 2_000_000


def test_attach_late():
    facts = run_program("attach_late.py")
    assert_exact(facts, points=4)
    assert facts["before"][0] > 0 and facts["before"][1] > 0
    assert sum(buffer["size"] for buffer in facts["imported"]) == facts["before"][1]
    by_size = {buffer["size"]: buffer["address"] for buffer in facts["imported"]}
    assert set(facts["sizes"]) <= set(by_size)
    size = facts["sizes"][1]
    assert facts["reuse"] == [{"action": "AllocReuse", "address": by_size[size], "size": size}]
    assert facts["freed"] == ["FreeActiveToCache"]
    assert {facts["sizes"][0], facts["sizes"][2]} < set(facts["evicted"])
    assert facts["base"][0] == facts["base"][1]


def test_fork():
    facts = run_program("fork.py", 5)
    assert_exact(facts, points=6)
    assert len(facts["children"]) == 10
    for child in facts["children"]:
        assert child["hooked"] == 0
        assert child["shape"] == [3]
        assert child["status"] == 0
        assert "forked" in child["refused"]
    assert facts["hooked_during"] > 0
    assert facts["hooked_after"] == 0
    assert facts["recorded_after_the_forks"] == 1


@pytest.mark.parametrize("how, status", [("end", 0), ("sys_exit", 3), ("exception", 1), ("os_exit", 4)])
def test_exit_while_recording(how, status):
    plain = run_python([PROGRAMS / "exit_while_recording.py", how])
    assert plain.returncode == status
    for _ in range(5):
        done = run_python([PROGRAMS / "exit_while_recording.py", how, "recording"])
        assert (done.returncode, done.stdout) == (status, plain.stdout), str(done)
        assert done.stderr == plain.stderr


def test_exit_while_daemon_threads_evaluate():
    """MLX aborts here in most runs, with and without us; anything else would be ours."""
    for recording in ([], ["recording"]):
        for _ in range(10):
            done = run_python(
                [PROGRAMS / "exit_while_recording.py", "daemon", *recording], env={"PYTHONFAULTHANDLER": ""}
            )
            assert done.stdout == "the end is near\n", str(done)
            assert done.returncode in (0, -6), str(done)
            assert set(done.stderr.splitlines()) <= MLX_ABORT, str(done)


@pytest.mark.parametrize("spec", [Spec(), COMPILING], ids=lambda spec: spec.name)
def test_throw_in_eval(spec):
    facts = run_program("throw_in_eval.py", spec=spec)
    assert_exact(facts, points=13)
    for call, raised in facts["without"].items():
        assert facts["recorded"][call] == [raised] * 3, call
    inside_eval = ["compiled_without_compiler"] if spec == COMPILING else ["singular", "unsupported_type"]
    assert {facts["without"][call][0] for call in inside_eval} == {"RuntimeError"}
    assert facts["after"] == 100
    assert facts["lost"] == 0


def test_gc_and_del():
    facts = run_program("gc_and_del.py")
    assert_exact(facts, points=2)
    assert facts["held"] == facts["count"] * facts["size"]
    assert facts["made"] == [facts["line"]]
    assert facts["freed"] == facts["count"]
    assert facts["freed_on"] == ["collector"]


@pytest.mark.parametrize("how", ["greenlet", "asyncio", "generators"])
def test_interleaved(how):
    spec = Spec(extras=("greenlet",)) if how == "greenlet" else Spec()
    facts = run_program("interleaved.py", how, spec=spec)
    assert facts["wrong"] == 0
    assert facts["right"] == facts["expected"]


@pytest.mark.parametrize(
    "tool, python",
    [("settrace", "3.10"), ("settrace", "3.11"), ("settrace", "3.12"), ("settrace", "3.13")]
    + [("setprofile", "3.11"), ("setprofile", "3.12"), ("monitoring", "3.12"), ("monitoring", "3.13")],
)
def test_tracing_tools(tool, python):
    facts = run_program("tracing_tools.py", tool, spec=Spec(python=python))
    assert facts["right"] == facts["arrays"] == 100
    assert facts["traced"] == 50, "the tool got its events, for the first of the two loops"


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_subinterpreter(python):
    facts = run_program("subinterpreter.py", spec=Spec(python=python))
    assert_exact(facts)
    assert facts["arrays"] == 4
    assert facts["lines"] == [facts["line"]]


def test_ring_overflow():
    facts = run_program("ring_overflow.py")
    assert_exact(facts)
    total, capacity = len(facts["whole"]), facts["capacity"]
    assert total > 2 * capacity
    assert facts["kept"] == facts["whole"][-capacity:]
    assert facts["stats"] == {
        "seen": total,
        "recorded": capacity,
        "dropped": total - capacity,
        "filtered": 0,
        "lost": 0,
    }
    assert facts["trace_dropped"] == total - capacity


def test_min_size():
    facts = run_program("min_size.py")
    assert_exact(facts, points=7)
    assert facts["smallest"] >= facts["min_size"]
    assert facts["smallest_live"] >= facts["min_size"]
    assert facts["listed"] == facts["stats"]["recorded"] >= 100
    assert facts["stats"]["filtered"] >= 200
    assert facts["stats"]["seen"] == facts["counted"] == facts["stats"]["recorded"] + facts["stats"]["filtered"]
    assert facts["nets"] > 0
    assert facts["check"]["active"] == facts["totals"]["active"]
    assert facts["check"]["cached"] == facts["totals"]["cached"]


def test_native_stacks():
    facts = run_program("native_stacks.py")
    assert (facts["stacks"], facts["different"], facts["native_when_not_asked"]) == (50, 1, 0)
    files = [Path(frame[0]).name for frame in facts["frames"]]
    line_at = max(at for at, name in enumerate(files) if name == "native_stacks.py")
    assert facts["frames"][line_at][2] == facts["line"]
    below = facts["frames"][line_at + 1 :]
    assert any("mlx::core::matmul" in frame[1] for frame in below), below
    assert all(".so" in Path(frame[0]).name for frame in below), below


def test_context():
    facts = run_program("context.py")
    for context, allocs, frees, live in [
        ("all", 11, 10, facts["line"]),
        ("alloc", 11, 0, facts["line"]),
        ("state", 1, 0, facts["line"]),
        ("None", 0, 0, None),
    ]:
        found = facts[context]
        assert (found["allocs"], found["frees"]) == (11, 10)
        assert (found["allocs_with_stack"], found["allocs_with_trigger"]) == (allocs, allocs), context
        assert found["frees_with_place"] == frees, context
        assert found["live_lines"] == [live], context


def test_oom():
    """0.28 raises an exception; later ones crash by themselves, see below."""
    plain = run_program("oom.py", spec=OLDEST)
    facts = run_program("oom.py", "recording", spec=OLDEST)
    assert_exact(facts)
    assert facts["raised"] == plain["raised"]
    assert facts["raised"][0][0] == "RuntimeError"
    assert facts["works"] == plain["works"]
    assert facts["mlx_active"] == plain["mlx_active"]
    assert facts["oom_sizes"] == [facts["absurd"]] * 2
    assert facts["oom_lines"] == [facts["line"]] * 2
    assert [(device, requested) for device, requested, _, _ in facts["observed"]] == [("cpu:0", facts["absurd"])] * 2


def test_oom_where_mlx_crashes():
    for recording in ([], ["recording"]):
        done = run_python([PROGRAMS / "oom.py", *recording])
        assert done.returncode == -11, str(done)


def test_annotate_and_step():
    facts = run_program("annotate_and_step.py")
    assert facts["unrecorded"] == 0
    assert facts["steps"] == [1, 2, 0]
    assert facts["snapshots"] == 1
    assert facts["found"] == {
        "0": [None, 0],
        "1": ["outer", 0],
        "2": ["inner", 0],
        "3": ["outer", 0],
        "20": [None, 0],
        "21": ["thread", 0],
        "4": ["raises", 0],
        "5": ["outer", 0],
        "6": ["outer", 1],
        "11": ["decorated", 1],
        "10": ["decorated", 1],
        "7": [None, 1],
        "8": [None, 2],
    }


def test_two_recordings():
    facts = run_program("two_recordings.py")
    assert_exact(facts)
    assert all(facts["refusals"].values()), facts["refusals"]
    assert "running already" in facts["refusals"]["second start"]
    assert facts["is_same"] and facts["stop_twice_is_same"]
    assert facts["first"] > 0 and facts["second"] > 0
    assert facts["hooked_after"] == 0


def test_no_mlx():
    facts = run_program("no_mlx.py", spec=Spec(mlx=None))
    assert facts["step"] == 0
    for name, kinds, text in facts["raised"].values():
        assert "ImportError" in kinds, name
        assert "'mlx'" in text


def test_unsupported_mlx():
    facts = run_program("unsupported_mlx.py", spec=Spec(mlx="0.26.5"))
    assert facts["mlx"] == "0.26.5"
    assert len(facts["refusals"]) == 2
    for text in facts["refusals"]:
        assert re.search(r"0\.26\.5 \(have 0\.28\.\d+ to 0\.32\.\d+\)", text), text
        assert "nothing was patched" in text
    assert facts["is_recording"] is False
    assert facts["works"] == 200


def test_howto_verbatim(tmp_path):
    facts = run_program("howto_verbatim.py", cwd=tmp_path)
    assert facts["events"] == facts["after"] > 0
    assert 4_000_000 in facts["sizes"]
    assert (tmp_path / "output.pickle").stat().st_size > 0


@pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the text with the how-to is not in {SEEDS}")
def test_howto_program_is_the_text_s():
    (text,) = SEEDS.glob("000*.txt")
    howto = text.read_text().split("Quick How-To")[1].split("import mlx.core as mx")[1].split("Motivation")[0]
    program = (PROGRAMS / "howto_verbatim.py").read_text()
    for line in filter(None, (line.strip() for line in howto.splitlines())):
        if line != "# ...":
            assert line in program


def test_howto_under_memviz_run(tmp_path):
    """Without the import of mlx_memviz: the command provides the names."""
    program = (PROGRAMS / "howto_verbatim.py").read_text().replace("import mlx_memviz\n", "", 1)
    (tmp_path / "howto.py").write_text(program)
    done = run_python(["-m", "mlx_memviz", "run", "-o", "whole.pickle", "howto.py"], cwd=tmp_path)
    assert done.returncode == 0, str(done)
    assert done.facts["events"] > 0
    assert (tmp_path / "output.pickle").is_file()
    assert (tmp_path / "whole.pickle").is_file()


def test_import_alone_loads_no_mlx():
    """Importing the package alone patches nothing and imports no MLX."""
    code = "import sys, mlx_memviz; assert 'mlx.core' not in sys.modules; print('fine')"
    done = subprocess.run([environment(Spec()), "-c", code], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr
