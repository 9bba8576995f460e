#!/bin/sh
# CPython 3.14 and 3.15 from Debian forky, each unpacked into a folder to chroot into: DIR/python3.14, DIR/python3.15.
#
#   ci/pythons_forky.sh DIR [COMMAND...]
#
# Touches nothing of the system: own package lists, own cache, own (empty) package status. Needs root for chroot.
# What is there already is kept. What cannot be had is skipped with a loud line, and the exit status is 0: forky moves.
# COMMAND runs afterwards in every folder, with the crate's scripts in /memviz and PYFRAMES_PROBE pointing to the
# library named by that variable outside; `{python}` stands for the interpreter. Its failure is ours.
set -eu

versions="3.14 3.15"
dir=${1:?usage: ci/pythons_forky.sh DIR [COMMAND...]}
shift
scripts=$(cd "$(dirname "$0")/../crates/memviz-pyframes/tests/python" && pwd)

skip() {
    echo "SKIP SKIP SKIP: $*; CPython was NOT tested with it" >&2
}

# The mirror that this machine already uses.
mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n 's/^URIs: *\(.*\/debian\)\/* *$/\1/p; s/^deb \(\[[^]]*\] \)*\(http[^ ]*\/debian\)\/* .*/\2/p' | head -n 1
}

apt() {
    apt-get -q -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$dir/apt/state" -o Dir::State::lists="$dir/apt/lists" -o Dir::State::status="$dir/apt/status" \
        -o Dir::Cache="$dir/apt/cache" -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0 "$@"
}

# Package lists of forky; fails where there is no such suite.
refresh_lists() {
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/state" "$dir/apt/cache/archives/partial"
    : >"$dir/apt/status"
    from=${MEMVIZ_DEBIAN_MIRROR:-$(mirror)}
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${from:-http://deb.debian.org/debian} forky main" \
        >"$dir/apt/sources.list"
    apt update >"$dir/apt/update.log" 2>&1 && ! grep -q '^Err:' "$dir/apt/update.log"
}

# Downloads one Python with all it needs and unpacks it; base-files first, for it brings the links of merged /usr.
unpack() {
    root=$dir/python$1
    rm -rf "$dir/apt/cache/archives" "$root.part"
    mkdir -p "$dir/apt/cache/archives/partial" "$root.part"
    apt install -y --download-only --no-install-recommends base-files coreutils dash libstdc++6 "python$1" \
        >"$dir/apt/python$1.log" 2>&1 || return 1
    dpkg-deb -x "$dir"/apt/cache/archives/base-files_*.deb "$root.part"
    for deb in "$dir"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$root.part"
    done
    chroot "$root.part" "/usr/bin/python$1" -c 'import ctypes, asyncio' || return 1
    mv "$root.part" "$root"
}

run_in() {
    root=$1
    python=$2
    shift 2
    mkdir -p "$root/memviz"
    cp "$scripts"/*.py "$root/memviz/"
    cp "${PYFRAMES_PROBE:?names the built example}" "$root/memviz/"
    command=$(echo "$*" | sed "s|{python}|/usr/bin/$python|g")
    chroot "$root" /usr/bin/env PYTHONDONTWRITEBYTECODE=1 "PYFRAMES_PROBE=/memviz/$(basename "$PYFRAMES_PROBE")" \
        /bin/sh -c "cd /memviz && $command"
}

[ "$(id -u)" = 0 ] || { skip "not root, so no chroot"; exit 0; }
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { skip "no apt here"; exit 0; }
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
lists=
for version in $versions; do
    root=$dir/python$version
    if [ ! -d "$root" ]; then
        [ -n "$lists" ] || { refresh_lists && lists=yes || lists=no; }
        [ $lists = yes ] || { skip "python$version: no package lists of Debian forky ($dir/apt/update.log)"; continue; }
        unpack "$version" || { skip "python$version: not in Debian forky today ($dir/apt/python$version.log)"; continue; }
    fi
    echo "== $(chroot "$root" "/usr/bin/python$version" -c 'import sys; print(sys.version.split()[0])') $root"
    [ $# = 0 ] || run_in "$root" "python$version" "$@"
done
