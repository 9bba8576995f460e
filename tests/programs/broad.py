"""A wide walk through MLX: at each point our sums must equal MLX's counters.

    broad.py [buffers|arrays]

Prints: points, mismatches, hooked slots while recording and after, allocations without a stack and why, marked lines where
an allocation of that line has another innermost frame, what `check()` found.
"""

import contextlib
import functools
import gc
import sys
import tempfile
import threading
from pathlib import Path

import harness
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

import mlx_memviz

LEVEL = sys.argv[1] if len(sys.argv) > 1 else "buffers"
VERSION = tuple(int(part) for part in mx.__version__.split(".")[:2])
KIB = 1 << 10
# MLX itself crashes on CUDA when threads evaluate at once: without us in 3 of 3 runs on an H200.
HAS_THREADS = mx.default_device() == mx.cpu or mx.metal.is_available()
# Sizes that occur once: marker of the line that builds it, bytes.
MARKED = {
    "zeros": 4 * 101 * 103,
    "literal": 4 * 5,
    "arange": 4 * 10007,
    "chain": 4 * 211 * 223,
    "matmul": 4 * 227 * 229,
    "numpy_in": 4 * 233 * 239,
    "gather": 4 * 3 * 241,
    "conv": 4 * 2 * 13 * 17 * 7,
    "compiled_call": 4 * 251 * 257,
    "grad_call": 4 * 263 * 269,
    "loaded": 4 * 271 * 277,
    "thread": 4 * 281 * 283,
}


def creation(at):
    with_nothing = mx.array([])
    at("empty")
    literal = mx.array([1.0, 2.0, 3.0, 4.0, 5.0])  # L:literal
    at("array of a list")
    scalar = mx.array(3.5)
    at("scalar")
    zeros = mx.zeros((101, 103))  # L:zeros
    mx.eval(zeros)
    at("zeros")
    ones = mx.ones((7, 11, 13), dtype=mx.int16)
    mx.eval(ones)
    at("ones")
    counted = mx.arange(10007)  # L:arange
    mx.eval(counted)
    at("arange")
    drawn = mx.random.normal((64, 64)), mx.random.randint(0, 9, (33,)), mx.random.bernoulli(0.5, (21,))
    mx.eval(drawn)
    at("random")
    eye = mx.eye(31), mx.tri(17), mx.linspace(0, 1, 57), mx.full((3, 5), 2)
    mx.eval(eye)
    at("eye, tri, linspace, full")
    del with_nothing, literal, scalar, zeros, ones, counted, drawn, eye
    at("creation dropped")


def elementwise(at, r):
    chain = mx.zeros((211, 223))
    mx.eval(chain)
    for _ in range(20):
        chain = mx.exp(-mx.abs(chain)) * 0.5 + chain  # L:chain
    mx.eval(chain)
    at("chain with donation")
    fraction = (r + 1) * (r - 1) / (r * r + 2)
    mx.eval(fraction)
    at("expression")
    two = mx.divmod(mx.arange(100) + 1, 7)
    mx.eval(two)
    at("two outputs")
    del two[0]
    at("one of two outputs dropped")
    in_place = mx.array(r)
    in_place += 1
    mx.eval(in_place)
    at("in place")
    for op in (mx.sigmoid, mx.erf, mx.square, mx.logical_not, mx.isnan, mx.rsqrt, mx.floor):
        mx.eval(op(r))
    at("unary operations")
    mx.eval(mx.where(r > 0, r, -r), mx.clip(r, -1, 1), mx.maximum(r, 0), r.astype(mx.float16), mx.softmax(r, axis=-1))
    at("where, clip, maximum, astype, softmax")
    return chain


