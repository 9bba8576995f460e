"""The pytest plugin, run by pytest on programs that are tests themselves."""

import json

import pytest
from running import run_python
from venvs import Spec

SPEC = Spec(extras=("pytest==9.2.0", "pytest-xdist==3.8.0", "pytest-asyncio==1.5.0"))
HEAD = """
import mlx.core as mx
import pytest

kept = []

def op():
    mx.eval(mx.zeros((4 << 20,)))
"""


def run_tests(folder, text: str, *options, spec=SPEC):
    """Runs pytest on `text`; returns outcomes by test name, and what it printed."""
    (folder / "test_it.py").write_text(text)
    command = ["-m", "pytest", "-rA", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
    done = run_python([*command, *options], spec, cwd=folder)
    words = [line.split() for line in done.stdout.splitlines()]
    outcomes = {
        line[1].rpartition("::")[2]: line[0]
        for line in words
        if len(line) > 1 and line[0] in ("PASSED", "FAILED", "ERROR")
    }
    assert outcomes, str(done)
    return outcomes, done.stdout


def test_memory_from_the_cache_counts(tmp_path):
    """A plugin that counts malloc passes the second: MLX takes the memory from its cache."""
    text = HEAD + "@pytest.mark.mlx_peak('1 MB')\ndef test_first(): op()\n"
    text += "@pytest.mark.mlx_peak('1 MB')\ndef test_second(): op()\n"
    text += "@pytest.mark.mlx_peak_reserved('1 MB')\ndef test_third(): op()\n"
    outcomes, out = run_tests(tmp_path, text)
    assert outcomes == {"test_first": "FAILED", "test_second": "FAILED", "test_third": "FAILED"}
    # The zeros and the scalar they are made of. Where CI is set, pytest's summary says each message once more.
    failures = out.partition("short test summary info")[0]
    assert failures.count("16.0 MiB (16,777,220 bytes)") == 3
    assert failures.count("test_it.py:8 in op") == 3, "the top line is named"


@pytest.mark.parametrize("limit, outcome", [("16777220", "PASSED"), ("16777219", "FAILED"), ("'16.1 MiB'", "PASSED")])
def test_a_limit_is_exact(tmp_path, limit, outcome):
    outcomes, _ = run_tests(tmp_path, HEAD + f"@pytest.mark.mlx_peak({limit})\ndef test_it(): op()\n")
    assert outcomes == {"test_it": outcome}


def test_what_is_there_before_does_not_count(tmp_path):
    text = HEAD + "kept.append(mx.zeros((8 << 20,)))\nmx.eval(kept)\n"
    text += "@pytest.fixture\ndef big():\n    x = mx.ones((4 << 20,))\n    mx.eval(x)\n    return x\n"
    text += "@pytest.mark.mlx_peak('1 kB')\ndef test_setup(big): mx.eval(big[:10] + 1)\n"
    text += "@pytest.mark.mlx_leaks(0)\ndef test_frees():\n    op()\n    kept.clear()\n"
    assert run_tests(tmp_path, text)[0] == {"test_setup": "PASSED", "test_frees": "PASSED"}


def test_leaks_are_what_is_left_after_a_collection(tmp_path):
    text = (
        HEAD
        + "@pytest.mark.mlx_leaks('1 MB')\ndef test_keeps():\n    kept.append(mx.zeros((1 << 20,)))\n    mx.eval(kept)\n"
    )
    text += "@pytest.mark.mlx_leaks(0)\ndef test_cycle():\n    loop = [mx.zeros((1 << 20,))]\n"
    text += "    loop.append(loop)\n    mx.eval(loop[0])\n"
    outcomes, out = run_tests(tmp_path, text)
    assert outcomes == {"test_keeps": "FAILED", "test_cycle": "PASSED"}
    assert "mlx_leaks: the test left 4.0 MiB (4,194,304 bytes) behind" in out and "test_it.py:11 in test_keeps" in out


def test_parametrize_classes_and_async(tmp_path):
    text = HEAD + "@pytest.mark.mlx_peak('6 MB')\n@pytest.mark.parametrize('n', [1, 2])\n"
    text += "def test_sizes(n): mx.eval(mx.zeros((n << 20,)))\n"
    text += "@pytest.mark.mlx_peak('1 MB')\nclass TestAll:\n    def test_member(self): op()\n"
    text += "@pytest.mark.asyncio\n@pytest.mark.mlx_peak('1 MB')\nasync def test_async(): op()\n"
    expected = {"test_sizes[1]": "PASSED", "test_sizes[2]": "FAILED", "test_member": "FAILED", "test_async": "FAILED"}
    assert run_tests(tmp_path, text)[0] == expected


def test_a_failure_of_the_tests_own_is_shown_as_it_is(tmp_path):
    text = HEAD + "@pytest.mark.mlx_peak('1 MB')\ndef test_it():\n    op()\n    assert 1 == 2\n"
    outcomes, out = run_tests(tmp_path, text)
    assert outcomes == {"test_it": "FAILED"}
    assert "assert 1 == 2" in out and "mlx_peak:" not in out


GROWTH = """
def grows():
    kept.append(mx.ones((100,)))
    mx.eval(kept[-1])

def warms_up():
    if len(kept) < 2:
        grows()

def test_flat(mlx_memory): mlx_memory.assert_no_growth(op, 5)
def test_grows(mlx_memory): mlx_memory.assert_no_growth(grows, 5)
def test_allowed(mlx_memory): mlx_memory.assert_no_growth(grows, 5, bytes=2000, count=5)
def test_count(mlx_memory): mlx_memory.assert_no_growth(grows, 5, bytes='1 MB', count=4)
def test_warm(mlx_memory):
    kept.clear()
    mlx_memory.assert_no_growth(warms_up, 5)
def test_cold(mlx_memory):
    kept.clear()
    mlx_memory.assert_no_growth(warms_up, 5, warmup=0)
def test_stats(mlx_memory):
    op()
    assert mlx_memory.stats()['peak_active']['bytes'] >= 16 << 20
    assert mlx_memory.recording.events()
@pytest.fixture
def early(mlx_memory): mlx_memory.stats()
def test_early(early): pass
"""


def test_growth(tmp_path):
    outcomes, out = run_tests(tmp_path, HEAD + GROWTH)
    failed = {name for name, outcome in outcomes.items() if outcome == "FAILED"}
    assert failed == {"test_grows", "test_count", "test_cold"}
    assert outcomes["test_early"] == "ERROR" and "records the call of a test only" in out
    assert "grew by +2.0 KiB and +5 buffers in 5 steps; allowed: 0 B and 0 buffers" in out
    assert "test_it.py:11 in grows" in out


REPORTED = HEAD + "def test_one(): op()\ndef test_two(): pass\ndef test_three():\n    op()\n    assert 0\n"


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_report(tmp_path, workers):
    outcomes, out = run_tests(tmp_path, REPORTED, "--memviz", "--memviz-json", "report.json", *workers)
    assert outcomes == {"test_one": "PASSED", "test_two": "PASSED", "test_three": "FAILED"}
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["schema"] == 1
    tests = {test["test"].rpartition("::")[2]: test for test in report["tests"]}
    facts = {name: (test["peak_bytes"], test["allocations"], test["outcome"]) for name, test in tests.items()}
    assert facts == {
        "test_one": (16_777_220, 2, "passed"),
        "test_two": (0, 0, "passed"),
        "test_three": (16_777_220, 2, "failed"),
    }
    top = tests["test_one"]["top"][0]
    assert (top["line"], top["function"], top["bytes"], top["count"]) == (8, "op", 16_777_220, 2)
    assert "MLX memory" in out and "test_it.py:8 16.0 MiB" in out


@pytest.mark.parametrize(
    "limit, text", [("'1 parsec'", "parsec"), ("-1", "-1"), ("1.5", "1.5"), ("", "expected one limit")]
)
def test_a_limit_that_is_none_is_named(tmp_path, limit, text):
    outcomes, out = run_tests(tmp_path, HEAD + f"@pytest.mark.mlx_peak({limit})\ndef test_it(): pass\n")
    assert outcomes == {"test_it": "FAILED"}
    assert "@pytest.mark.mlx_peak: " in out and text in out


WITHOUT = """
import pytest

@pytest.mark.mlx_peak('1 MB')
def test_marked(): pass
def test_fixture(mlx_memory): pass
def test_plain(): pass
"""


def test_without_mlx_marked_tests_fail_and_others_pass(tmp_path):
    outcomes, out = run_tests(tmp_path, WITHOUT, spec=Spec(mlx=None, extras=SPEC.extras))
    assert outcomes == {"test_marked": "FAILED", "test_fixture": "FAILED", "test_plain": "PASSED"}
    assert "mlx_memviz cannot measure this test: No module named 'mlx'" in out


def test_an_unknown_mlx_fails_marked_tests(tmp_path):
    (tmp_path / "conftest.py").write_text("import mlx.core as mx\nmx.__version__ = '9.9.9'\n")
    outcomes, out = run_tests(tmp_path, WITHOUT)
    assert outcomes == {"test_marked": "FAILED", "test_fixture": "FAILED", "test_plain": "PASSED"}
    assert "no layout table for mlx 9.9.9" in out
    outcomes, out = run_tests(tmp_path, "def test_plain(): pass\n", "--memviz")
    assert outcomes == {"test_plain": "PASSED"} and "1 not measured: no layout table for mlx 9.9.9" in out


def test_nothing_is_imported_unless_a_test_asks(tmp_path):
    text = "import sys\ndef test_it():\n    ours = {name.partition('.')[0] for name in sys.modules} & {'mlx', 'mlx_memviz'}\n"
    outcomes, out = run_tests(tmp_path, text + "    assert not ours\n")
    assert outcomes == {"test_it": "PASSED"}, out


def test_a_report_that_cannot_be_written(tmp_path):
    done = run_python(["-m", "pytest", "--memviz-json", "none/report.json"], SPEC, cwd=tmp_path)
    assert done.returncode == 4 and "no folder" in done.stderr
