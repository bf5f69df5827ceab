"""The command ``zhat``: the same program as that of Rust."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the program with the arguments of this process, and ends with its exit code."""
    from zhat import _zhat

    sys.exit(_zhat.program(["zhat", *sys.argv[1:]]))
