"""What the pytest plugin measures: one recording for each test, from the start of its call to its end.

Limits are about what the test itself adds, so a test passes or fails whatever ran before it: bytes above what was active
when its call began, fixtures set up. Allocator events are counted, so memory that MLX takes from its cache is seen.
The hooks are in `mlx_memviz_pytest`.
"""

from __future__ import annotations

import gc
import json
import os
import pathlib
from collections.abc import Callable, Generator
from typing import Any

import pytest  # type: ignore[import-not-found,unused-ignore]

from mlx_memviz import _attach, _native, _recording, _text

_TOP = 5
_NO_PYTHON_LINE = "no Python line"
_PROPERTY = "mlx_memviz"
_ALLOCS = ("AllocNew", "AllocReuse", "AllocMakeBuffer")
_FREES = ("FreeActiveToCache", "FreeActiveToOS", "Release")
_memory_key = pytest.StashKey["Memory"]()


class Memory:
    """The fixture `mlx_memory`. Usable while the test runs: not in other fixtures, which are set up before."""

    def __init__(self) -> None:
        self._recording: _recording.Recording | None = None

    @property
    def recording(self) -> _recording.Recording:
        """The recording of this test."""
        if self._recording is None:
            raise _native.MemvizError(
                "mlx_memory records the call of a test only: not while fixtures are set up or torn down"
            )
        return self._recording

    def stats(self) -> dict[str, Any]:
        """Counters since the test's call began, as `mlx_memviz.stats` gives them."""
        return self.recording.stats()

    def assert_no_growth(
        self, fn: Callable[[], object], steps: int, bytes: int | str = 0, count: int = 0, *, warmup: int = 2
    ) -> None:
        """Calls `fn` `warmup` times, then `steps` times, and fails if what is alive has grown over the latter.

        bytes:  growth that is allowed over all steps together, "1 MB" or a number.
        count:  the same in buffers.
        warmup: rounds that may fill caches, compile and make optimizer states. What they leave is not growth.

        Garbage is collected, and MLX's streams are waited for, before each of the two comparisons.
        """
        limit = _bytes(bytes)
        if steps < 1 or warmup < 0 or count < 0:
            raise ValueError(f"steps={steps}, warmup={warmup}, count={count}: expected steps from 1, the others from 0")
        for _ in range(warmup):
            fn()
        before, lines = self._at_rest()
        for _ in range(steps):
            fn()
        after, lines_after = self._at_rest()
        grown, buffers = after[0] - before[0], after[1] - before[1]
        if grown > limit or buffers > count:
            text = (
                f"grew by {_signed(grown)} and {buffers:+,} buffers in {steps} steps; "
                f"allowed: {_text.size(limit)} and {count:,} buffers"
            )
            pytest.fail(f"{text}\n{_table(_growth(lines, lines_after))}", pytrace=False)

    def _at_rest(self) -> tuple[tuple[int, int], list[dict[str, Any]]]:
        _settle()
        stats = self.stats()
        return (stats["active"], _alive(stats)), _native.lines_at(self.recording.trace._inner, "end")


def memory_of(item) -> Memory:
    """The one `Memory` of a test."""
    return item.stash.setdefault(_memory_key, Memory())


def measure(item, marks: list, needs: bool) -> Generator[None, Any, Any]:
    """Wraps the call of a test: records it, reports it, and holds it to its marks.

    A test with marks that cannot be measured fails. So does none that is only reported.
    """
    limits = [(mark.name, _limit_of(mark)) for mark in marks]
    try:
        measured = _Measured(item, empties_cache=any(name == "mlx_peak_reserved" for name, _ in limits))
    except (_native.MemvizError, ImportError) as error:
        if needs:
            pytest.fail(f"mlx_memviz cannot measure this test: {error}", pytrace=False)
        item.user_properties.append((_PROPERTY, {"error": str(error)}))
        return (yield)
    try:
        result = yield
        measured.settle()
    finally:
        measured.stop()
        item.user_properties.append((_PROPERTY, measured.facts()))
    failures = [text for name, limit in limits if (text := measured.failure(name, limit))]
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)
    return result


def _limit_of(mark) -> int:
    problem = "expected one limit, such as '200 MB'"
    if len(mark.args) == 1 and not mark.kwargs:
        try:
            return _bytes(mark.args[0])
        except (TypeError, ValueError) as error:
            problem = str(error)
    raise pytest.fail.Exception(f"@pytest.mark.{mark.name}: {problem}", pytrace=False)


def _bytes(limit: int | str) -> int:
    if isinstance(limit, str):
        return _native.bytes_from_text(limit)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise TypeError(f"limit is {limit!r}, expected bytes, at least 0, or a text such as '200 MB'")
    return limit


def _settle() -> None:
    """Waits for MLX and collects garbage, so that what is alive is what is held."""
    _attach.mlx_core().synchronize()
    gc.collect()


def _alive(stats: dict[str, Any]) -> int:
    """Buffers that became active less those that were freed."""
    count = stats["by_action"]
    return sum(count[name][0] for name in _ALLOCS if name in count) - sum(
        count[name][0] for name in _FREES if name in count
    )


