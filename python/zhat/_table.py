"""Tables of numpy, pandas, polars and pyarrow: their columns as the library reads them, and its values as they were."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

#: What stands for a moment that is missing.
NO_MOMENT = np.iinfo(np.int64).min


@dataclass
class Column:
    """What is to be known of a column to give back one like it."""

    name: str
    #: "number", "words" or "moments".
    role: str
    #: As its own library writes it.
    dtype: str = "float64"
    #: Categories in their order, where it has some (of a dictionary of Arrow the types of places and words), and whether they are ordered.
    categories: list | None = None
    ordered: bool = False


@dataclass
class Schema:
    """What came in: arrays, or frames of some library with their columns."""

    #: "array", "pandas", "polars" or "arrow".
    kind: str
    columns: list[Column] = field(default_factory=list)
    dtype: str = "float64"
    #: The column that weights of rows were in the fit, which is no column of the table.
    weight: str | None = None

    def to_json(self) -> dict:
        columns = [vars(column) for column in self.columns]
        return {"kind": self.kind, "dtype": self.dtype, "columns": columns, "weight": self.weight}

    @classmethod
    def from_json(cls, found: dict) -> "Schema":
        return cls(found["kind"], [Column(**column) for column in found["columns"]], found["dtype"], found.get("weight"))


@dataclass
class Table:
    """The columns of a table in memory, for the library: tuples of name, role, array and words."""

    schema: Schema
    columns: list[tuple]
    rows: int

    @property
    def names(self) -> list[str]:
        return [column[0] for column in self.columns]

    @property
    def source(self) -> str:
        return f"memory:{self.schema.kind}"

    def missing(self, place: int) -> np.ndarray:
        """Which cells of a column are missing."""
        role, values = self.columns[place][1], self.columns[place][2]
        if role == "number":
            return np.isnan(values)
        if role == "moments":
            return values == NO_MOMENT
        words = [str(word).strip().lower() in _MISSING for word in self.columns[place][3]]
        missing = np.array([*words, True], dtype=bool)
        return missing[values]


# The spellings of a missing cell, as in a file.
_MISSING = {"", "?", "na", "n/a", "nan", "-nan", "null", "none", "#n/a"}


def kind_of(X: Any) -> str:
    """Which library a table is of, without importing one that is not there."""
    for kind, module, names in (
        ("pandas", "pandas", ("DataFrame",)),
        ("polars", "polars", ("DataFrame",)),
        ("arrow", "pyarrow", ("Table", "RecordBatch")),
    ):
        library = sys.modules.get(module)
        if library is not None and any(isinstance(X, getattr(library, name)) for name in names):
            return kind
    return "array"


def read(X: Any, estimator: str = "Density") -> Table:
    """The columns of a table of any kind; arrays are checked as scikit-learn does."""
    return _READERS[kind_of(X)](X, estimator)


# --- numpy -----------------------------------------------------------------------------------------------------------


def _read_array(X: Any, estimator: str) -> Table:
    from sklearn.utils import check_array

    finite = {_finite_keyword(): False}
    X = check_array(X, dtype=None, ensure_min_samples=1, estimator=estimator, **finite)
    names = [f"column_{place + 1}" for place in range(X.shape[1])]
    schema = Schema("array", dtype=str(X.dtype))
    columns, found = [], []
    for place, name in enumerate(names):
        cells, column = _of_numpy(name, X[:, place])
        columns.append(cells)
        found.append(column)
    schema.columns = found
    return Table(schema, columns, X.shape[0])


def _finite_keyword() -> str:
    from inspect import signature

    from sklearn.utils import check_array

    return "ensure_all_finite" if "ensure_all_finite" in signature(check_array).parameters else "force_all_finite"


def _of_numpy(name: str, values: np.ndarray) -> tuple[tuple, Column]:
    dtype = values.dtype
    if dtype.kind == "b":
        return _words_of(name, np.where(values, 1, 0), ["False", "True"]), Column(name, "words", "bool")
    if dtype.kind in "iuf":
        if dtype not in (np.float32, np.float64) or not dtype.isnative:
            values = values.astype(np.float64)
        return (name, "number", values), Column(name, "number", str(dtype))
    if dtype.kind == "M":
        return (name, "moments", _seconds(values)), Column(name, "moments", str(dtype))
    if dtype.kind in "US":
        words, codes = np.unique(values.astype(str), return_inverse=True)
        return _words_of(name, codes, [str(word) for word in words]), Column(name, "words", "object")
    if dtype.kind == "O":
        return _of_objects(name, values)
    raise _refused(name, f"values of type {dtype}")


def _of_objects(name: str, values: np.ndarray) -> tuple[tuple, Column]:
    """Objects are numbers where all are, else words."""
    numbers = np.full(len(values), np.nan)
    codes, words, known = np.full(len(values), -1, dtype=np.int64), [], {}
    is_number = True
    for row, value in enumerate(values):
        if value is None or value is _pandas_na() or (isinstance(value, float) and value != value):
            continue
        if isinstance(value, (dict, list, set, tuple, np.ndarray)):
            raise TypeError(
                f"column {name}, row index {row}: argument must be a string or a number, not {type(value).__name__!r}"
            )
        if isinstance(value, (str, bytes, bool, np.bool_)):
            is_number = False
        elif is_number:
            try:
                numbers[row] = float(value)
            except (TypeError, ValueError):
                is_number = False
        text = value.decode() if isinstance(value, bytes) else str(value)
        code = known.setdefault(text, len(words))
        if code == len(words):
            words.append(text)
        codes[row] = code
    if is_number:
        return (name, "number", numbers), Column(name, "number", "object")
    return (name, "words", codes, words), Column(name, "words", "object")


def _pandas_na() -> Any:
    pandas = sys.modules.get("pandas")
    return pandas.NA if pandas is not None else _MISSING


def _words_of(name: str, codes: Any, words: list[str]) -> tuple:
    return (name, "words", np.ascontiguousarray(codes, dtype=np.int64), words)


def _seconds(values: np.ndarray) -> np.ndarray:
    return values.astype("datetime64[s]").astype(np.int64)


def _refused(name: str, what: str) -> ValueError:
    return ValueError(
        f"column {name} has {what}, which have no density. Leave the column out, or turn it into numbers, words or dates."
    )


# --- pandas ----------------------------------------------------------------------------------------------------------


def _read_pandas(X: Any, estimator: str) -> Table:
    _check_size(X.shape, estimator)
    columns, found = [], []
    for place, name in enumerate(X.columns):
        cells, column = _of_pandas(str(name), X.iloc[:, place])
        columns.append(cells)
        found.append(column)
    return Table(Schema("pandas", found), columns, len(X))


def _of_pandas(name: str, series: Any) -> tuple[tuple, Column]:
    import pandas as pd

    dtype = series.dtype
    column = Column(name, "number", str(dtype))
    if isinstance(dtype, pd.CategoricalDtype):
        column.role, column.ordered = "words", bool(dtype.ordered)
        column.categories = list(dtype.categories)
        return _words_of(name, series.cat.codes, [str(word) for word in dtype.categories]), column
    if pd.api.types.is_bool_dtype(dtype):
        column.role = "words"
        codes = series.to_numpy(dtype=np.float64, na_value=np.nan) if series.hasnans else series.to_numpy(dtype=np.int64)
        return _words_of(name, np.where(np.isnan(codes), -1, codes), ["False", "True"]), column
    if pd.api.types.is_datetime64_any_dtype(dtype):
        column.role = "moments"
        values = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
        return (name, "moments", _seconds(values.to_numpy())), column
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return _of_numpy(name, series.to_numpy())[0], column
        return (name, "number", series.to_numpy(dtype=np.float64, na_value=np.nan)), column
    if dtype == object and pd.api.types.infer_dtype(series, skipna=True) in ("date", "datetime"):
        column.role = "moments"
        return (name, "moments", _seconds(pd.to_datetime(series).to_numpy())), column
    if dtype == object and pd.api.types.infer_dtype(series, skipna=True) != "string":
        return _of_objects(name, series.to_numpy())[0], Column(name, _of_objects(name, series.to_numpy())[1].role, "object")
    if pd.api.types.is_string_dtype(dtype) or dtype == object:
        column.role = "words"
        codes, words = pd.factorize(series)
        return _words_of(name, codes, [str(word) for word in words]), column
    raise _refused(name, f"values of type {dtype}")


# --- polars ----------------------------------------------------------------------------------------------------------


def _read_polars(X: Any, estimator: str) -> Table:
    _check_size(X.shape, estimator)
    columns, found = [], []
    for series in X.get_columns():
        cells, column = _of_polars(series)
        columns.append(cells)
        found.append(column)
    return Table(Schema("polars", found), columns, X.height)


def _of_polars(series: Any) -> tuple[tuple, Column]:
    import polars as pl

    name, dtype = series.name, series.dtype
    column = Column(name, "number", str(dtype))
    if dtype == pl.Boolean:
        column.role = "words"
        return _words_of(name, series.cast(pl.Int64).fill_null(-1).to_numpy(), ["False", "True"]), column
    if dtype.is_numeric():
        if dtype not in (pl.Float32, pl.Float64) or series.null_count():
            series = series.cast(pl.Float64).fill_null(float("nan"))
        return (name, "number", series.to_numpy()), column
    if dtype in (pl.Date, pl.Datetime):
        column.role = "moments"
        seconds = series.cast(pl.Datetime("us")).dt.epoch("s").fill_null(NO_MOMENT)
        return (name, "moments", seconds.to_numpy()), column
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        column.role = "words"
        if dtype == pl.Enum:
            column.categories, column.dtype = list(dtype.categories), "Enum"
        elif dtype == pl.Categorical:
            column.dtype = "Categorical"
        series = series.cast(pl.String)
        words = series.unique(maintain_order=True).drop_nulls().to_list()
        codes = series.cast(pl.Enum(words)).to_physical().cast(pl.Int64).fill_null(-1)
        return _words_of(name, codes.to_numpy(), words), column
    raise _refused(name, f"values of type {dtype}")


# --- pyarrow ---------------------------------------------------------------------------------------------------------


def _read_arrow(X: Any, estimator: str) -> Table:
    _check_size((X.num_rows, X.num_columns), estimator)
    columns, found = [], []
    for name, values in zip(X.schema.names, X.columns):
        cells, column = _of_arrow(name, values)
        columns.append(cells)
        found.append(column)
    return Table(Schema("arrow", found), columns, X.num_rows)


def _of_arrow(name: str, values: Any) -> tuple[tuple, Column]:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    type_ = values.type
    column = Column(name, "number", str(type_))
    if pa.types.is_boolean(type_):
        column.role = "words"
        return _words_of(name, pc.fill_null(values.cast(pa.int64()), -1).to_numpy(), ["False", "True"]), column
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        if type_ not in (pa.float32(), pa.float64()) or values.null_count:
            values = pc.fill_null(values.cast(pa.float64()), float("nan"))
        return (name, "number", values.to_numpy(zero_copy_only=False)), column
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        column.role = "moments"
        seconds = values.cast(pa.timestamp("s", getattr(type_, "tz", None)), safe=False).cast(pa.int64())
        return (name, "moments", pc.fill_null(seconds, NO_MOMENT).to_numpy(zero_copy_only=False)), column
    if pa.types.is_dictionary(type_) or pa.types.is_string(type_) or pa.types.is_large_string(type_):
        column.role = "words"
        if pa.types.is_dictionary(type_):
            column.dtype = "dictionary"
            column.categories, column.ordered = [str(type_.index_type), str(type_.value_type)], type_.ordered
        else:
            values = values.dictionary_encode()
        codes = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return _words_of(name, codes, [str(word) for word in values.dictionary.to_pylist()]), column
    raise _refused(name, f"values of type {type_}")


def _check_size(shape: tuple, estimator: str) -> None:
    if shape[1] == 0:
        raise ValueError(f"0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required by {estimator}.")
    if shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={tuple(shape)}) while a minimum of 1 is required by {estimator}.")


_READERS: dict[str, Callable[[Any, str], Table]] = {
    "array": _read_array,
    "pandas": _read_pandas,
    "polars": _read_polars,
    "arrow": _read_arrow,
}
