"""What rows count: weights as scikit-learn gives them, checked, and a column of the table for the library."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked(sample_weight: Any, rows: int) -> np.ndarray | None:
    """A number for every row, none below zero and not all of them zero; a single number is that of every row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions, but must have one: a number for each row")
    if len(weights) != rows:
        raise ValueError(f"sample_weight has {len(weights)} numbers, and X has {rows} rows")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight, row index {wrong[0]}: the weight is {weights[wrong[0]]}, but must be a number that is not below zero"
        )
    if not weights.any():
        raise ValueError("sample_weight: all weights are zero, so that no row counts. At least one must be above zero.")
    return np.ascontiguousarray(weights)


def name_beside(names: list[str]) -> str:
    """A name for the column of weights that no other column has."""
    name = "sample_weight"
    while name in names:
        name += "_"
    return name


def quantile(values: np.ndarray, level: float, weights: np.ndarray | None) -> float:
    """Of rows as often as they count; without weights as :func:`numpy.quantile` has it."""
    if weights is None:
        return float(np.quantile(values, level))
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(share, level)])
