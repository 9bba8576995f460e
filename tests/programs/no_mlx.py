"""The package imports where MLX is not installed, and says so when asked to record."""

import json

import mlx_memviz

raised = {}
for name, call in {"start": mlx_memviz.start, "record_memory_events": mlx_memviz.record_memory_events}.items():
    try:
        call()
        raised[name] = None
    except Exception as error:
        raised[name] = [type(error).__name__, [kind.__name__ for kind in type(error).__mro__], str(error)]
with mlx_memviz.annotate("marks cost nothing"):
    step = mlx_memviz.step()
print(json.dumps({"raised": raised, "step": step}))