class _Measured:
    """The recording of one test's call."""

    def __init__(self, item, empties_cache: bool):
        mx = _attach.mlx_core()
        _settle()
        if empties_cache:
            mx.clear_cache()
        self._item = item
        self._recording = _recording.start()
        self._start = self._recording.stats()
        memory_of(item)._recording = self._recording

    def settle(self) -> None:
        if self._recording.is_running:
            _settle()

    def stop(self) -> None:
        # The item outlives its test; what was recorded must not.
        memory_of(self._item)._recording = None
        self._recording.stop()
        self._end = self._recording.stats()

    def _added(self, name: str) -> int:
        """What a mark limits, in bytes."""
        if name == "mlx_peak":
            return self._end["peak_active"]["bytes"] - self._start["active"]
        if name == "mlx_peak_reserved":
            return self._end["peak_reserved"]["bytes"] - self._start["reserved"]
        return self._end["active"] - self._start["active"]

    def _lines(self, moment) -> list[dict[str, Any]]:
        """What this test built: not what was there before it."""
        lines = _native.lines_at(self._recording.trace._inner, moment)
        return [line for line in lines if line["kind"] in ("", _NO_PYTHON_LINE)]

    def failure(self, name: str, limit: int) -> str | None:
        added = self._added(name)
        if added <= limit:
            return None
        moment = {"mlx_peak": "peak", "mlx_peak_reserved": "reserved", "mlx_leaks": "end"}[name]
        what = {
            "mlx_peak": "the test added {} at its peak, limit {}",
            "mlx_peak_reserved": "the test made MLX hold {} more at its peak, active and cached, limit {}",
            "mlx_leaks": "the test left {} behind, limit {}",
        }[name]
        text = what.format(_exact(added), _exact(limit))
        return f"{name}: {text}\n{_table(self._lines(moment))}"

    def facts(self) -> dict[str, Any]:
        """For the report: plain values, which pytest-xdist carries from its workers."""
        lines = [line for line in self._lines("peak") if not line["kind"]][:_TOP]
        actions = self._end["by_action"]
        return {
            "peak_bytes": self._added("mlx_peak"),
            "peak_reserved_bytes": self._added("mlx_peak_reserved"),
            "left_bytes": self._added("mlx_leaks"),
            "allocations": sum(actions[name][0] for name in _ALLOCS if name in actions),
            "hit_rate": self._end["hit_rate"],
            "top": lines,
        }


def _exact(size: int) -> str:
    text = _text.size(size)
    return text if text.endswith(" B") else f"{text} ({size:,} bytes)"


def _signed(size: int) -> str:
    return ("-" if size < 0 else "+") + _text.size(abs(size))


def _growth(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines that hold more than before."""

    def key(line):
        return line["kind"], line["file"], line["function"], line["line"]

    held = {key(line): (line["bytes"], line["count"]) for line in before}
    grown = []
    for line in after:
        size, count = held.get(key(line), (0, 0))
        if line["bytes"] > size or line["count"] > count:
            grown.append({**line, "bytes": max(line["bytes"] - size, 0), "count": max(line["count"] - count, 0)})
    return sorted(grown, key=lambda line: (-line["bytes"], -line["count"]))


def _table(lines: list[dict[str, Any]]) -> str:
    rows = [(_text.size(line["bytes"]), f"{line['count']:,}", _place(line), _made_by(line)) for line in lines[:_TOP]]
    text = _text.text_table(("bytes", "buffers", "built at", "by"), rows, numbers=2)
    return f"{text}\n  and {len(lines) - _TOP} more lines" if len(lines) > _TOP else text


def _place(line: dict[str, Any]) -> str:
    return line["kind"] or f"{_text.place(line['file'], line['line'])} in {line['function']}"


def _made_by(line: dict[str, Any]) -> str:
    return ", ".join(name or "Python data" for name in line["primitives"])


class Reporter:
    """Prints and writes what the tests reported; lives in the process that has the terminal."""

    def __init__(self, config: Any):
        path = config.getoption("memviz_json")
        # The program may change its folder since.
        self._path = None if path is None else pathlib.Path(path).absolute()
        if self._path is not None and not self._path.parent.is_dir():
            raise pytest.UsageError(f"--memviz-json: no folder {str(self._path.parent)!r}")
        self._tests: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call":
            facts = [value for name, value in report.user_properties if name == _PROPERTY]
            self._tests += [{"test": report.nodeid, "outcome": report.outcome, **fact} for fact in facts[-1:]]

    def pytest_terminal_summary(self, terminalreporter) -> None:
        terminalreporter.section("MLX memory")
        terminalreporter.write_line(_report(self._tests))
        if self._path is not None:
            part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
            try:
                part.write_text(json.dumps({"schema": 1, "tests": self._tests}, indent=2) + "\n")
                part.replace(self._path)
            except OSError as error:
                part.unlink(missing_ok=True)
                terminalreporter.write_line(f"cannot write {self._path}: {error.strerror}", red=True)


_HEAD = ("peak", "reserved", "left", "allocations", "reused", "test", "top line at the peak")


def _report(tests: list[dict[str, Any]]) -> str:
    measured = [test for test in tests if "error" not in test]
    rows = [_report_row(test) for test in sorted(measured, key=lambda test: -test["peak_bytes"])]
    lines = [_text.text_table(_HEAD, rows, numbers=5) if rows else "  no test was measured"]
    errors = sorted({test["error"] for test in tests if "error" in test})
    lines += [f"  {sum(test.get('error') == error for test in tests)} not measured: {error}" for error in errors]
    return "\n".join(lines)


def _report_row(test: dict[str, Any]) -> tuple[str, ...]:
    rate = "" if test["hit_rate"] is None else f"{test['hit_rate']:.0%}"
    top = test["top"][0] if test["top"] else None
    line = "" if top is None else f"{_text.place(top['file'], top['line'])} {_text.size(top['bytes'])}"
    sizes = (_text.size(test["peak_bytes"]), _text.size(test["peak_reserved_bytes"]), _signed(test["left_bytes"]))
    return (*sizes, f"{test['allocations']:,}", rate, test["test"], line)
