#!/bin/sh
# Run in a folder that holds the files of both parts: unzips the wheels into the site-packages of `python3`, whose torch brings
# the CUDA libraries that MLX's wheel looks for.
set -eu
wheel=$(cat cuda_wheel_name)
site=$(python3 -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")
cat part.00 part.01 > "$wheel"
for archive in "$wheel" mlx-*.whl mlx_lm-*.whl; do python3 -m zipfile -e "$archive" "$site"; done
python3 -c "import mlx.core as mx; print('mlx', mx.__version__, mx.default_device())"