def views(at, r):
    reshaped = r.reshape(64, -1)
    mx.eval(reshaped)
    at("reshape")
    transposed = r.T
    mx.eval(transposed)
    at("transpose")
    copied = transposed.reshape(-1)
    mx.eval(copied)
    at("reshape that copies")
    sliced = r[3:40:2, 5:90]
    mx.eval(sliced)
    at("slice")
    parts = mx.split(r, 8, axis=1)
    mx.eval(parts)
    at("split")
    del parts[3:]
    gc.collect()
    at("split partly dropped")
    wide = mx.broadcast_to(mx.array(1.5), (100, 100)), mx.expand_dims(r, 0), mx.as_strided(r, (10, 10), (3, 7), 5)
    mx.eval(wide)
    at("broadcast, expand_dims, as_strided")
    joined = mx.concatenate([r, r]), mx.stack([r, r]), mx.contiguous(transposed), mx.tile(r, (2, 1)), mx.pad(r, 1)
    mx.eval(joined)
    at("concatenate, stack, contiguous, tile, pad")
    base = mx.zeros((500, 500))
    mx.eval(base)
    corner = base[:2, :2]
    mx.eval(corner)
    del base
    at("view keeps its base")
    del corner
    at("base dropped with its view")


def reductions(at, r):
    for op in (mx.sum, mx.mean, mx.max, mx.min, mx.prod, mx.argmax, mx.logsumexp, mx.var):
        mx.eval(op(r, axis=0), op(r, axis=1), op(r))
    at("reductions")
    mx.eval(mx.sort(r, axis=1), mx.argsort(r, axis=0), mx.topk(r, 5), mx.partition(r, 3))
    at("sorts")
    mx.eval(mx.cumsum(r, axis=0), mx.cumprod(r, axis=1))
    at("scans")
    mx.eval(mx.fft.fft(r), mx.fft.rfft2(r))
    at("fft")


def products(at, r):
    a, b = mx.zeros((227, 19)), mx.zeros((19, 229))
    product = a @ b  # L:matmul
    mx.eval(product)
    at("matmul")
    mx.eval(mx.matmul(mx.stack([r, r]), mx.stack([r, r])), mx.addmm(r, r, r), mx.inner(r, r), r.T @ r)
    at("batched matmul, addmm, inner, transposed")
    mx.eval(mx.einsum("ij,jk->ik", r, r), mx.tensordot(r, r, 1), mx.outer(r[0], r[1]))
    at("einsum, tensordot, outer")


def indexing(at, r):
    table = mx.zeros((50, 241))
    picked = table[mx.array([1, 5, 7])]  # L:gather
    mx.eval(picked)
    at("gather")
    target = mx.array(r)
    target[mx.array([0, 1])] = 5.0
    mx.eval(target)
    at("scatter")
    target[2:5] = 1
    mx.eval(target)
    at("slice update")
    mx.eval(r.at[0].add(3), mx.take_along_axis(r, mx.argmax(r, axis=1, keepdims=True), axis=1))
    at("at, take_along_axis")
    mx.eval(mx.put_along_axis(r, mx.array([[0]]), mx.array(1.0), axis=1))
    at("put_along_axis")


def layers(at, r):
    x, w = mx.random.normal((2, 13, 17, 3)), mx.random.normal((7, 3, 3, 3))
    y = mx.conv2d(x, w, padding=1)  # L:conv
    mx.eval(y)
    at("conv2d")
    mx.eval(mx.conv1d(mx.random.normal((2, 32, 4)), mx.random.normal((5, 3, 4))))
    at("conv1d")
    packed = mx.quantize(r)
    mx.eval(packed)
    at("quantize")
    mx.eval(mx.quantized_matmul(r, *packed), mx.dequantize(*packed))
    at("quantized_matmul, dequantize")
    mx.eval(mx.fast.layer_norm(r, None, None, 1e-5), mx.fast.rms_norm(r, mx.ones((256,)), 1e-5))
    at("fast norms")
    q = mx.random.normal((1, 4, 32, 16))
    mx.eval(mx.fast.scaled_dot_product_attention(q, q, q, scale=0.25))
    at("attention")
    mx.eval(mx.fast.rope(q, 16, traditional=False, base=10000, scale=1.0, offset=0))
    at("rope")
    embedding, attention = nn.Embedding(10, 16), nn.MultiHeadAttention(16, 2)
    x = embedding(mx.array([[1, 2, 3]]))
    mx.eval(attention(x, x, x))
    at("embedding and attention layers")
    mx.eval(nn.LSTM(16, 8)(x), nn.GRU(16, 8)(x))
    at("recurrent layers")


