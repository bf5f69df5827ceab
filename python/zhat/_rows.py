"""Tables as a density reads them: checked against those of its fit, in the order of its columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zhat import _weights
from zhat._table import Column, Schema, Table, read
from zhat._values import build, decoded


class TableWarning(UserWarning):
    """Something that one should know of a table, or of a model's answer, but that stops nothing."""


class Rows:
    """What :class:`zhat.Density` has of it."""

    def _read(self, X: Any, reset: bool) -> Table:
        table = read(X, type(self).__name__)
        _check_names(self, X, reset=reset)
        if reset:
            self.n_features_in_ = len(table.columns)
            return table
        if len(table.columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.columns)} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        names = [column.name for column in self._schema.columns]
        if table.names != names:
            # Without names, or with those of another kind of table, columns are known by their places.
            table.columns = [(name, *column[1:]) for name, column in zip(names, table.columns)]
        return table

    def _rows(self, X: Any, model_order: bool = True) -> tuple[Any, Table]:
        """Rows for the library, and the table they are of: an array itself where nothing has to be done to it."""
        table = self._read(X, reset=False)
        plain = not any(found["kind"] == "categorical" for found in self.kinds_ if found["name"] in self._columns)
        if (
            plain
            and isinstance(X, np.ndarray)
            and X.dtype == np.float32
            and X.flags.c_contiguous
            and self._columns == [column.name for column in self._schema.columns]
        ):
            return X, table
        if self.given_ or self._schema.weight:
            # The columns of the fit stood otherwise than those of the model, and places say nothing.
            known = {column[0]: column for column in table.columns}
            return [known[name] for name in self._columns], table
        return table.columns, table

    def _score(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "results_")
        rows, table = self._rows(X)
        log_density, errors, _ = self._home.run.score(rows, table.source, False)
        self._warn_unknown()
        return log_density, errors

    def _decoded(self, column: Any, values: np.ndarray, name: str | None = None) -> np.ndarray:
        name = name or column.name
        place = self._columns.index(name)
        kind = next((found for found in self.kinds_ if found["name"] == name), None)
        return decoded(values, column, kind, place, self._home.run.texts)

    def _own_name(self, name: str, table: Table) -> str:
        return table.names[[column.name for column in self._schema.columns].index(name)]

    def _name(self, name: Any) -> str:
        """Columns of arrays are known by their place from 0 too."""
        if isinstance(name, (int, np.integer)) and self._schema.kind == "array":
            return self._schema.columns[int(name)].name
        return str(name)

    def _data(self, X: Any, what: str) -> Any:
        X = self._table_seen if X is None else X
        if X is None:
            raise ValueError(f"{what}: the rows of the fit are not here any more (the model was loaded); give them as X")
        return X

    def _own(self, X: Any, sample_weight: Any, what: str) -> Table:
        """The table of the fit with its column of weights, as given again or as it was seen."""
        table = self._read(self._data(X, what), reset=False)
        weights = self._weights_seen if sample_weight is None else _weights.checked(sample_weight, table.rows)
        if self._schema.weight is None:
            if weights is not None:
                raise ValueError(f"{what}: sample_weight is given, and the fit had none; leave it out")
        elif weights is None:
            raise ValueError(f"{what}: the weights of the fit are not here any more (the model was loaded); give them as sample_weight")
        else:
            table.columns.append((self._schema.weight, "number", weights))
        return table

    def _warn_unknown(self) -> None:
        for text in self._home.run.warnings():
            if text not in self._notes:
                self._notes.append(text)
                warnings.warn(text, TableWarning, stacklevel=3)


def is_category(column: Any) -> bool:
    return column.dtype in ("category", "Categorical", "Enum", "dictionary")


def text_of(value: Any) -> str:
    if isinstance(value, np.datetime64) or hasattr(value, "isoformat"):
        text = value.isoformat() if hasattr(value, "isoformat") else str(value.astype("datetime64[s]"))
        return text[:-9] if text.endswith("T00:00:00") else text
    return str(value)


def _check_names(estimator: Any, X: Any, reset: bool) -> None:
    try:
        from sklearn.utils.validation import _check_feature_names
    except ImportError:
        estimator._check_feature_names(X, reset=reset)
        return
    _check_feature_names(estimator, X, reset=reset)


def frame_of_numbers(kind: str, names: list[str], values: np.ndarray, index: Any) -> Any:
    dtype = {"pandas": "float64", "polars": "Float64", "arrow": "double"}[kind]
    columns = [(Column(name, "number", dtype), values[:, place]) for place, name in enumerate(names)]
    return build(Schema(kind, []), columns, index)
