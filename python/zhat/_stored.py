"""A density that is saved, loaded and pickled: its run directory goes with it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zhat import _settings
from zhat._home import Home
from zhat._table import Schema
from zhat._values import default_schema

if TYPE_CHECKING:
    from zhat._density import Density

#: The file that remembers, beside a model, what kind of table it was fitted to.
SCHEMA = "python.json"


class Stored:
    """What :class:`zhat.Density` has of it."""

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the run directory, which the command ``zhat`` opens too (``zhat evaluate PATH new.csv``)."""
        check_is_fitted(self, "results_")
        path = Path(path)
        if path.exists() and any(path.iterdir()):
            raise ValueError(f"{path} is not empty. Give another directory, or remove it.")
        path.mkdir(parents=True, exist_ok=True)
        Home.write(self._home.files(checkpoints=True), path)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike, *, n_jobs: int | None = None, device: str = "cpu") -> "Density":
        """Opens a model of :meth:`save`, or the run directory of ``zhat fit``."""
        density = cls(n_jobs=n_jobs, device=device)
        density._open(Home(Path(os.fspath(path)), _settings.threads(n_jobs), device))
        return density

    def _open(self, home: Home) -> None:
        self._home, self._table_seen, self._weights_seen, self._notes = home, None, None, []
        # Opened here, so that what is no model is said here.
        card = json.loads(home.run.card())
        results = home.path / "results.json"
        self.results_ = json.loads(results.read_text()) if results.is_file() else {}
        known = home.path / SCHEMA
        if known.is_file():
            self._schema = Schema.from_json(json.loads(known.read_text()))
        else:
            self._schema = default_schema(card.get("kinds", []), card["columns"])
        self.n_features_in_ = len(self._schema.columns)
        if self._schema.kind != "array":
            self.feature_names_in_ = np.array([column.name for column in self._schema.columns], dtype=object)
        self._describe()

    def __getstate__(self):
        state = dict(super().__getstate__())
        home = state.pop("_home", None)
        # The rows are the caller's, and draws for a picture are soon made again.
        state.pop("_table_seen", None)
        state.pop("_weights_seen", None)
        state.pop("_drawn", None)
        if home is not None:
            state["_files"] = home.files(checkpoints=not home.is_finished)
        return state

    def __setstate__(self, state):
        state = dict(state)
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            self._home = Home.of_files(files, _settings.threads(self.n_jobs), self.device)
            self._table_seen = self._weights_seen = None
            if hasattr(self, "run_dir_"):
                self.run_dir_ = self._home.path

    def __sklearn_is_fitted__(self):
        return hasattr(self, "results_")