def factorisations(at, r):
    """These take scratch from the allocator on the stream's own thread: buffers without an array."""
    cpu, small = mx.cpu, r[:32, :32]
    symmetric = small @ small.T + 40 * mx.eye(32)
    mx.eval(small, symmetric)
    named = {
        "qr": lambda: mx.linalg.qr(small, stream=cpu),
        "svd": lambda: mx.linalg.svd(small, stream=cpu),
        "inv": lambda: mx.linalg.inv(symmetric, stream=cpu),
        "cholesky": lambda: mx.linalg.cholesky(symmetric, stream=cpu),
        "eigh": lambda: mx.linalg.eigh(symmetric, stream=cpu),
        "eig": lambda: mx.linalg.eig(small, stream=cpu),
        "lu": lambda: mx.linalg.lu(small, stream=cpu),
    }
    for name, factorise in named.items():
        if not hasattr(mx.linalg, name):
            continue
        result = factorise()
        mx.eval(result)
        mx.synchronize()
        at(f"linalg.{name}")
        del result
        at(f"linalg.{name} dropped")


def transformations(at, r):
    mx.eval(mx.vmap(lambda a, b: (a * b).sum())(r, r))
    at("vmap")
    x = mx.zeros((263, 269))
    gradient = mx.grad(lambda x: mx.sin(x).sum())(x)  # L:grad_call
    mx.eval(gradient)
    at("grad")
    compiled = mx.compile(lambda x: x * (1 + mx.erf(x / 2**0.5)) / 2)
    for _ in range(2):
        mx.eval(compiled(r))
        at("compile")
    x = mx.zeros((251, 257))
    mx.eval(compiled(x))
    again = compiled(x)  # L:compiled_call
    mx.eval(again)
    at("compiled function, second call")
    mx.eval(mx.checkpoint(lambda x: mx.exp(x) * 2)(r))
    at("checkpoint")
    mx.eval(mx.grad(lambda x: mx.checkpoint(lambda x: mx.exp(x) * 2)(x).sum())(r))
    at("grad of checkpoint")
    mx.eval(mx.custom_function(lambda x: x * 2)(r))
    at("custom_function")
    mx.eval(mx.jvp(lambda x: x * x, (r,), (r,)), mx.vjp(lambda x: x * x, (r,), (r,)))
    at("jvp, vjp")


def training(at):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    mx.eval(model.parameters())
    at("parameters")
    x, y = mx.random.normal((32, 64)), mx.random.randint(0, 10, (32,))
    loss_and_grad = nn.value_and_grad(model, lambda m, x, y: mx.mean(nn.losses.cross_entropy(m(x), y)))
    optimizer = optim.Adam(1e-3)
    for number in range(6):
        loss, gradients = loss_and_grad(model, x, y)
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state, loss)
        at(f"training step {number}")
    state = [model.state, optimizer.state]

    @functools.partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        loss, gradients = loss_and_grad(model, x, y)
        optimizer.update(model, gradients)
        return loss

    for number in range(6):
        mx.eval(state, step(x, y))
        at(f"compiled training step {number}")


def conversions(at, r):
    array = mx.array(np.ones((233, 239), dtype=np.float32))  # L:numpy_in
    at("from numpy")
    mx.eval(array + 1)
    at("from numpy, used")
    copied = np.array(r)
    at("to numpy")
    view = np.array(r, copy=False)
    at("numpy view")
    pinned = mx.zeros((100, 100))
    mx.eval(pinned)
    view = memoryview(pinned)
    del pinned
    at("memoryview keeps a dropped array")
    del view, copied
    at("memoryview dropped")
    r.tolist()
    mx.sum(r).item()
    str(r)
    at("tolist, item, print")
    mx.eval(r)
    shared = np.from_dlpack(r)
    at("dlpack")
    del shared


