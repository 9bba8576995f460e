#!/bin/sh
# Runs each fuzz target for some seconds: ci/fuzz_short.sh SECONDS [TARGET...], without targets all of fuzz/fuzz_targets.
# Needs `cargo install cargo-fuzz` and a C++ compiler. Coverage and the address sanitizer are nightly flags of rustc;
# RUSTC_BOOTSTRAP lets the stable compiler take them, so no second toolchain is needed.
# What a target finds is kept in fuzz/artifacts and ends the script with an error.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: ci/fuzz_short.sh SECONDS [TARGET...]" >&2
    exit 2
fi
seconds=$1
shift
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    for file in fuzz/fuzz_targets/*.rs; do
        set -- "$@" "$(basename "$file" .rs)"
    done
fi
export RUSTC_BOOTSTRAP=1
for target in "$@"; do
    cargo fuzz run "$target" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
