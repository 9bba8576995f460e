"""Asks for more than the device has: at once, then piece by piece. Prints what MLX raises, which must be the same recorded."""

import json

import mlx.core as mx


def ask(shape) -> mx.array:
    array = mx.zeros(shape, dtype=mx.uint8)  # L:built
    mx.eval(array)  # L:evaluated
    return array


raised = []
try:
    ask((1 << 20, 1 << 20))
except Exception as error:
    raised.append([type(error).__name__, str(error)])
held = []
try:
    # Plain device memory; 16 GiB a piece.
    for _ in range(64):
        held.append(ask((16, 1 << 30)))
except Exception as error:
    raised.append([type(error).__name__, str(error)])
pieces = len(held)
del held
mx.clear_cache()
works = mx.sum(mx.ones((1000,))).item()
print(json.dumps({"raised": raised, "pieces": pieces, "works": works, "active": mx.get_active_memory()}))
