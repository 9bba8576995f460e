"""Every supported MLX and Python: exact totals at over 100 points of a wide walk through MLX, and a line for each array."""

import pytest
from running import run_program
from venvs import Spec, matrix

# QR, SVD, eigenvalues and inverses take their scratch on the stream's own thread, where no Python runs.
MAX_SCRATCH = 20
BUFFER_ACTIONS = (
    "AllocNew",
    "AllocReuse",
    "AllocMakeBuffer",
    "FreeActiveToCache",
    "FreeActiveToOS",
    "FreeCacheToOS",
    "Release",
)


@pytest.mark.parametrize("spec", matrix(), ids=lambda spec: spec.name)
def test_totals_are_exact_and_every_array_has_its_line(spec):
    facts = run_program("broad.py", spec=spec)
    assert facts["mlx"] == spec.mlx
    assert_walk_holds(facts)


def test_level_arrays_tells_consistent_lives():
    facts = run_program("broad.py", "arrays")
    assert_walk_holds(facts)
    assert facts["array_errors"] == []
    for action in ("ArrayCreated", "ArrayTookBuffer", "ArraySharesBuffer", "ArrayEvaluated", "ArrayDied"):
        assert facts["actions"].get(action, 0) > 100, action


def test_eager_binding_changes_nothing():
    """LD_BIND_NOW resolves every slot at load, so no slot holds a lazy-binding stub."""
    assert_walk_holds(run_program("broad.py", env={"LD_BIND_NOW": "1"}))


def assert_walk_holds(facts):
    assert facts["mismatches"] == []
    assert facts["points"] >= 100
    assert facts["thread_errors"] == []
    assert (
        facts["stats"]["recorded"]
        == facts["stats"]["seen"]
        == sum(facts["actions"].get(name, 0) for name in BUFFER_ACTIONS)
    )
    assert facts["stats"]["lost"] == 0
    assert facts["hooked_during"] > 50
    assert facts["hooked_after"] == 0
    assert facts["stackless"]["others"] == []
    assert facts["stackless"]["scratch"] <= MAX_SCRATCH
    assert facts["wrong_lines"] == []


def test_the_matrix_names_each_environment_once():
    names = [spec.name for spec in matrix()]
    assert len(names) == len(set(names))
    assert Spec().name in names
