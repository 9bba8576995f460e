"""The transformer that is trained, in MLX. `SIZES`: (vocabulary, width, layers, heads, batch, tokens, steps)."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten

SIZES = {
    "large": (32_000, 768, 12, 12, 8, 256, 50),
    "busy": (32_000, 768, 12, 12, 32, 1024, 10),  # enough tokens that the CPU waits for the GPU
    "small": (256, 64, 2, 4, 4, 32, 6),
}


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, heads: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder = nn.TransformerEncoder(layers, width, num_heads=heads)
        self.head = nn.Linear(width, vocabulary)

    def __call__(self, tokens):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(tokens.shape[1], dtype=mx.bfloat16)
        return self.head(self.encoder(self.embedding(tokens), mask))


def make(size: str):
    """The number of parameters, the number of steps, and a function that does one step and returns the loss."""
    vocabulary, width, layers, heads, batch, length, steps = SIZES[size]
    mx.random.seed(0)
    model = Transformer(vocabulary, width, layers, heads)
    model.set_dtype(mx.bfloat16)
    mx.eval(model.parameters())
    optimizer = optim.AdamW(learning_rate=1e-4)

    def loss_of(tokens):
        return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

    loss_and_grad = nn.value_and_grad(model, loss_of)

    def step():
        tokens = mx.random.randint(0, vocabulary, (batch, length + 1))
        loss, grads = loss_and_grad(tokens)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state, loss)
        return loss

    return sum(value.size for _, value in tree_flatten(model.parameters())), steps, step
