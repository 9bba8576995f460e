"""Trains a small transformer on synthetic data for a few steps: the program that `make demo` records."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

import mlx_memviz

VOCABULARY, WIDTH, LAYERS, HEADS = 256, 64, 4, 4
BATCH, LENGTH, STEPS = 8, 48, 12


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.transformer = nn.TransformerEncoder(LAYERS, WIDTH, HEADS, norm_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def __call__(self, tokens):
        mask = nn.MultiHeadAttention.create_additive_causal_mask(tokens.shape[1])
        return self.head(self.transformer(self.embedding(tokens), mask))


def loss(model, tokens):
    logits = model(tokens[:, :-1])
    return nn.losses.cross_entropy(logits, tokens[:, 1:], reduction="mean")


def main():
    mx.random.seed(0)
    model = LanguageModel()
    optimizer = optim.AdamW(learning_rate=3e-3)
    mx.eval(model.parameters())
    loss_and_grad = nn.value_and_grad(model, loss)
    # Every sequence counts upwards from a random token: easy to learn, so the loss falls.
    ramp = mx.arange(LENGTH + 1)[None, :]
    for step in range(STEPS):
        with mlx_memviz.annotate("data"):
            tokens = (mx.random.randint(0, VOCABULARY, (BATCH, 1)) + ramp) % VOCABULARY
        with mlx_memviz.annotate("forward and backward"):
            value, gradients = loss_and_grad(model, tokens)
        with mlx_memviz.annotate("update"):
            optimizer.update(model, gradients)
            mx.eval(model.parameters(), optimizer.state, value)
        mlx_memviz.step()
        print(f"step {step:2}  loss {value.item():.3f}")


if __name__ == "__main__":
    main()
