"""Where a model lives: a run directory, one's own or a temporary one that goes with the object."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from zhat import _zhat

#: A run's lock is a matter of processes, and no part of a model.
_LEFT_OUT = (".lock", "lock")


class Home:
    """A run directory and what the library holds of it."""

    def __init__(self, path: str | os.PathLike | None, threads: int, device: str = "cpu"):
        if path is None:
            path = tempfile.mkdtemp(prefix="zhat-")
            # A forked process must not remove what is its parent's.
            weakref.finalize(self, _remove, path, os.getpid())
        self.path = Path(path)
        self.threads = threads
        self.run = _zhat.Run(self.path, threads, device)

    @property
    def is_finished(self) -> bool:
        """Whether there is a model."""
        return (self.path / "model.json").is_file()

    def files(self, checkpoints: bool) -> dict[str, bytes]:
        """Everything in it, by path."""
        found = {}
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_file() and path.name not in _LEFT_OUT and (checkpoints or not name.startswith("checkpoint/")):
                found[name] = path.read_bytes()
        return found

    @classmethod
    def of_files(cls, files: dict[str, bytes], threads: int, device: str = "cpu") -> "Home":
        home = cls(None, threads, device)
        home.write(files, home.path)
        return home

    @staticmethod
    def write(files: dict[str, bytes], path: Path) -> None:
        for name, content in files.items():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
