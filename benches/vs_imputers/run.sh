#!/usr/bin/env bash
# zhat and scikit-learn: missing cells filled, and a column predicted with its whole distribution: bash benches/vs_imputers/run.sh [OPTIONS]
# Makes its own virtual environment beside this file. Options: see README.md.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if [ ! -x "$here/.venv/bin/python" ]; then
    python3 -m venv "$here/.venv"
fi
"$here/.venv/bin/python" -c 'import sklearn, pandas, numpy' 2>/dev/null ||
    "$here/.venv/bin/pip" install --quiet scikit-learn pandas numpy
cargo build --release --package zhat-cli --manifest-path "$here/../../Cargo.toml"
exec "$here/.venv/bin/python" "$here/compare.py" "$@"
