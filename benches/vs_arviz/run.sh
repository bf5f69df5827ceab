#!/usr/bin/env bash
# R-hat, effective sample sizes and Pareto k-hat of zhat and of ArviZ on the same numbers: bash benches/vs_arviz/run.sh
# Makes its own virtual environment beside this file. Fails where a figure differs in its sixth digit.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if [ ! -x "$here/.venv/bin/python" ]; then
    python3 -m venv "$here/.venv"
fi
"$here/.venv/bin/python" -W ignore -c 'import arviz, numpy' 2>/dev/null ||
    "$here/.venv/bin/pip" install --quiet 'arviz==0.23.4' numpy
cargo build --release --package zhat --example diagnose --manifest-path "$here/../../Cargo.toml"
exec "$here/.venv/bin/python" -W ignore "$here/compare.py"
