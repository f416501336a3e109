#!/usr/bin/env bash
# Seconds that a newcomer waits: a clone of HEAD, an empty pip cache, then each command of the README.
# usage: benchmarks/commands.sh        (about fifteen minutes; nothing else should be running)
set -euo pipefail
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone -q "$(git rev-parse --show-toplevel)" "$clone"
cd "$clone"
for target in setup quick reproduce test; do
  start=$(date +%s)
  make "$target" > "$target.log" 2>&1 && status=done || status=FAILED
  echo "make $target: $(( $(date +%s) - start )) s, $status"
done
