"""Files that are written while the program runs: whole, readable, and exact up to where they end, whatever ends it."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from running import PROGRAMS, run_program, run_python
from venvs import NEWEST_MLX, Spec, environment

PROGRAM = PROGRAMS / "streamed.py"
FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")
ENDS = ("SIGTERM", "SIGHUP")
# Without faulthandler, which the tests' own environment would switch on.
BARE = {"PYTHONFAULTHANDLER": ""}


def look(*paths) -> list[dict]:
    return run_python([PROGRAMS / "look.py", *paths]).facts


def looked(path) -> dict:
    (found,) = look(path)
    assert found["error"] is None, found
    assert found["check"]["events"] == found["events"]
    return found


def line_of(marker: str) -> int:
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# L:{marker}"))


def streamed(what, path, *handler, env=BARE):
    return run_python([PROGRAM, what, path, *handler], env=env)


@pytest.mark.parametrize("level, context, min_size", [("buffers", "all", 0), ("arrays", "all", 0)])
@pytest.mark.parametrize("mlx", ["0.28.0", NEWEST_MLX])
def test_a_streamed_trace_is_the_one_kept_in_memory(tmp_path, mlx, level, context, min_size):
    is_same(tmp_path, Spec(mlx=mlx), level, context, min_size)


@pytest.mark.parametrize("context, min_size", [("alloc", 0), ("state", 0), ("all", 5000)])
def test_also_with_other_options(tmp_path, context, min_size):
    is_same(tmp_path, Spec(), "buffers", context, min_size)


def is_same(tmp_path, spec, level, context, min_size):
    kept, streamed = (
        run_program("streamed_and_kept.py", path, level, context, min_size, spec=spec)
        for path in ("-", tmp_path / "run.memviz")
    )
    assert kept["mismatches"] == streamed["mismatches"] == []
    assert kept["stats"]["dropped"] == streamed["stats"]["dropped"] == 0
    assert kept["check"]["checkpoints"] > 100
    if context == "state":
        # A streamed file learns late which buffers are left; what triggered their allocation is not told again.
        kept.pop("triggered"), streamed.pop("triggered")
    if min_size:
        # How many small events lie between two large ones depends on the order in which threads free.
        for facts in (kept, streamed):
            facts["actions"].pop("FilteredNet"), facts["check"].pop("events")
    assert streamed == kept


@pytest.mark.parametrize("how, status, kind", [("end", 0, "stopped"), ("exit", 3, "stopped"), ("os_exit", 4, "cut")])
def test_ends_of_a_program(tmp_path, how, status, kind):
    done = streamed(how, tmp_path / "run.memviz")
    assert done.returncode == status, str(done)
    found = looked(tmp_path / "run.memviz")
    assert found["ending"] == [kind, "", None]
    assert (found["events"], found["unresolved"]) == (38_001, 0)


def test_an_exception_that_nobody_handled(tmp_path):
    plain = run_python([PROGRAM, "raise", tmp_path / "run.memviz"])
    assert plain.returncode == 1
    assert plain.stderr.endswith("ValueError: on purpose\n")
    kind, detail, (file, function, line) = looked(tmp_path / "run.memviz")["ending"]
    assert (kind, detail) == ("exception", "ValueError: on purpose")
    assert (file, function, line) == (str(PROGRAM), "<module>", line_of("raise"))


@pytest.mark.parametrize("name", FAULTS + ENDS)
@pytest.mark.parametrize("handler", [(), ("evaluating",)], ids=["idle", "evaluating"])
def test_signals(tmp_path, name, handler):
    """The last chunk is written and the parent sees the signal."""
    done = streamed(name, tmp_path / "run.memviz", *handler)
    assert done.returncode == -getattr(signal, name), str(done)
    found = looked(tmp_path / "run.memviz")
    assert found["ending"][:2] == ["signal", name]
    assert found["events"] >= 38_001
    if not handler:
        assert (found["events"], found["unresolved"]) == (38_001, 0)


def test_a_fault_tells_its_address(tmp_path):
    done = streamed("fault", tmp_path / "run.memviz")
    assert done.returncode == -signal.SIGSEGV, str(done)
    found = looked(tmp_path / "run.memviz")
    assert found["ending"][:2] == ["signal", "SIGSEGV at address 0x0"]
    assert found["events"] == 38_001


def test_an_allocation_that_fails(tmp_path):
    """From 0.30 on MLX crashes on the CPU: the failed allocation is the last thing in the file."""
    done = streamed("oom", tmp_path / "run.memviz")
    assert done.returncode == -signal.SIGSEGV, str(done)
    found = looked(tmp_path / "run.memviz")
    assert found["ending"][0] == "signal"
    assert found["oom"] == [1 << 40]


@pytest.mark.parametrize("handler", ["faulthandler before", "faulthandler after"])
@pytest.mark.parametrize("name", ["fault", *FAULTS])
def test_faulthandler_still_speaks(tmp_path, name, handler):
    done = streamed(name, tmp_path / "run.memviz", handler)
    number = signal.SIGSEGV if name == "fault" else getattr(signal, name)
    assert done.returncode == -number, str(done)
    assert done.stderr.count("Fatal Python error") == 1, str(done)
    assert "streamed.py" in done.stderr
    assert looked(tmp_path / "run.memviz")["ending"][0] == "signal"


def test_the_program_s_own_handler_decides(tmp_path):
    done = streamed("SIGTERM", tmp_path / "run.memviz", "python")
    assert (done.returncode, done.stdout) == (5, f"python handler {int(signal.SIGTERM)}\n"), str(done)
    assert looked(tmp_path / "run.memviz")["ending"] == ["stopped", "", None]


def test_fork_while_streaming(tmp_path):
    """A child writes nothing into its parent's file, however it ends."""
    facts = run_program("streamed.py", "fork", tmp_path / "run.memviz", env=BARE)
    assert facts["children"] == [signal.SIGTERM, 0, signal.SIGTERM, 0, signal.SIGTERM]
    assert facts["events"] == facts["stats"]["seen"] > 38_000
    assert looked(tmp_path / "run.memviz")["ending"][0] == "stopped"


