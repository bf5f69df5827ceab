#!/usr/bin/env bash
# The campaign: run.sh [INPUTS [KILLS [FLIPS [SEED]]]]. See README.md beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
inputs=${1:-1000000} kills=${2:-200} flips=${3:-1000} seed=${4:-1}

# Built before the clock of the kills runs.
cargo test --release -p zhat-table -p zhat-cli --test campaign --no-run
failed=0
cargo test --release -p zhat-table --test campaign -- --inputs "$inputs" --seed "$seed" || failed=1
cargo test --release -p zhat-cli --test campaign -- --kills "$kills" --flips "$flips" --seed "$seed" || failed=1
exit $failed
