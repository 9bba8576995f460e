"""A small inference loop with a KV cache that grows by concatenation, recorded. usage: generate.py FILE"""

import sys

import mlx.core as mx
from common import facts_of, finish

import mlx_memviz

WIDTH, HEADS, TOKENS = 64, 4, 24
mx.random.seed(0)
recording = mlx_memviz.start(max_entries=None)
weights = [mx.random.normal((WIDTH, WIDTH)) * 0.1 for _ in range(4)]
mx.eval(weights)
keys = values = mx.zeros((1, HEADS, 0, WIDTH // HEADS))
x = mx.random.normal((1, 1, WIDTH))
for _ in range(TOKENS):
    query, key, value = ((x @ weight).reshape(1, 1, HEADS, -1).transpose(0, 2, 1, 3) for weight in weights[:3])
    keys = mx.concatenate([keys, key], axis=2)  # L:keys
    values = mx.concatenate([values, value], axis=2)  # L:values
    attended = mx.fast.scaled_dot_product_attention(query, keys, values, scale=0.25)
    x = attended.transpose(0, 2, 1, 3).reshape(1, 1, WIDTH) @ weights[3]
    mx.eval(x, keys, values)
    mlx_memviz.step()
recording.stop()
recording.save(sys.argv[1])
finish(facts_of(recording, tokens=TOKENS))
