#!/bin/sh
# On the GPU machine: installs what `fetch.sh` packed, if it is not installed yet, and runs stages of `run.py`.
# usage: sh PART_B/go.sh OUT [STAGE ...]        PART_A's file lies in /tmp/mlx already
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
if [ ! -e /tmp/mlx/tree ]; then
    mkdir -p /tmp/mlx
    cp -r "$here"/* /tmp/mlx/
    cd /tmp/mlx
    wheel=$(cat cuda_wheel_name)
    site=$(python3 -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")
    cat part.00 part.01 > "$wheel"
    # torch of this Python brings the CUDA libraries that MLX's wheel looks for.
    for archive in "$wheel" mlx-*.whl mlx_lm-*.whl; do python3 -m zipfile -e "$archive" "$site"; done
fi
cd /tmp/mlx/tree
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv
python3 -c "import mlx.core as mx; print('mlx', mx.__version__, mx.default_device())"
MEMVIZ_CASES=/tmp/mlx/cases exec python3 ci/gpu/run.py --out "$out" "$@"
