"""Tables of pandas, polars, Arrow or NumPy as named columns of NumPy values, and back.

pandas, polars and pyarrow are imported only when one of their tables, or a file, is passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Values:
    """One column: its values, and which of them are missing.

    array: float64, int64, bool, datetime64[ns], or object for strings.

    dtype: The name of the type that the column had in its table.
    """

    array: NDArray[Any]
    missing: NDArray[np.bool_]
    dtype: str

    def __len__(self) -> int:
        return len(self.array)

    @property
    def known(self) -> NDArray[Any]:
        """The values that are not missing."""
        found: NDArray[Any] = self.array[~self.missing]
        return found

    def take(self, rows: NDArray[np.int64]) -> Values:
        """Returns the values at some rows."""
        return Values(self.array[rows], self.missing[rows], self.dtype)


@dataclass(frozen=True)
class Frame:
    """A table: its columns by name, and the form it had, "pandas", "polars", "arrow" or "numpy"."""

    columns: dict[str, Values]
    form: str

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def take(self, rows: NDArray[np.int64]) -> Frame:
        """Returns some rows of the table."""
        return Frame({name: v.take(rows) for name, v in self.columns.items()}, self.form)


def read(table: Any) -> Frame:
    """Returns the columns of a DataFrame, Arrow table, mapping, array, or the file at a path."""
    if isinstance(table, str | Path):
        from nits.tables import files

        return read(files.read_table(str(table)))
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        return _named("pandas", table.columns, lambda i: _pandas(table.iloc[:, i]))
    if library == "polars":
        return _arrow(table.to_arrow(), "polars")
    if library == "pyarrow":
        return _arrow(table, "arrow")
    if isinstance(table, Mapping):
        return _named("pandas", table, lambda i: plain(np.asarray(list(table.values())[i])))
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"a table must have rows and columns, but this has {array.ndim} dimensions; "
            "reshape your data with array.reshape(-1, 1) if it is one column."
        )
    return _named("numpy", [f"x{i}" for i in range(array.shape[1])], lambda i: plain(array[:, i]))


def _named(form: str, names: Any, column: Any) -> Frame:
    names = [str(name) for name in names]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"columns must have different names, but {repeated[0]!r} occurs twice; rename one."
        )
    return Frame({name: column(i) for i, name in enumerate(names)}, form)


def plain(array: NDArray[Any], dtype: str | None = None) -> Values:
    """Returns a NumPy array as a column's values."""
    dtype = dtype or str(array.dtype)
    if array.dtype.kind == "f":
        values = array.astype(np.float64)
        return Values(values, np.isnan(values), dtype)
    if array.dtype.kind in "iu":
        return Values(array.astype(np.int64), np.zeros(len(array), bool), dtype)
    if array.dtype.kind == "b":
        return Values(array, np.zeros(len(array), bool), dtype)
    if array.dtype.kind == "M":
        return Values(array.astype("datetime64[ns]"), np.isnat(array), dtype)
    if array.dtype.kind in "OUS":
        return _objects(array, dtype)
    raise TypeError(
        f"a column must hold numbers, times, strings or booleans, but is {dtype}; convert it."
    )


def _objects(array: NDArray[Any], dtype: str) -> Values:
    """Returns strings; or booleans or numbers, if all objects are such."""
    missing = np.array([value is None or value != value for value in array.tolist()], bool)
    known = array[~missing].tolist()
    kinds = {type(value) for value in known}
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return Values(_filled(array, missing, False).astype(bool), missing, dtype)
    if kinds and all(issubclass(kind, int | np.integer) for kind in kinds):
        return Values(_filled(array, missing, 0).astype(np.int64), missing, dtype)
    if kinds and all(issubclass(kind, int | float | np.number) for kind in kinds):
        return Values(_filled(array, missing, np.nan).astype(np.float64), missing, dtype)
    mixed = sorted(kind.__name__ for kind in kinds if not issubclass(kind, str | np.str_))
    if mixed:
        raise TypeError(
            f"a column must hold values of one type, but has {', '.join(mixed)} among others; "
            "convert it to strings or to numbers."
        )
    return Values(_filled(array, missing, ""), missing, dtype)


def _filled(array: NDArray[Any], missing: NDArray[np.bool_], value: object) -> NDArray[Any]:
    filled = np.array(array, dtype=object)
    filled[missing] = value
    return filled


def _pandas(series: Any) -> Values:
    dtype = str(series.dtype)
    missing = series.isna().to_numpy()
    if dtype == "category":
        return _objects(series.astype(object).to_numpy(), dtype)
    if dtype.startswith("datetime64"):
        times = (
            series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
        )
        return Values(times.to_numpy().astype("datetime64[ns]"), missing, dtype)
    if dtype[:1] in "IUFb" and hasattr(series.dtype, "numpy_dtype"):
        filled = series.fillna(series.dtype.type(0)).to_numpy(dtype=series.dtype.numpy_dtype)
        found = plain(filled, dtype)
        array = (
            np.where(missing, np.nan, found.array) if found.array.dtype.kind == "f" else found.array
        )
        return Values(array, missing, dtype)
    return plain(series.to_numpy(), dtype)


def _arrow(table: Any, form: str) -> Frame:
    def column(i: int) -> Values:
        series = table.column(i).to_pandas(date_as_object=False)
        whole = str(table.schema.types[i])
        if whole.startswith(("int", "uint", "bool")) and series.isna().any():
            series = table.column(i).to_pandas(integer_object_nulls=True)
        found = _pandas(series)
        return Values(found.array, found.missing, whole)

    return _named(form, table.column_names, column)


def write(columns: dict[str, NDArray[Any]], dtypes: Sequence[str], form: str) -> Any:
    """Returns columns as a table of the given form, with their original types."""
    if form == "numpy":
        return np.stack(list(columns.values()), 1)
    typed = zip(columns.items(), dtypes, strict=True)
    if form == "pandas":
        import pandas

        return pandas.DataFrame(
            {name: _in_pandas(pandas, array, dtype) for (name, array), dtype in typed}
        )
    import pyarrow

    table = pyarrow.table(
        {name: _in_arrow(pyarrow, array, dtype) for (name, array), dtype in typed}
    )
    if form == "arrow":
        return table
    import polars

    return polars.from_arrow(table)


def _in_pandas(pandas: Any, array: NDArray[Any], dtype: str) -> Any:
    series = pandas.Series(array)
    if dtype.startswith("datetime64[") and "," in dtype:
        return series.dt.tz_localize("UTC").astype(dtype)
    return series.astype(dtype)


def _in_arrow(pyarrow: Any, array: NDArray[Any], dtype: str) -> Any:
    """Returns an Arrow array of the type that has this name, or of the nearest one."""
    found = pyarrow.array(array)
    if dtype.startswith("timestamp["):
        unit, _, zone = dtype.removeprefix("timestamp[").rstrip("]").partition(", tz=")
        return found.cast(pyarrow.timestamp(unit, zone or None), safe=False)
    if dtype.startswith(("int", "uint", "float", "double", "halffloat", "date")):
        return found.cast(pyarrow.type_for_alias(dtype.partition("[")[0]), safe=False)
    return found
