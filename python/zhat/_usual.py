"""Which rows of a table are usual, as an isolation forest has it: a first guess that does not learn where strange rows lie together."""

from __future__ import annotations

from typing import Any

import numpy as np

from zhat._table import Table


def usual_rows(table: Table, share: float, weights: np.ndarray | None, seed: int) -> np.ndarray | None:
    """Places of the rows that are left when a share of them, the strangest, is left out; none where too few or nothing else would be left."""
    from sklearn.ensemble import IsolationForest

    from zhat._weights import quantile

    inputs = np.column_stack([_numbers(table, place) for place in range(len(table.columns))])
    inputs = inputs[:, inputs.std(axis=0) > 0]
    if inputs.shape[1] == 0:
        return None
    scores = IsolationForest(random_state=seed % 2**32).fit(inputs, sample_weight=weights).score_samples(inputs)
    rows = np.flatnonzero(scores >= quantile(scores, share, weights))
    # A density needs 20 rows, and two for each column, each of which has to vary.
    is_enough = len(rows) >= max(30, 3 * len(table.columns)) and (inputs[rows].std(axis=0) > 0).all()
    return rows if is_enough else None


def chosen(X: Any, kind: str, rows: np.ndarray) -> Any:
    """Some rows of a table, in its own kind."""
    if kind == "pandas":
        return X.iloc[rows]
    if kind == "polars":
        return X[rows]
    if kind == "arrow":
        return X.take(rows)
    return np.asarray(X)[rows]


def _numbers(table: Table, place: int) -> np.ndarray:
    """A column for a forest: numbers in the order of their size, words by how frequent they are, what is missing in the middle."""
    _, role, values, *_ = table.columns[place]
    missing = table.missing(place)
    if role == "words":
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        found = np.log(counts[inverse.ravel()].astype(float))
    else:
        found = np.asarray(values, dtype=float)
    if missing.all():
        return np.zeros(len(found))
    return np.where(missing, np.median(found[~missing]), found)
