#!/usr/bin/env bash
# Takes the pictures of the lanes page in docs/images anew: starts `lanekeeper dev`, offers it messages
# for a minute, and has a browser look. Takes a bit over a minute.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
key=lk_devdevdevdev_notasecretnotasecretnotasecretnotasecret
address=127.0.0.1:${PORT:-18999}

scripts/clients.sh
cargo build --locked --bin lanekeeper
LANEKEEPER__API__LISTEN=$address "$target/debug/lanekeeper" dev >/dev/null &
dev=$!
trap 'kill "$dev" 2>/dev/null || true' EXIT
for _ in {1..100}; do
    curl --silent --fail --output /dev/null "http://$address/" && break
    sleep 0.1
done
mkdir -p docs/images
NODE_PATH=$(realpath "$target/clients/browser/node_modules") \
    node tests/browser/screenshots.cjs "http://$address" "$key" docs/images
printf 'screenshots: docs/images\n'
