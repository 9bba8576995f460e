"""Generates with mlx-lm, not stopping at the end of a text: the KV cache grows with each token.

usage: lm_generate.py MODEL TOKENS
"""

import json
import sys
import time

import mlx.core as mx
from mlx_lm import load
from mlx_lm.generate import generate_step

model, tokenizer = load(sys.argv[1])
prompt = mx.array(tokenizer.encode("memory is a ledger"))
start = time.perf_counter()
tokens = [token for token, _ in generate_step(prompt, model, max_tokens=int(sys.argv[2]))]
seconds = time.perf_counter() - start
print(json.dumps({"tokens": len(tokens), "seconds": seconds, "first": [int(token) for token in tokens[:8]]}))
