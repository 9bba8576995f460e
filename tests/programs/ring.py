"""Data-parallel steps over MLX's ring; knows nothing of us. Run by `mlx.launch -n 4 --backend ring`."""

import mlx.core as mx


def main() -> None:
    world = mx.distributed.init(strict=True, backend="ring")
    rank, size = world.rank(), world.size()
    weights = mx.random.normal((256, 256 * (rank + 1)))  # L:weights
    mx.eval(weights)
    for _ in range(5):
        grads = mx.ones((256, 256)) * rank
        total = mx.distributed.all_sum(grads)
        mx.eval(total)
        assert total[0, 0].item() == sum(range(size)), total[0, 0].item()
    print(f"rank {rank} of {size}", flush=True)


if __name__ == "__main__":
    main()
