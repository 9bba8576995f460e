# make demo   sets everything up and records a small training run on stock MLX
# make test   sets everything up and runs all checks and tests of the gate
# make bench  measures, and writes benches/RESULTS.md
# make soak   the long tests: more Pythons, MLX's own test suite, longer fuzzing
PYTHON ?= python3
DEMO := target/demo
FUZZ_SECONDS ?= 20

.PHONY: demo test bench soak wheel lint rust arrows viewer python fuzz clean

demo: $(DEMO)/.ready
	$(DEMO)/bin/memviz run -o demo.memviz demo/train_transformer.py
	$(DEMO)/bin/memviz check demo.memviz
	$(DEMO)/bin/memviz growth demo.memviz
	$(DEMO)/bin/memviz export demo.memviz -o demo.pickle

$(DEMO)/.ready: wheel
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/pip install --quiet --disable-pip-version-check 'mlx[cpu]==0.32.4'
	$(DEMO)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/mlx_memviz-*-abi3-*.whl
	touch $@

# One wheel for every Python from 3.10.
wheel: target/build/bin/maturin
	rm -f target/wheels/mlx_memviz-*.whl
	target/build/bin/maturin build --release --quiet --out target/wheels

target/build/bin/maturin:
	$(PYTHON) -m venv target/build
	target/build/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' 'ruff==0.17.6' 'pytest>=8,<10' 'pytest-xdist>=3.6,<4' 'tomli; python_version<"3.11"'

test: lint arrows viewer rust python fuzz

lint: target/build/bin/maturin
	cargo fmt --all --check
	target/build/bin/ruff check --quiet
	target/build/bin/ruff format --quiet --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

arrows:
	$(PYTHON) ci/arrows.py
	$(PYTHON) ci/news.py

# The page of `memviz view`, from source: it must be what is committed as viewer/dist.
viewer:
	ci/viewer.sh check

# The real libmlx of each release for memviz-image, real snapshots of PyTorch for memviz-format where they are.
rust: export MEMVIZ_TORCH_SNAPSHOTS ?= $(abspath $(wildcard ../shared/torch_page/real))
rust:
	$(PYTHON) ci/fetch_wheels.py target/mlx-wheels >target/mlx-libs
	MEMVIZ_MLX_LIBS="$$(cat target/mlx-libs)" cargo test --workspace --quiet
	cargo test --workspace --quiet --profile dev-fast

python: wheel
	target/build/bin/python tests/run.py

fuzz:
	ci/fuzz_short.sh $(FUZZ_SECONDS)

bench: $(DEMO)/.ready
	$(DEMO)/bin/python -m mlx_memviz.bench --write benches/RESULTS.md

soak: wheel
	target/build/bin/python tests/run.py --soak
	ci/fuzz_short.sh 600

clean:
	rm -rf target
