"""An MLX that no table knows: refused, nothing patched, MLX works on."""

import json

import mlx.core as mx

import mlx_memviz
from mlx_memviz import _native

refusals = []
for _ in range(2):
    try:
        mlx_memviz.start()
    except mlx_memviz.AttachError as error:
        refusals.append(str(error))
works = mx.sum(mx.ones((100,)) + 1).item()
print(json.dumps({"mlx": mx.__version__, "refusals": refusals, "works": works, "is_recording": _native.is_recording()}))
