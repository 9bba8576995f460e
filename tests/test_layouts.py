"""The layout table of each MLX against its own header: offsets are the compiler's, and what we write to is padding."""

import json
import shutil
import subprocess

import pytest
from running import run_python
from venvs import MLX_VERSIONS, Spec, environment

PROBE = """
#include <cstddef>
#include <cstdio>
#include <sstream>
#include <unordered_map>
#include <vector>
#define private public
#include "mlx/array.h"
#undef private
#include "mlx/primitives.h"
using D = mlx::core::array::ArrayDesc;
#define FIELD(name) std::printf("\\"%s\\": [%zu, %zu], ", #name, offsetof(D, name), sizeof(D::name));
int main() {
  std::printf("{");
  FIELD(shape) FIELD(dtype) FIELD(primitive) FIELD(status) FIELD(event) FIELD(is_tracer) FIELD(data)
  FIELD(flags) FIELD(inputs) FIELD(siblings)
  std::printf("\\"size\\": [%zu, 0]}", sizeof(D));
}
"""


def compiled_offsets(spec: Spec, folder) -> dict[str, list[int]]:
    include = environment(spec).parent.parent / "lib" / f"python{spec.python}" / "site-packages" / "mlx" / "include"
    source, program = folder / "probe.cpp", folder / "probe"
    source.write_text(PROBE)
    command = ["g++", "-std=c++20", "-w", "-O0", f"-I{include}", str(source), "-c", "-o", str(program) + ".o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    # Linking needs libmlx for the vtables that the header mentions; only constants are printed, so nothing of it runs.
    library = include.parent / "lib"
    link = ["g++", str(program) + ".o", "-o", str(program), f"-L{library}", "-lmlx", f"-Wl,-rpath,{library}"]
    done = subprocess.run(link, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on PATH; install it to compile MLX's headers")
@pytest.mark.parametrize("version", MLX_VERSIONS)
def test_table_agrees_with_the_header(version, tmp_path):
    spec = Spec(mlx=version)
    fields = compiled_offsets(spec, tmp_path)
    code = f"import json; from mlx_memviz import _native; print(json.dumps(_native.layout({version!r})))"
    table = run_python(["-c", code], spec).facts
    for name in ("shape", "dtype", "primitive", "status", "data", "flags", "inputs", "siblings", "size"):
        assert table[name] == fields[name][0], name
    status_end = sum(fields["status"])
    assert status_end <= table["pad_after_status"] and table["pad_after_status"] + 4 <= fields["event"][0]
    tracer_end = sum(fields["is_tracer"])
    assert tracer_end <= table["pad_after_tracer"] and table["pad_after_tracer"] + 6 <= fields["data"][0]
