"""The stubs and the annotations against the module that is installed."""

from running import run_python
from venvs import ROOT, Spec

SPEC = Spec(extras=("mypy==1.18.2",))


def test_stubs_agree_with_the_native_module():
    allowed = ROOT / "tests" / "stubtest_allowlist.txt"
    done = run_python(["-m", "mypy.stubtest", "mlx_memviz._native", "--allowlist", allowed], SPEC, timeout=300)
    assert done.returncode == 0, str(done)


def test_the_package_type_checks(tmp_path):
    done = run_python(["-m", "mypy", "-p", "mlx_memviz"], SPEC, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, str(done)


def test_a_program_that_uses_the_documented_names_type_checks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import mlx_memviz\n"
        "with mlx_memviz.record('run.pickle', max_entries=None, min_size=1 << 20) as recording:\n"
        "    mlx_memviz.step()\n"
        "text: str = recording.summary()\n"
        "events: list[dict[str, object]] = recording.events()\n"
        "graph: mlx_memviz.Graph = mlx_memviz.graph([])\n"
        "places: list[str] = [line.place for line in graph.by_line()]\n"
        "sizes: list[int] = [node.bytes for node in graph.nodes if node.file is not None]\n"
    )
    done = run_python(["-m", "mypy", "--strict", program], SPEC, timeout=300)
    assert done.returncode == 0, str(done)
