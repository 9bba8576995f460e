"""`mlx_memviz.graph` against MLX's own export of the graph, and against what the operations allocate when they run."""

import xml.etree.ElementTree

import pytest
from running import run_program
from venvs import MLX_VERSIONS, Spec


@pytest.mark.parametrize("version", MLX_VERSIONS)
def test_the_nodes_are_those_of_mlx(version):
    for name, facts in run_program("graph.py", "same_as_mlx", spec=Spec(mlx=version)).items():
        assert facts["ours"] == facts["mlx"], name
        assert len(facts["ours"]) > 15
        assert facts["in_order"], "inputs come before the operations that take them"
        assert facts["allocated"] == 0, "looking evaluates nothing"
        assert facts["without_line"] == 0
        assert facts["left"] == 0, "nothing waits after eval"


def test_operations_need_the_bytes_that_the_graph_says():
    facts = run_program("graph.py", "needed_bytes")
    assert len(facts) == 40
    assert {name: both["said"] for name, both in facts.items()} == {name: both["did"] for name, both in facts.items()}
    views = [name for name, both in facts.items() if not any(both["did"].values())]
    assert "transpose of rows" in views and "reshape of rows" in views and "reshape of columns" not in views


def test_a_graph_100_000_deep():
    facts = run_program("graph.py", "deep")
    assert (facts["count"], facts["bytes"], facts["value"]) == (100_000, 1_600_000, 100_001)
    ((line, count, size),) = facts["lines"]
    assert (count, size) == (100_000, 1_600_000)
    assert facts["text"].startswith("100,000 nodes wait; 100,000 built at ")
    assert f"graph.py:{line}" in facts["text"]
    assert "100,000" in facts["refused"] and "by_line()" in facts["refused"]


def test_nothing_is_kept_alive_and_inputs_in_memory_are_told():
    facts = run_program("graph.py", "hold")
    assert facts["held"] >= 4 << 20 and facts["left"] == 0
    is_in_memory, size, line = facts["leaf"]
    assert (is_in_memory, size) == (True, 4 << 20) and line
    assert [True, 4 << 20] in facts["inputs"] and [False, 4 << 20] in facts["inputs"]


def test_lines_are_unknown_without_a_recording_and_errors_say_what_was_expected():
    facts = run_program("graph.py", "unknown")
    assert "line not known" in facts["without"] and "inside mlx_memviz.record()" in facts["without"]
    assert facts["loop"] == 4
    ((unknown, four), (known, two)) = facts["lines"]
    assert (unknown, four, two) == ("line not known", 4, 2) and known.startswith("graph.py:")
    assert len(facts["errors"]) == 3 and all("mx.array" in text for text in facts["errors"])


def test_while_mlx_traces():
    # Mul and Add with their scalars, the argument not in memory; compile, vmap and grad call the function.
    assert all(count >= 2 for count in run_program("graph.py", "traced")["seen"])


def test_pictures_hold_hostile_names():
    facts = run_program("graph.py", "draw")
    assert "<b>" not in facts["html"].replace("<body", "")
    assert 'bad\\"<b>\\\\name&.py:2' in facts["dot"]
    if "error" in facts:
        assert "graphviz" in facts["error"]
        pytest.skip("no dot on PATH: apt-get install graphviz")
    texts = [element.text for element in xml.etree.ElementTree.fromstring(facts["svg"]).iter() if element.text]
    assert 'bad"<b>\\name&.py:2' in texts and "Full" in texts


def test_the_picture_needs_graphviz(tmp_path):
    facts = run_program("graph.py", "draw", env={"PATH": str(tmp_path)})
    assert "graphviz" in facts["error"] and "svg" not in facts
    assert "<svg" not in facts["html"]
