#!/usr/bin/env bash
# zhat and what people have, on the same splits for the same processor seconds: bash benches/vs_density/run.sh [OPTIONS]
# Makes its own virtual environment beside this file (about 3 GB with PyTorch's default wheel). Options: see README.md.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if [ ! -x "$here/.venv/bin/python" ]; then
    python3 -m venv "$here/.venv"
fi
"$here/.venv/bin/python" -c 'import torch, zuko, sklearn, pandas, numpy, matplotlib' 2>/dev/null ||
    "$here/.venv/bin/pip" install --quiet torch zuko scikit-learn pandas numpy matplotlib
cargo build --release --workspace --manifest-path "$here/../../Cargo.toml"
exec "$here/.venv/bin/python" "$here/compare.py" "$@"