def files(at, r):
    with tempfile.TemporaryDirectory() as folder:
        big = mx.zeros((271, 277))
        mx.save(f"{folder}/a.npy", big)
        at("save npy")
        loaded = mx.load(f"{folder}/a.npy")  # L:loaded
        mx.eval(loaded)
        at("load npy")
        mx.savez(f"{folder}/a.npz", r=r, s=r)
        many = mx.load(f"{folder}/a.npz")
        mx.eval(many)
        at("npz")
        mx.save_safetensors(f"{folder}/a.safetensors", {"r": r, "s": r})
        lazy = mx.load(f"{folder}/a.safetensors")
        at("safetensors, not evaluated")
        mx.eval(lazy)
        at("safetensors")
        try:
            mx.save_gguf(f"{folder}/a.gguf", {"r": r})
            mx.eval(mx.load(f"{folder}/a.gguf"))
        except Exception as error:
            print(f"gguf skipped: {error}", file=sys.stderr)
        at("gguf")
        del loaded, many, lazy
        mx.synchronize()
        at("loaded dropped")


def streams(at, r):
    first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    crossing = []
    for _ in range(20):
        product = mx.matmul(r, r, stream=first)
        crossing.append(mx.add(product, r, stream=second).sum(stream=first))
    mx.eval(crossing)
    at("two streams")
    for number in range(30):
        flying = [mx.exp(r, stream=first) + mx.sin(r, stream=second) for _ in range(4)]
        mx.async_eval(flying)
        if number % 6 == 0:
            at(f"async_eval in flight {number}")
    mx.synchronize(first)
    mx.synchronize(second)
    at("async_eval done")
    del flying, crossing
    at("streams dropped")


def threads(at):
    # Before 0.31, MLX itself crashes when threads evaluate at once.
    lock = threading.Lock() if VERSION < (0, 31) else contextlib.nullcontext()
    errors = []

    def work(number):
        try:
            for _ in range(40):
                with lock:
                    x = mx.random.uniform(shape=(64 + number, 64))
                    y = (x @ x.T).sum() + mx.exp(x).mean()
                    mx.eval(y)
                    y.item()
            with lock:
                mx.eval(mx.zeros((281, 283)))  # L:thread
        except Exception as error:
            errors.append(repr(error))

    workers = [threading.Thread(target=work, args=(number,), name=f"worker {number}") for number in range(4)]
    for worker in workers:
        worker.start()
    for number in range(20):
        at(f"threads at work {number}")
        workers[0].join(0.01)
    for worker in workers:
        worker.join()
    mx.synchronize()
    at("threads joined")
    return errors


def cache_limits(at):
    """Only 0.32 and later have a cache on the CPU; the calls exist everywhere."""
    many = [mx.zeros((500, 500)) for _ in range(10)]
    mx.eval(many)
    at("ten of 1 MB")
    del many
    at("ten freed")
    mx.set_cache_limit(3 << 20)
    at("cache limit 3 MiB")
    many = [mx.ones((200, 200 + number)) for number in range(40)]
    mx.eval(many)
    del many
    at("freed over the limit")
    for number in range(6):
        mx.eval(mx.ones((100 * (number + 1), 100)))
    at("mixed sizes")
    mx.set_cache_limit(1 << 20)
    at("cache limit 1 MiB")
    mx.clear_cache()
    at("clear_cache")
    mx.eval(mx.ones((300, 300)))
    at("after clear_cache")
    mx.set_cache_limit(0)
    at("cache off")
    mx.eval(mx.ones((300, 300)))
    at("without cache")
    mx.set_cache_limit(32 << 20)
    at("cache on")


def exceptions(at, r):
    fail = {
        "inside eval": lambda: mx.eval(mx.linalg.cholesky(-mx.eye(4), stream=mx.cpu)),
        "wrong shapes": lambda: mx.eval(r @ mx.ones((3, 3))),
        "no such file": lambda: mx.load("/nonexistent.npy"),
        "wrong reshape": lambda: mx.reshape(r, (3, 3)),
    }
    for name, call in fail.items():
        with contextlib.suppress(Exception):
            call()
        at(f"exception: {name}")

    def deep(levels):
        return mx.ones((9, 9)) if levels == 0 else deep(levels - 1) + 1

    mx.eval(deep(60))
    at("recursion")