def test_threads_that_come_and_go(tmp_path):
    facts = run_program("streamed.py", "threads", tmp_path / "run.memviz")
    assert facts["visible"] == ["MainThread"], "ours are not the program's"
    assert facts["named"] == 8
    assert facts["events"] == facts["stats"]["seen"]
    assert facts["stats"]["lost"] == 0


def test_what_the_queue_cannot_hold_is_counted(tmp_path):
    facts = run_program("streamed.py", "slow", tmp_path / "run.memviz")
    assert facts["mismatches"] == []
    stats = facts["stats"]
    assert stats["dropped"] > 0
    assert stats["recorded"] + stats["dropped"] == stats["seen"]
    assert stats["recorded"] <= facts["events"]
    assert facts["check"]["active"] == stats["active"]


def test_a_full_disk(tmp_path):
    """The file ends at its last whole chunk, and the loss is said."""
    facts = run_program("streamed.py", "full", tmp_path / "run.memviz")
    ((category, text),) = facts["warnings"]
    assert category == "RuntimeWarning"
    missing = facts["stats"]["seen"] - facts["events"]
    assert missing > 0
    assert "File too large" in text and f"{missing} events are missing" in text and "run.memviz" in text, text
    assert looked(tmp_path / "run.memviz")["ending"][0] == "cut"


