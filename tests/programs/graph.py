"""Facts about `mlx_memviz.graph`, for test_graph.py: graph.py KIND."""

import io
import json
import re
import sys

import mlx.core as mx
import mlx.nn as nn

import mlx_memviz


def exported(*arrays) -> list[str]:
    """Names of the primitives in MLX's own export."""
    out = io.StringIO()
    mx.export_to_dot(out, *arrays)
    return sorted(re.findall(r'\[label ="([^"]*)", shape=rectangle\]', out.getvalue()))


def model_loss():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    mx.eval(model.parameters())
    x, y = mx.random.normal((8, 16)), mx.zeros((8,), mx.int32)
    mx.eval(x, y)
    loss, grads = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))(x, y)
    return [loss, grads]


def many():
    a = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)
    mx.eval(a)
    q, r = mx.divmod(a + 1, a * 2)
    parts = mx.split(q, 2, axis=2)
    compiled = mx.compile(lambda x, y: (mx.exp(x) * y + 1, x - y))(r, q)
    return [mx.concatenate(parts, axis=0), r.T, mx.softmax(a), a[:, 1:], *compiled, mx.sort(q), a @ a.swapaxes(1, 2)]


def flat(tree) -> list:
    if isinstance(tree, dict):
        return [array for value in tree.values() for array in flat(value)]
    return [array for item in tree for array in flat(item)] if isinstance(tree, (list, tuple)) else [tree]


def same_as_mlx() -> dict:
    facts = {}
    with mlx_memviz.record():
        for make in (model_loss, many):
            arrays = make()
            active = mx.get_active_memory()
            graph = mlx_memviz.graph(*arrays)
            facts[make.__name__] = {
                "ours": sorted(node.primitive for node in graph.nodes),
                "mlx": exported(*flat(arrays)),
                "in_order": all(
                    item.node is None or item.node < node.index for node in graph.nodes for item in node.inputs
                ),
                "allocated": mx.get_active_memory() - active,
                "lines": len({node.line for node in graph.nodes}),
                "without_line": sum(node.file is None for node in graph.nodes),
            }
            mx.eval(arrays)
            facts[make.__name__]["left"] = len(mlx_memviz.graph(*arrays))
    return facts


# Each makes one array of a matrix that lies in order, or of its transpose; the graph says what it needs.
OPERATIONS = {
    "add": lambda a: a + a,
    "astype": lambda a: a.astype(mx.float16),
    "as_strided": lambda a: mx.as_strided(a, (4, 4), (1, 1), 0),
    "broadcast": lambda a: mx.broadcast_to(a[None], (3, *a.shape)),
    "contiguous": mx.contiguous,
    "cumsum": lambda a: mx.cumsum(a, axis=0),
    "expand_dims": lambda a: mx.expand_dims(a, 1),
    "flatten": mx.flatten,
    "gather": lambda a: a[mx.array([1, 0, 3])],
    "matmul": lambda a: a @ mx.ones((a.shape[1], 2)),
    "moveaxis": lambda a: mx.moveaxis(a, 0, 1),
    "reshape": lambda a: a.reshape(-1),
    "slice": lambda a: a[1:3, ::2],
    "split": lambda a: mx.split(a, 2)[0],
    "squeeze": lambda a: mx.squeeze(mx.expand_dims(a, 0)),
    "stop_gradient": mx.stop_gradient,
    "transpose": lambda a: a.T,
    "unflatten": lambda a: mx.unflatten(a, 0, (2, -1)),
    "view": lambda a: a.view(mx.int32),
    "where": lambda a: mx.where(a > 1, a, 0.0),
}


def needed_bytes() -> dict:
    facts = {}
    base = mx.arange(64, dtype=mx.float32).reshape(8, 8)
    for name, operation in OPERATIONS.items():
        for kind, source in (("rows", lambda: base), ("columns", lambda: base.T)):
            start = source()
            mx.eval(start, base)
            with mlx_memviz.record() as recording:
                result = operation(start)
                graph = mlx_memviz.graph(result)
                already = len(recording.events())
                mx.eval(result)
                events = recording.events()[already:]
            said = {}
            for node in graph.nodes:
                said[node.primitive] = said.get(node.primitive, 0) + node.bytes
            did = dict.fromkeys(said, 0)
            for event in events:
                if event["action"].startswith("Alloc") and event["primitive"] in did and not event["is_temporary"]:
                    did[event["primitive"]] += event["requested"]
            facts[f"{name} of {kind}"] = {"said": said, "did": did}
            del result
    return facts


def deep() -> dict:
    x = a = mx.ones((4,))
    mx.eval(a)
    with mlx_memviz.record():
        for _ in range(100_000):
            x = x + a
        graph = mlx_memviz.graph(x)
        lines = graph.by_line()
        try:
            graph.to_dot()
            refused = ""
        except ValueError as error:
            refused = str(error)
    # MLX frees the chain iteratively only when it has been evaluated or detached in pieces; leave that to eval.
    mx.eval(x)
    return {
        "count": len(graph),
        "bytes": graph.bytes,
        "lines": [[line.line, line.count, line.bytes] for line in lines],
        "text": str(graph),
        "refused": refused,
        "value": x[0].item(),
    }


def hold() -> dict:
    """Nothing is kept alive: the buffer goes when the arrays go, whatever graph is still there."""
    before = mx.get_active_memory()
    with mlx_memviz.record():
        a = mx.ones((1 << 20,))
        mx.eval(a)
        b = a * 2
        graph = mlx_memviz.graph(b)
        held = mx.get_active_memory() - before
        del a, b
        left = mx.get_active_memory() - before
    leaf = graph.leaves[0]
    inputs = [(item.is_in_memory, item.bytes) for node in graph.nodes for item in node.inputs]
    return {"held": held, "left": left, "leaf": [leaf.is_in_memory, leaf.bytes, leaf.line], "inputs": inputs}


def unknown() -> dict:
    a = mx.ones((2,))
    b = a + 1
    without = str(mlx_memviz.graph(b))
    with mlx_memviz.record():
        c = b + 1
        within = mlx_memviz.graph(c)
        lines = [(line.place.rpartition("/")[2], line.count) for line in within.by_line()]
    errors = []
    for wrong in ((), ([],), ("text", 3)):
        try:
            mlx_memviz.graph(*wrong)
        except TypeError as error:
            errors.append(str(error))
    loop = [b]
    loop.append(loop)
    return {"without": without, "lines": lines, "errors": errors, "loop": len(mlx_memviz.graph(loop))}


def draw() -> dict:
    with mlx_memviz.record():
        exec(compile("def f(mx):\n    return mx.ones((2,)) + 1\n", 'bad"<b>\\name&.py', "exec"), globals())
        graph = mlx_memviz.graph(globals()["f"](mx))
    facts = {"dot": graph.to_dot(), "html": graph._repr_html_()}
    try:
        facts["svg"] = graph.to_svg()
    except mlx_memviz.MemvizError as error:
        facts["error"] = str(error)
    return facts


def traced() -> dict:
    seen = []

    def function(x):
        seen.append(len(mlx_memviz.graph(x * 2 + 1)))
        return x * 2

    mx.eval(
        mx.compile(function)(mx.ones((2,))),
        mx.vmap(function)(mx.ones((2, 2))),
        mx.grad(lambda x: function(x).sum())(mx.ones((2,))),
    )
    return {"seen": seen}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
