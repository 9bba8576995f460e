#!/bin/sh
# Puts everything that a GPU machine without a network needs into DIR (default .gpu), in two parts below 64 MiB:
#   DIR/a/part.00            the larger part of the stock MLX CUDA wheel
#   DIR/b/…                  the rest of it, MLX's extension, mlx-lm, our package with its native module, these programs, go.sh
# Needs pip, PyPI, cargo, or instead of cargo the module that MEMVIZ_NATIVE names.
# usage: ci/gpu/fetch.sh [DIR] [MLX_VERSION] [PYTHON_TAG] [CUDA_GENERATION]      e.g. ci/gpu/fetch.sh .gpu 0.32.4 312 13
set -eu
dir=${1:-.gpu} version=${2:-0.32.4} python=${3:-312} cuda=${4:-13}
native=${MEMVIZ_NATIVE:-}
cases=${MEMVIZ_CASES:-../shared/cases}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$native" ]; then
    # As a wheel's module: without this variable it is linked to the libpython of the Python here, which is not there.
    PYO3_BUILD_EXTENSION_MODULE=1 cargo build -q --release -p memviz-py
    native=target/release/lib_native.so
fi
if ldd "$native" | grep libpython; then
    echo "fetch.sh: $native is linked to libpython, expected a module for any Python; build it with PYO3_BUILD_EXTENSION_MODULE=1" >&2
    exit 2
fi
rm -rf "$dir/a" "$dir/b"
mkdir -p "$dir/a" "$dir/b/tree" "$dir/b/cases/real"
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version "$python" \
    --platform manylinux_2_35_x86_64 --platform manylinux_2_17_x86_64 -d "$work" \
    "mlx==$version" "mlx-cuda-$cuda==$version" mlx-lm
split -b 55000000 -d "$work"/mlx_cuda_*.whl "$work/part."
mv "$work/part.00" "$dir/a/"
mv "$work/part.01" "$work"/mlx-"$version"-*.whl "$work"/mlx_lm-*.whl "$dir/b/"
basename "$work"/mlx_cuda_*.whl > "$dir/b/cuda_wheel_name"
git ls-files python ci/gpu tests/programs | tar cf - -T - | tar xf - -C "$dir/b/tree"
# Symbols stay, for backtraces; debug information does not: it is five times the rest.
strip --strip-debug -o "$dir/b/tree/python/mlx_memviz/_native.abi3.so" "$native"
# The model that the generation uses is made there, by the script of the cases.
cp "$cases/real/make_tiny_llama.py" "$dir/b/cases/real/"
cp ci/gpu/go.sh "$dir/b/"
du -sh "$dir/a" "$dir/b"