def test_a_disk_that_has_room_again(tmp_path):
    facts = run_program("streamed.py", "full", tmp_path / "run.memviz", "room again")
    ((_, text),) = facts["warnings"]
    assert "0 events are missing" in text, text
    assert facts["events"] == facts["stats"]["seen"] == facts["stats"]["recorded"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    assert_refused(tmp_path / "run.memviz", "PermissionError")


def test_a_missing_folder_and_a_folder(tmp_path):
    assert_refused(tmp_path / "missing" / "run.memviz", "FileNotFoundError")
    (tmp_path / "run.memviz").mkdir()
    assert_refused(tmp_path / "run.memviz", "IsADirectoryError")
    assert list(tmp_path.iterdir()) == [tmp_path / "run.memviz"], "nothing is left behind"


def assert_refused(path, kind):
    facts = run_program("streamed.py", "unwritable", path)
    found, text = facts["raised"]
    assert found == kind and str(path) in text, facts
    assert (facts["hooked"], facts["is_recording"]) == (0, False)


def test_a_file_that_exists_is_replaced(tmp_path):
    path = tmp_path / "run.memviz"
    path.write_text("was here")
    assert streamed("end", path).returncode == 0
    assert looked(path)["events"] == 38_001


def test_start_and_stop_leave_nothing(tmp_path):
    facts = run_program("streamed.py", "restart", tmp_path / "run.memviz")
    assert (facts["fds"], facts["threads"], facts["hooked"], facts["sigterm"]) == (0, 0, 0, True)


def kill(tmp_path, count):
    """SIGKILL at random moments; returns how many events each file holds."""
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    paths = []
    for number in range(count):
        path = tmp_path / f"{number}.memviz"
        process = subprocess.Popen(
            [environment(Spec()), PROGRAM, "for_ever", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(moments.uniform(0, 1.5))
        process.kill()
        process.wait()
        paths.append(path)
    found = look(*paths)
    bad = [(path.name, facts) for path, facts in zip(paths, found) if facts["error"] is not None]
    assert bad == [], f"seed {seed}"
    assert {facts["ending"][0] for facts in found} == {"cut"}, f"seed {seed}"
    return [facts["events"] for facts in found]


def test_killed_at_random_moments(tmp_path):
    assert max(kill(tmp_path, 20)) > 1000


@pytest.mark.soak
def test_killed_200_times(tmp_path):
    events = kill(tmp_path, 200)
    assert sum(count > 1000 for count in events) > 100


def test_memviz_run_streams_by_default(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("import mlx.core as mx\nx = mx.ones((100, 100))\nmx.eval(x @ x)\nraise ValueError('no')\n")
    done = run_python(["-m", "mlx_memviz", "run", program], cwd=tmp_path)
    assert done.returncode == 1, str(done)
    (path,) = tmp_path.glob("memviz-train-*.memviz")
    assert path.name in done.stderr, "it says where"
    kind, detail, place = looked(path)["ending"]
    assert (kind, detail, place[1:]) == ("exception", "ValueError: no", ["<module>", 4])


def test_memviz_run_into_nowhere_runs_the_program(tmp_path):
    code = "import mlx.core as mx; print(mx.ones((3,)).sum().item())"
    done = run_python(["-m", "mlx_memviz", "run", "-o", tmp_path / "missing" / "a.memviz", "-c", code])
    assert (done.returncode, done.stdout) == (0, "3.0\n"), str(done)
    assert "not recording" in done.stderr and "missing" in done.stderr


@pytest.mark.parametrize("variable", ["MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"])
def test_the_rank_is_in_the_name_and_in_the_file(tmp_path, variable):
    code = "import mlx.core as mx; mx.eval(mx.ones((3,)))"
    command = ["-m", "mlx_memviz", "run", "-q", "-o", "run.memviz", "-c", code]
    assert run_python(command, cwd=tmp_path, env={variable: "2"}).returncode == 0
    assert looked(tmp_path / "run.rank2.memviz")["rank"] == 2


def test_mlx_launch_writes_a_file_a_rank(tmp_path):
    program = tmp_path / "ranks.py"
    program.write_text(
        "import mlx.core as mx\nworld = mx.distributed.init(strict=True)\n"
        "mx.eval(mx.distributed.all_sum(mx.ones((10,))))\nprint('size', world.size())\n"
    )
    python = environment(Spec())
    launch = python.parent / "mlx.launch"
    memviz = shutil.which("memviz", path=python.parent)
    done = subprocess.run(
        [launch, "-n", "2", "--backend", "ring", "--", memviz, "run", "-q", "-o", tmp_path / "run.memviz", program],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.stdout.count("size 2") == 2, done.stderr
    found = look(*sorted(tmp_path.glob("run.rank*.memviz")))
    assert [facts["rank"] for facts in found] == [0, 1]