def walk(at) -> list[str]:
    r = mx.random.normal((256, 256))
    mx.eval(r)
    at("start")
    creation(at)
    chain = elementwise(at, r)
    for part in (views, reductions, products, indexing, layers, factorisations, transformations, conversions, files):
        part(at, r)
    training(at)
    streams(at, r)
    errors = threads(at) if HAS_THREADS else []
    cache_limits(at)
    exceptions(at, r)
    del r, chain
    gc.collect()
    mx.synchronize()
    at("almost all dropped")
    return errors


def stackless(events: list[dict]) -> dict:
    """Allocations without a Python stack: how many were for no array on threads that are not Python's, and the others."""
    python_threads = {"MainThread", *(f"worker {number}" for number in range(4))}
    without = [event for event in events if harness.is_alloc(event) and not event["traceback"]]
    scratch = [event for event in without if not event["dtype"] and event["thread"] not in python_threads]
    others = [event for event in without if event not in scratch]
    keys = ("action", "size", "thread", "primitive", "dtype", "shape", "is_temporary", "evaluated_at")
    return {"scratch": len(scratch), "others": [{key: event[key] for key in keys} for event in others]}


def wrong_lines(events: list[dict]) -> list:
    """Marked lines whose buffer, of a size that no other line allocates, is missing or belongs to another line."""
    wrong = []
    for marker, size in MARKED.items():
        if marker == "thread" and not HAS_THREADS:
            continue
        line = harness.marked_line(__file__, marker)
        found = [harness.innermost(event) for event in events if harness.is_alloc(event) and event["requested"] == size]
        if not any(frame and Path(frame[0]) == Path(__file__) and frame[2] == line for frame in found):
            wrong.append([marker, line, found])
    return wrong


def array_errors(events: list[dict]) -> list:
    """Level arrays: what contradicts the life of an array or of its buffer."""
    wrong, created, died, active = [], set(), set(), set()
    for event in events:
        action, address = event["action"], event["address"]
        if harness.is_alloc(event):
            active.add(address)
        elif action in ("FreeActiveToCache", "FreeActiveToOS", "Release"):
            active.discard(address)
        elif action == "ArrayCreated":
            created.add(event["array"])
        elif action in ("ArrayTookBuffer", "ArraySharesBuffer"):
            if event["array"] not in created:
                wrong.append([action, event["index"], "array was not created"])
            if event["size"] and address not in active:
                wrong.append([action, event["index"], "buffer is not active"])
        elif action == "ArrayInputs":
            if not {event["array"], *event["inputs"]} <= created - died:
                wrong.append([action, event["index"], "of an array that is not alive"])
        elif action == "ArrayDied":
            if event["array"] in died:
                wrong.append([action, event["index"], "died before"])
            died.add(event["array"])
    return wrong


def main() -> None:
    mx.random.seed(7)
    recording = mlx_memviz.record(level=LEVEL).start()
    at = harness.Checkpoints(recording)
    errors = walk(at)
    during = harness.hooked_slots()
    recording.stop()
    events = recording.events()
    allocs = [event for event in events if harness.is_alloc(event) and event["size"]]
    actions = {}
    for event in events:
        actions[event["action"]] = actions.get(event["action"], 0) + 1
    harness.finish(
        mlx=mx.__version__,
        **at.facts(),
        hooked_during=during,
        hooked_after=harness.hooked_slots(),
        thread_errors=errors,
        stackless=stackless(events),
        wrong_lines=wrong_lines(events),
        array_errors=array_errors(events) if LEVEL == "arrays" else [],
        actions=actions,
        allocations=len(allocs),
        with_own_stack=sum(bool(event["traceback"]) and not event["is_temporary"] for event in allocs),
        with_any_stack=sum(bool(event["traceback"] or event["evaluated_at"]) for event in allocs),
        check=recording.check(),
        stats={key: value for key, value in recording.stats().items() if isinstance(value, int)},
    )


if __name__ == "__main__":
    main()
