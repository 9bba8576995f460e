"""The same for PyTorch with `_record_memory_history(stacks="python")` and `stacks="all"`: same operation, depth and sizes."""

import json

import torch
from pairs import DEPTH, OPS, at_depth, measure

# As `model.SIZES`, which needs MLX.
SIZES = {
    "large": (32_000, 768, 12, 12, 8, 256),
    "busy": (32_000, 768, 12, 12, 32, 1024),
    "small": (256, 64, 2, 4, 4, 32),
}
record = torch.cuda.memory._record_memory_history
x = torch.ones((8,), device="cuda")


def build_and_run() -> None:
    outs = [x + x for _ in range(OPS)]
    torch.cuda.synchronize()
    del outs


class Transformer(torch.nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, heads: int):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, layers)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], "cuda", torch.bfloat16)
        return self.head(self.encoder(self.embedding(tokens), mask, is_causal=True))


def training_step(size: str):
    vocabulary, width, layers, heads, batch, length = SIZES[size]
    torch.manual_seed(0)
    model = Transformer(vocabulary, width, layers, heads).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        tokens = torch.randint(0, vocabulary, (batch, length + 1), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()

    return sum(parameter.numel() for parameter in model.parameters()), step


facts = {}
for stacks in ("python", "all"):
    on = lambda stacks=stacks: record("all", context="all", stacks=stacks, max_entries=1_000_000)  # noqa: E731
    off = lambda: record(None)  # noqa: E731
    facts[f"op, stacks={stacks}"] = measure(
        lambda: at_depth(DEPTH, build_and_run), on, off, rounds=9, repetitions=150, per=OPS
    )
    print(stacks, facts[f"op, stacks={stacks}"], flush=True)
for size, repetitions in (("small", 20), ("large", 5), ("busy", 5)):
    parameters, step = training_step(size)
    for _ in range(3):
        step()
    for stacks in ("python", "all"):
        on = lambda stacks=stacks: record("all", context="all", stacks=stacks, max_entries=1_000_000)  # noqa: E731
        name = f"training step, {size}, {parameters} parameters, stacks={stacks}"
        facts[name] = measure(step, on, off, rounds=7, repetitions=repetitions, per=1)
        print(name, facts[name], flush=True)
print(json.dumps(facts))
