"""The stubs and the annotations against the module that is installed."""

from running import run_python
from venvs import Spec

SPEC = Spec(extras=("mypy==1.18.2",))


def test_stubs_agree_with_the_native_module():
    done = run_python(["-m", "mypy.stubtest", "mlx_memviz"], SPEC, timeout=300)
    assert done.returncode == 0, str(done)


def test_a_program_that_uses_the_documented_names_type_checks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import mlx_memviz\n"
        "with mlx_memviz.record('run.pickle', max_entries=None, min_size=1 << 20) as recording:\n"
        "    mlx_memviz.step()\n"
        "text: str = recording.summary()\n"
        "events: list[dict[str, object]] = recording.events()\n"
    )
    done = run_python(["-m", "mypy", "--strict", program], SPEC, timeout=300)
    assert done.returncode == 0, str(done)
