"""The pytest plugin's hooks: marks, options and the fixture `mlx_memory`.

pytest loads this in every project of an environment, so it imports neither mlx_memviz nor MLX before a test asks for them;
that is also why it is no module of `mlx_memviz`. What is measured and how: `mlx_memviz._pytest`, and docs/pytest.md.
"""

from __future__ import annotations

import pytest  # type: ignore[import-not-found,unused-ignore]

MARKS = {
    "mlx_peak": "limit of the bytes that a test adds at its peak, for example '200 MB'",
    "mlx_peak_reserved": "the same for active and cached bytes; the cache is emptied before the test",
    "mlx_leaks": "limit of the bytes that a test leaves behind, after a garbage collection",
}


def pytest_addoption(parser) -> None:
    group = parser.getgroup("memviz", "MLX memory")
    group.addoption("--memviz", action="store_true", help="report the MLX memory of each test")
    group.addoption("--memviz-json", metavar="PATH", help="write the report of --memviz as JSON")


def pytest_configure(config) -> None:
    for name, text in MARKS.items():
        config.addinivalue_line("markers", f"{name}(limit): {text}")
    if _reports(config) and not hasattr(config, "workerinput"):
        from mlx_memviz import _pytest

        config.pluginmanager.register(_pytest.Reporter(config), "mlx_memviz_reporter")


def _reports(config) -> bool:
    return config.getoption("memviz") or config.getoption("memviz_json") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    marks = [mark for name in MARKS if (mark := item.get_closest_marker(name))]
    needs = bool(marks) or "mlx_memory" in getattr(item, "fixturenames", ())
    if not needs and not _reports(item.config):
        return (yield)
    from mlx_memviz import _pytest

    return (yield from _pytest.measure(item, marks, needs))


@pytest.fixture
def mlx_memory(request):
    """The recording of this test, its counters, and `assert_no_growth(fn, steps)`; see docs/pytest.md."""
    from mlx_memviz import _pytest

    return _pytest.memory_of(request.node)
