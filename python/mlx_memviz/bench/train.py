"""Real training steps: an MLP and a small transformer of mlx.nn, with Adam, at batch sizes people use."""

from __future__ import annotations

import time

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

from mlx_memviz.bench import measure


class _Mlp(nn.Module):
    def __init__(self, sizes: list[int]):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


class _Transformer(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = nn.TransformerEncoder(layers, width, num_heads=4)
        self.head = nn.Linear(width, vocabulary)

    def __call__(self, tokens):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(tokens.shape[1])
        return self.head(self.encoder(self.embedding(tokens), mask))


def _step_of(model, x, y):
    mx.eval(model.parameters())
    optimizer = optim.Adam(learning_rate=1e-3)
    loss_and_grad = nn.value_and_grad(model, lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean"))

    def step():
        loss, grads = loss_and_grad(x, y)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state, loss)

    return step


def _mlp(batch: int):
    return _step_of(_Mlp([784, 256, 256, 10]), mx.random.normal((batch, 784)), mx.random.randint(0, 10, (batch,)))


def _transformer(batch: int, length: int = 32):
    tokens = mx.random.randint(0, 256, (batch, length))
    return _step_of(_Transformer(256, 64, 2), tokens, tokens)


PROGRAMS = (
    ("MLP 784-256-256-10, batch 32", lambda: _mlp(32)),
    ("MLP 784-256-256-10, batch 256", lambda: _mlp(256)),
    ("transformer 2x64, 32 tokens, batch 4", lambda: _transformer(4)),
    ("transformer 2x64, 32 tokens, batch 16", lambda: _transformer(16)),
)


def run(options: measure.Options):
    for name, make in PROGRAMS[: 2 if options.is_quick else None]:
        step = make()
        for _ in range(3):
            step()
        repetitions = measure.repetitions_for(step, 20 if options.is_quick else 150)
        pairs = measure.pairs(f"train: {name}", step, options.rounds, repetitions, time.process_time_ns)
        yield measure.result("train", f"{name}, off", [off / 1e6 for off in pairs.wall.off], "ms")
        yield measure.result("train", f"{name}, on/off", pairs.wall.ratios, "×", target=1.02)
        yield measure.result("train", f"{name}, on/off, CPU time", pairs.ratios, "×")
