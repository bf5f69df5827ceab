"""Values of a model as the user has them: numbers, words and dates, in a table like the one that came in."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from zhat._table import Column, Schema, Table

#: Gives the values of a column as texts: its place among the model's columns, and numbers.
Texts = Callable[[int, list], list]


def default_schema(kinds: list[dict], columns: Sequence[str]) -> Schema:
    """For a model of the command line, whose table was a file: pandas where it is installed, else arrays."""
    try:
        import pandas  # noqa: F401

        kind = "pandas"
    except ImportError:
        kind = "array"
    known = {found["name"]: found for found in kinds}
    names = [found["name"] for found in kinds] or list(columns)
    return Schema(kind, [_default_column(name, known.get(name)) for name in names])


def _default_column(name: str, found: dict | None) -> Column:
    if found is None:
        return Column(name, "number")
    form = found.get("form", {}).get("form", "plain")
    if form in ("date", "time"):
        return Column(name, "moments", "datetime64[s]")
    if found["kind"] == "integer" and all(float(value).is_integer() for value in found["values"]):
        return Column(name, "number", "int64")
    if found["kind"] == "categorical" and all(_number(word) is not None for word in found["levels"][:-1]):
        return Column(name, "number", "int64")
    words = found["kind"] in ("categorical", "identifier") or form == "decorated"
    return Column(name, "words" if words else "number", "object" if words else "float64")


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def decoded(values: np.ndarray, column: Column, kind: dict | None, place: int, texts: Texts) -> np.ndarray:
    """Numbers and codes of a column as numbers (with the decimals of the rows), words (objects) or moments (datetime64); NaN, None and NaT where
    missing."""
    values = np.asarray(values, dtype=np.float64)
    name = kind["kind"] if kind else "continuous"
    missing = np.isnan(values)
    if column.role == "number":
        if name != "categorical":
            form = kind.get("form", {}) if kind else {}
            return np.round(values, form["decimals"]) if form.get("form") == "decimals" else values
        numbers = [_number(word) for word in kind["levels"]]
        levels = np.array([np.nan if number is None else number for number in numbers] + [np.nan])
        return levels[np.where(missing, -1, values).astype(np.int64)]
    if column.role == "moments":
        form = kind.get("form", {}) if kind else {}
        scale, origin = (86_400, 0) if form.get("form") == "date" else (1, form.get("origin", 0))
        seconds = origin + np.rint(np.where(missing, 0, values)).astype(np.int64) * scale
        moments = seconds.astype("datetime64[s]")
        moments[missing] = np.datetime64("NaT")
        return moments
    if name == "categorical":
        words = np.array([*kind["levels"], None], dtype=object)
        return words[np.where(missing, -1, values).astype(np.int64)]
    found = np.array(texts(place, values.tolist()), dtype=object)
    found[missing] = None
    return found


def build(schema: Schema, columns: list[tuple[Column, np.ndarray]], index: Any = None) -> Any:
    """A table like the one that came in, of decoded columns."""
    if schema.kind == "array":
        return _array(schema, columns)
    if schema.kind == "pandas":
        import pandas as pd

        made = {column.name: _pandas(values, column, index) for column, values in columns}
        return pd.DataFrame(made, index=index)
    if schema.kind == "polars":
        import polars as pl

        return pl.DataFrame([_polars(values, column) for column, values in columns])
    import pyarrow as pa

    names = [column.name for column, _ in columns]
    return pa.table([_arrow(values, column) for column, values in columns], names=names)


def filled(X: Any, table: Table, columns: dict[str, tuple[Column, np.ndarray, np.ndarray]]) -> Any:
    """The user's table with some cells replaced; the others stay as they are. By name: column, which cells, all values."""
    kind = table.schema.kind
    if kind == "array":
        out = np.array(X, copy=True)
        if out.dtype.kind not in "fO":
            return out
        places = {name: place for place, name in enumerate(table.names)}
        for name, (_, mask, values) in columns.items():
            out[mask, places[name]] = values[mask]
        return out
    if kind == "pandas":
        out = X.copy()
        for place, label in enumerate(X.columns):
            if str(label) in columns:
                column, mask, values = columns[str(label)]
                new = _pandas(values, column, X.index)
                out = out.assign(**{label: X.iloc[:, place].where(~mask, new)}) if isinstance(label, str) else out
                if not isinstance(label, str):
                    out[label] = X.iloc[:, place].where(~mask, new)
        return out
    if kind == "polars":
        import polars as pl

        made = []
        for series in X.get_columns():
            if series.name in columns:
                column, mask, values = columns[series.name]
                series = series.zip_with(pl.Series(~mask), _polars(values, column)).alias(series.name)
            made.append(series)
        return pl.DataFrame(made)
    import pyarrow as pa
    import pyarrow.compute as pc

    made = []
    for name, array in zip(X.schema.names, X.columns):
        if name in columns:
            column, mask, values = columns[name]
            array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            new = _arrow(values, column)
            if pa.types.is_dictionary(array.type):
                array, new = array.cast(pa.string()), new.cast(pa.string())
            array = pc.if_else(pa.array(mask), new, array)
            if column.dtype == "dictionary":
                array = array.dictionary_encode().cast(_dictionary(column))
        made.append(array)
    return pa.table(made, names=X.schema.names)


