"""Executes a notebook that records itself, for test_notebook.py: notebook.py HTML_FILE. Prints what its cells showed."""

import json
import sys

import nbclient
import nbformat

CELLS = {
    "load": "%load_ext mlx_memviz\nimport mlx.core as mx\n\ndef helper(n):\n    x = mx.ones((n,))\n    mx.eval(x)\n    return x",
    "magic": "%%memviz -o recording --lines 3\n\nkept = helper(1 << 20)\nfor i in range(3):\n    y = kept * 2; mx.eval(y)\n1 + 1",
    "rich": "recording",
    "data": """
import json, mlx_memviz
print(json.dumps({
    "lines": [(line["file"], line["line"], line["bytes"]) for line in recording.trace.report()["top_by_bytes"]],
    "files": sorted({file for event in recording.events() for file, _, _ in event["traceback"]}),
    "recording": mlx_memviz.stats() if mlx_memviz._native.is_recording() else None,
}))""",
    "raises": "%%memviz\nmx.eval(mx.zeros((8,)))\nraise KeyError('mine')",
    "plain": "mx.eval(mx.zeros((8,)))\nraise KeyError('mine')",
    "syntax": "%%memviz\ndef (",
    "option": "%%memviz --min-size 3q\n1",
    "silent": "%%memviz\n3;",
    "magics inside": "%%memviz\n!echo shouted\n%timeit -n1 -r1 mx.eval(kept + 1)",
    "graph": "import mlx_memviz\nwith mlx_memviz.record():\n    graph = mlx_memviz.graph(kept + 1)\ngraph",
    "trace": "recording.trace",
    "not started": "mlx_memviz.record()",
    "hostile": r"""
code = "def f():\n    return mx.ones((4,))\nx = f(); mx.eval(x)"
with mlx_memviz.record() as hostile:
    exec(compile(code, "<img src=x onerror=alert(1)>&\udc80\x1b.py", "exec"))
hostile""",
}


def shown(cell) -> dict:
    """What a cell put out, by kind."""
    found: dict = {"html": [], "stdout": "", "text": None, "error": None, "stderr": ""}
    for output in cell.outputs:
        if output.output_type == "error":
            found["error"] = [output.ename, output.evalue, "\n".join(output.traceback)]
        elif output.output_type == "stream":
            found[output.name] += output.text
        else:
            found["html"] += [output.data["text/html"]] if "text/html" in output.data else []
            if output.output_type == "execute_result":
                found["text"] = output.data["text/plain"]
    return found


def main(path: str) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS.values()])
    nbclient.NotebookClient(notebook, allow_errors=True, timeout=120).execute()
    facts = {name: shown(cell) for name, cell in zip(CELLS, notebook.cells)}
    styles = ("background:#fff;color:#222", "background:#111;color:#ddd")
    parts = [part for name in ("magic", "raises", "graph", "hostile") for part in facts[name]["html"]]
    page = "".join(
        f'<div style="{style};padding:8px;font-family:sans-serif">{"".join(parts)}</div>' for style in styles
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta charset="utf-8">{page}')
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1])
