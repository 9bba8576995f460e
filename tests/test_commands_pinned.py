"""`pinned`, `retrace`, `cache` and `diff` on recordings of real programs: the stated line, bytes and counts."""

import json
import os
from pathlib import Path

import pytest
from running import PROGRAMS, run_python
from venvs import ROOT

CASES = Path(os.environ.get("MEMVIZ_CASES", ROOT.parent / "shared" / "cases"))
KIB, MIB = 1 << 10, 1 << 20

needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no programs in {CASES}; set MEMVIZ_CASES to the folder with them"
)


@pytest.fixture
def record(tmp_path):
    """Records a program, up to a marked line if given; gives the file and the program."""

    def recorded(script, marker=None):
        if isinstance(script, int):
            (script,) = CASES.glob(f"{script:02}_*.py")
        out = tmp_path / f"{len(list(tmp_path.glob('*.pickle')))}.pickle"
        done = run_python([PROGRAMS / "record_until.py", out, script, *([marker] if marker else [])])
        assert done.returncode == 0, str(done)
        return out, script

    return recorded


def memviz(*words, expected=0):
    done = run_python(["-m", "mlx_memviz", *words])
    assert done.returncode == expected, str(done)
    return done


def answer(*words, expected=0):
    """What a command prints as JSON; its text for a terminal is drawn as well."""
    memviz(*words, expected=expected)
    return json.loads(memviz(*words, "--json", expected=expected).stdout)


def line_of(script, marker):
    """Number of the marked line."""
    lines = script.read_text().splitlines()
    (found,) = [number for number, text in enumerate(lines, 1) if text.split("# L:")[1:] == [marker]]
    return found


def is_at(row, script, marker):
    return (Path(row["file"]), row["line"]) == (script, line_of(script, marker))


@needs_cases
def test_03_a_view_of_4_kib_pins_64_mib(record):
    file, script = record(3, "compact")
    pinned = answer("pinned", file)
    (view,) = pinned["views"]
    assert is_at(view["buffer"], script, "base")
    assert is_at(view["view"], script, "view")
    assert (view["count"], view["bytes"], view["reached_bytes"]) == (1, 64 * MIB, 4 * KIB)
    assert view["pinned_bytes"] == 64 * MIB - 4 * KIB
    assert view["primitive"] == "Slice"
    assert (pinned["waiting"], pinned["without_arrays"]) == ([], [])
    assert "4.0 KiB of views" in memviz("pinned", file).stdout
    # While the base has a name, nothing is pinned; nor once the view was copied and dropped.
    assert answer("pinned", record(3, "del_base")[0])["views"] == []
    assert answer("pinned", record(3)[0])["views"] == []


@needs_cases
def test_10_every_shape_is_a_trace_that_keeps_three_constants(record):
    file, script = record(10, "drop")
    retrace = answer("retrace", file)
    (function,) = retrace["functions"]
    assert is_at(function["body"], script, "body")
    assert function["body"]["function"] == "make.<locals>.f"
    ((call, traces),) = function["calls"]
    assert is_at(call, script, "call")
    assert traces == function["traces"] == function["alive"] == function["signatures"] == 50
    assert function["cause"] == "new_shapes"
    assert function["varying"] == [{"input": 0, "axis": 0, "lengths": 50, "smallest": 256, "largest": 50 * 256}]
    assert function["first_signatures"][:2] == ["float32[256]", "float32[512]"]
    for amount in ("made", "kept"):
        assert function[amount] == {"count": 150, "bytes": 600}
    pinned = answer("pinned", file)
    assert pinned["compiled"] == {"count": 150, "bytes": 600}
    assert pinned["waiting"] == [], "what a trace consists of waits for no evaluation"
    after = answer("retrace", record(10)[0])["functions"]
    assert [(row["traces"], row["alive"], row["kept"]["count"], row["made"]["count"]) for row in after] == [
        (50, 0, 0, 150)
    ]


@needs_cases
def test_12_arrays_wait_and_hold_the_batches(record):
    file, script = record(12, "late_eval")
    pinned = answer("pinned", file)
    by_line = {row["line"]["line"]: row for row in pinned["waiting"] if Path(row["line"]["file"]) == script}
    update, grad, loss = (by_line[line_of(script, marker)] for marker in ("update", "grad", "loss"))
    held = {row["line"]["line"]: row for row in (*grad["held_lines"], *loss["held_lines"])}
    batches = held[line_of(script, "batch")]
    assert (batches["count"], batches["bytes"]) == (16, 16 * MIB)
    assert dict(update["primitives"])["Subtract"] == 16
    assert sum(row["count"] for row in pinned["waiting"]) == pinned["waiting_count"] >= 16 * 5
    assert 17 * MIB <= pinned["waiting_holds"]["bytes"] <= pinned["moment"]["active_bytes"]
    assert update["needs_bytes"] >= 16 * MIB
    # The eager loop leaves nothing behind.
    assert answer("pinned", record(12)[0])["waiting"] == []


@needs_cases
def test_01_a_metric_that_is_never_evaluated_holds_the_batches(record):
    file, script = record(1, "final_eval")
    pinned = answer("pinned", file)
    (loss,) = [row for row in pinned["waiting"] if is_at(row["line"], script, "loss")]
    (held,) = [row for row in loss["held_lines"] if is_at(row["line"], script, "batch")]
    assert (held["count"], held["bytes"]) == (32, 32 * MIB)
    assert loss["count"] >= 32