def _array(schema: Schema, columns: list[tuple[Column, np.ndarray]]) -> np.ndarray:
    if all(column.role == "number" for column, _ in columns) and schema.dtype != "object":
        out = np.column_stack([values for _, values in columns])
        return _as_numbers(out, np.dtype(schema.dtype))
    out = np.empty((len(columns[0][1]), len(columns)), dtype=object)
    for place, (column, values) in enumerate(columns):
        out[:, place] = values == "True" if column.dtype == "bool" else values
    return out.astype(schema.dtype) if np.dtype(schema.dtype).kind in "bM" else out


def _as_numbers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Whole numbers where they were whole, unless one is missing."""
    if dtype.kind not in "iu":
        return values.astype(dtype if dtype.kind == "f" else np.float64)
    if np.isnan(values).any():
        return values
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def _pandas(values: np.ndarray, column: Column, index: Any) -> Any:
    import pandas as pd

    dtype = column.dtype
    if column.role == "number":
        if dtype == "object":
            return pd.Series(values.astype(object), index=index)
        nullable = pd.api.types.pandas_dtype(dtype)
        if isinstance(nullable, np.dtype):
            return pd.Series(_as_numbers(values, nullable), index=index)
        numbers = np.rint(values) if pd.api.types.is_integer_dtype(nullable) else values
        return pd.Series(numbers, index=index).astype(nullable)
    if column.role == "moments":
        if dtype == "object":
            return pd.Series(pd.to_datetime(values).date, index=index, dtype=object)
        series = pd.Series(values, index=index)
        if "," in dtype:
            zone = dtype.rstrip("]").split(",", 1)[1].strip()
            return series.dt.tz_localize("UTC").dt.tz_convert(zone).astype(dtype)
        return series.astype(dtype)
    if dtype in ("bool", "boolean"):
        truth = np.array([None if word is None else word == "True" for word in values], dtype=object)
        return pd.Series(truth, index=index).astype("boolean" if dtype == "boolean" or None in truth else dtype)
    if dtype == "category":
        categories = list(column.categories or [])
        own = {str(category): category for category in categories}
        # What is rare is pooled by the model, and has a word of its own.
        categories += [word for word in dict.fromkeys(values) if word is not None and word not in own]
        mapped = [None if word is None else own.get(word, word) for word in values]
        made = pd.Categorical(mapped, categories=categories, ordered=column.ordered)
        return pd.Series(made, index=index)
    return pd.Series(values, index=index, dtype=dtype)


def _polars(values: np.ndarray, column: Column) -> Any:
    import polars as pl

    name, dtype = column.name, column.dtype
    if column.role == "number":
        whole = dtype.startswith(("Int", "UInt"))
        series = pl.Series(name, np.rint(values) if whole else values)
        return series.fill_nan(None).cast(getattr(pl, dtype)) if whole else series.cast(getattr(pl, dtype, pl.Float64))
    if column.role == "moments":
        series = pl.Series(name, values.astype("datetime64[us]"))
        if dtype == "Date":
            return series.cast(pl.Date)
        unit = next((unit for unit in ("ms", "us", "ns") if f"'{unit}'" in dtype), "us")
        zone = dtype.split("time_zone='")[1].split("'")[0] if "time_zone='" in dtype else None
        series = series.cast(pl.Datetime(unit))
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else series
    words = [None if word is None else str(word) for word in values]
    if dtype == "Boolean":
        return pl.Series(name, [None if word is None else word == "True" for word in words], dtype=pl.Boolean)
    series = pl.Series(name, words, dtype=pl.String)
    if dtype == "Enum":
        extra = [word for word in dict.fromkeys(words) if word is not None and word not in column.categories]
        return series.cast(pl.Enum([*column.categories, *extra]))
    return series.cast(pl.Categorical) if dtype == "Categorical" else series


def _dictionary(column: Column) -> Any:
    import pyarrow as pa

    places, words = (pa.type_for_alias(name) for name in column.categories)
    return pa.dictionary(places, words, column.ordered)


def _arrow(values: np.ndarray, column: Column) -> Any:
    import pyarrow as pa

    if column.role == "number":
        found = pa.array(values, from_pandas=True)
        type_ = pa.float64() if column.dtype.startswith("decimal") else pa.type_for_alias(column.dtype)
        if pa.types.is_integer(type_):
            found = pa.array(np.rint(values), from_pandas=True)
        return found.cast(type_)
    if column.role == "moments":
        found = pa.array(values)
        if column.dtype.startswith("date"):
            return found.cast(pa.type_for_alias(column.dtype.split("[")[0]))
        unit, _, zone = column.dtype[len("timestamp[") : -1].partition(", tz=")
        return found.cast(pa.timestamp(unit, zone or None))
    words = [None if word is None else str(word) for word in values]
    if column.dtype == "bool":
        return pa.array([None if word is None else word == "True" for word in words], pa.bool_())
    if column.dtype == "dictionary":
        return pa.array(words, pa.string()).dictionary_encode().cast(_dictionary(column))
    return pa.array(words, pa.type_for_alias(column.dtype))
