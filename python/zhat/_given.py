"""Columns that a density is given, and rows that have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from zhat._table import read


def names(given: Any, name_of: Any) -> list[str]:
    """The columns that are given, by name: one or several of them."""
    several = given if isinstance(given, (list, tuple, set, frozenset, np.ndarray)) or hasattr(given, "to_list") else [given]
    return [name_of(name) for name in several]


def rows(density: Any, X: Any) -> tuple[list[tuple], Any]:
    """Rows whose cells are given, as columns in the model's order, and the table they are of: what it has not is missing.

    Frames have their columns by name. Arrays have all of them, or those that the model is given in their order.
    """
    table = read(X, "sample")
    given, own = density.given_, [column.name for column in density._schema.columns]
    known = table.names
    if "array" in (table.schema.kind, density._schema.kind):
        by_place = {len(own): own, len(given): given}.get(len(known))
        if by_place is None:
            of_given = f", or the {len(given)} that are given" if given else ""
            raise ValueError(f"given_rows has {len(known)} columns, but must have all {len(own)} of the table{of_given}")
        known = by_place
    columns = {name: (name, *cells[1:]) for name, cells in zip(known, table.columns)}
    if not any(name in columns for name in density._columns):
        raise ValueError(f"given_rows has none of the model's columns, which are {', '.join(density._columns)}")
    for name in given:
        if name not in columns:
            raise ValueError(f"given_rows is without column {name}: the model is a density given {', '.join(given)}")
        missing = np.flatnonzero(table.missing(known.index(name)))
        if len(missing):
            raise ValueError(f"given_rows, row index {missing[0]}, column {name}: the cell is missing, and the model is given it")
    nothing = np.full(table.rows, np.nan)
    return [columns.get(name, (name, "number", nothing)) for name in density._columns], table


def draws(density: Any, X: Any, number: int) -> np.ndarray:
    """Draws as numbers and codes, for pictures: where columns are given, of as many rows of ``X`` or of the fit's own."""
    if not density.given_:
        return density._home.run.sample(number, [], None, 0)[0]
    table = density._read(density._data(X, "draws"), reset=False)
    chosen = np.arange(number) * table.rows // number
    columns = {name: (name, role, cells[chosen], *words) for name, role, cells, *words in table.columns}
    nothing = np.full(number, np.nan)
    found = [columns[name] if name in density.given_ else (name, "number", nothing) for name in density._columns]
    return density._home.run.sample(1, [], None, 0, found, table.source)[0]
