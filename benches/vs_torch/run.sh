#!/usr/bin/env bash
# PyTorch and zhat side by side on this machine: bash benches/vs_torch/run.sh [ROUNDS]
# Makes its own virtual environment beside this file (about 3 GB with PyTorch's default wheel).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if [ ! -x "$here/.venv/bin/python" ]; then
    python3 -m venv "$here/.venv"
fi
"$here/.venv/bin/python" -c 'import torch, numpy' 2>/dev/null ||
    "$here/.venv/bin/pip" install --quiet torch numpy
cd "$here/../.."
cargo build --release --workspace
exec "$here/.venv/bin/python" "$here/compare.py" --rounds "${1:-3}"