@needs_cases
def test_17_a_numpy_view_keeps_the_array_itself_alive(record):
    """So there is no buffer without an array, and nothing that tells the view from a variable."""
    file, script = record(17, "drop_view")
    pinned = answer("pinned", file)
    assert pinned["moment"]["active_bytes"] == 20 * MIB
    assert (pinned["views"], pinned["without_arrays"], pinned["waiting"]) == ([], [], [])
    assert answer("pinned", record(17)[0])["moment"]["active_bytes"] == 0


@needs_cases
def test_24_an_error_in_an_evaluation_leaves_nothing_waiting(record):
    file, script = record(24, "drop")
    pinned = answer("pinned", file)
    assert pinned["moment"]["active_bytes"] >= 8 * MIB
    big = [row for row in pinned["without_arrays"] + pinned["views"] if row["bytes"] > 16 * KIB]
    assert big == []


@needs_cases
def test_05_the_cache(record):
    cache = answer("cache", record(5)[0])
    assert cache["passed_by"] == {"count": 2, "bytes": 52 * MIB}, "one of three and the one of 40 MiB"
    assert cache["evicted"]["bytes"] - 30 * MIB == 4 * (cache["evicted"]["count"] - 3)
    assert cache["largest_eviction"] == cache["evicted"]
    assert cache["most_cached"]["cached_bytes"] == cache["evicted"]["bytes"]
    assert cache["end"]["cached_bytes"] == 0
    assert cache["peak_active"]["cached_bytes"] == cache["peak_reserved"]["cached_bytes"] == 24 * MIB
    assert cache["slack_bytes"] == 4 * KIB
    assert cache["page_bytes"] == 4096
    (near,) = cache["near_misses"]
    assert (near["kind"], near["first_asked_bytes"], near["first_cached_bytes"]) == ("too_large", 6 * MIB, 12 * MIB)
    classes = {row["from_bytes"]: (row["hits"]["count"], row["misses"]["count"]) for row in cache["sizes"]}
    assert (classes[8 * MIB], classes[4 * MIB], classes[32 * MIB]) == ((2, 3), (0, 1), (0, 1))


DEMO = ROOT / "demo" / "train_transformer.py"


def test_diff_of_the_demo_with_a_moved_line_and_a_larger_batch(record, tmp_path):
    edited = tmp_path / "edited" / DEMO.name
    edited.parent.mkdir()
    source = DEMO.read_text()
    assert source.count("BATCH, LENGTH, STEPS = 8,") == 1
    source = source.replace("BATCH, LENGTH, STEPS = 8,", "# Twice as many.\nBATCH, LENGTH, STEPS = 16,")
    edited.write_text(source)
    before, _ = record(DEMO)
    again, _ = record(DEMO)
    after, _ = record(edited)
    peak, end = answer("diff", before, after)["comparisons"]
    assert (peak["what"], end["what"]) == ("peak", "end")
    for one in (peak, end):
        assert sum(row["change_bytes"] for row in one["lines"]) == one["change_bytes"]
        assert sum(row["change_count"] for row in one["lines"]) == one["change_count"]
        changes = [abs(row["change_bytes"]) for row in one["lines"]]
        assert changes == sorted(changes, reverse=True)
    assert peak["change_bytes"] > 0
    own = [row for row in peak["lines"] if row["file"] == str(edited)]
    assert own
    assert all(row["moved_from"] == row["line"] - 1 for row in own), "every line moved down by one"
    assert not [row for row in peak["lines"] if row["file"] == str(DEMO)]
    limit = peak["change_bytes"]
    assert answer("diff", before, after, "--fail-over", limit - 1, expected=1)["is_over"] is True
    assert answer("diff", before, after, "--fail-over", limit)["is_over"] is False
    same = answer("diff", before, again)["comparisons"][1]
    assert (same["change_bytes"], same["lines"]) == (0, [])


def test_python_answers_as_the_command_line(record, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import mlx.core as mx\nx = mx.zeros((4096,))\nmx.eval(x)\ny = x[:1]\nmx.eval(y)\ndel x\nz = y + 1\n"
    )
    file, _ = record(program)
    code = (
        "import json, sys, mlx_memviz\n"
        "trace = mlx_memviz.load(sys.argv[1])\n"
        "print(json.dumps([trace.pinned(at='last'), trace.retrace(), trace.cache(), trace.diff(trace),"
        " trace.diff(at='start:last', fail_over='1 KiB')]))"
    )
    found = run_python(["-c", code, file]).facts
    words = (["pinned"], ["retrace"], ["cache"])
    assert found[:3] == [answer(*command, file) for command in words]
    assert found[3] == answer("diff", file, file)
    assert found[4] == answer("diff", file, "--at", "start:last", "--fail-over", "1KiB", expected=1)
    assert [row["line"]["line"] for row in found[0]["waiting"]] == [7]
    assert [row["view"]["line"] for row in found[0]["views"]] == [4]


def test_what_cannot_be_answered_says_what_to_do(record, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import mlx.core as mx\nmx.eval(mx.ones((4,)))\n")
    buffers = tmp_path / "buffers.pickle"
    done = memviz("run", "-q", "-o", buffers, program)
    assert done.returncode == 0
    for command in ("pinned", "retrace"):
        assert "record with `memviz run --level arrays`" in memviz(command, buffers, expected=2).stderr
    assert "mlx_memviz.step()" in memviz("diff", buffers, "--at", "1:2", expected=2).stderr
    assert "--at" in memviz("diff", buffers, expected=2).stderr
    assert "such as 5:50" in memviz("diff", buffers, "--at", "5", expected=2).stderr
    answer("cache", buffers)
