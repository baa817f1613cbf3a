"""Columns of pandas, and back.

A categorical's type is named `category[type of its categories]`; other names are those of pandas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from nits.tables.frames import arrays, objects
from nits.tables.frames import values as columns
from nits.tables.frames.values import Frame, Refused, Values

UNSAID = ("object", "category")

ARROW = "[pyarrow]"
"""How the names of Arrow's types end in pandas."""


def read(series: Any) -> Values:
    """Returns the values of a Series or Index."""
    kind = series.dtype
    dtype = str(kind)
    if isinstance(kind, pandas.CategoricalDtype):
        return _categorical(series)
    if isinstance(kind, pandas.SparseDtype):
        return read(pandas.Series(series.sparse.to_dense()))
    if isinstance(kind, pandas.StringDtype):
        missing = np.asarray(series.isna(), bool)
        return Values(series.to_numpy(dtype=object, na_value=""), missing, _string(kind))
    if dtype.endswith(ARROW):
        from nits.tables.frames import arrow_tables

        found = arrow_tables.read(series.array.__arrow_array__())
        return found.named(found.dtype + ARROW)
    if isinstance(kind, pandas.IntervalDtype):
        return objects.read(series.astype(str).to_numpy(object, na_value=None)).named(dtype)
    if isinstance(kind, pandas.PeriodDtype):
        return columns.times(pandas.PeriodIndex(series).to_timestamp().to_numpy(), dtype)
    if isinstance(kind, pandas.DatetimeTZDtype):
        return columns.times(pandas.DatetimeIndex(series).tz_convert(None).to_numpy(), dtype)
    if dtype[:1] in "IUFb" and hasattr(kind, "numpy_dtype"):
        return _nullable(series, dtype)
    if not isinstance(kind, np.dtype):
        raise Refused(objects.SENTENCE.format(f"{dtype} values"))
    return arrays.plain(series.to_numpy(), dtype)


def _string(kind: Any) -> str:
    """Returns the name of a type of strings, with where they are stored unless as usual."""
    name = str(kind)
    return name if kind == pandas.api.types.pandas_dtype(name) else f"{name}({kind.storage})"


def _nullable(series: Any, dtype: str) -> Values:
    missing = np.asarray(series.isna(), bool)
    kind = series.dtype.numpy_dtype
    filled = series.to_numpy(dtype=kind, na_value=kind.type(0))
    if kind.kind == "f":
        numbers = filled.astype(np.float64)
        missing = missing | np.isnan(numbers)
        return Values(np.where(missing, np.nan, numbers), missing, dtype)
    if kind.kind in "iu":
        return columns.integers(filled, missing, dtype)
    return Values(filled, missing, dtype)


def _categorical(series: Any) -> Values:
    kind = series.dtype
    return columns.categorical(
        read(kind.categories),
        np.asarray(series.cat.codes if hasattr(series, "cat") else series.codes, np.int64),
        "category",
        ordered=bool(kind.ordered),
    )


def write(frame: Frame) -> Any:
    """Returns the columns as a DataFrame."""
    made = {name: _series(values, name) for name, values in frame.columns.items()}
    return pandas.DataFrame(made, index=pandas.RangeIndex(len(frame)))


def _series(values: Values, name: str) -> Any:
    dtype = values.dtype
    if dtype.startswith("category["):
        levels, codes = columns.coded(values, dtype[len("category[") : -1], name)
        made = pandas.Index(_series(levels, name))
        return pandas.Series(pandas.Categorical.from_codes(codes, made, ordered=values.ordered))
    if dtype.endswith(ARROW):
        from nits.tables.frames import arrow_tables

        array = arrow_tables.write(values.named(dtype.removesuffix(ARROW)), name)
        return pandas.Series(array, dtype=pandas.ArrowDtype(array.type))
    if dtype.startswith("object["):
        return pandas.Series(objects.write(values, name), dtype=object)
    if dtype.startswith(("datetime64", "timedelta64")):
        return _times(values, name)
    if dtype.startswith("interval["):
        return pandas.Series(_intervals(values))
    if dtype.startswith("period["):
        times = pandas.DatetimeIndex(_times(values.named(str(values.array.dtype)), name))
        return pandas.Series(times.to_period(dtype[len("period[") : -1]))
    if dtype.startswith(("str", "<U", ">U", *UNSAID)):
        return _strings(values)
    return _numbers(values, name)


def _times(values: Values, name: str) -> Any:
    what, _, zone = values.dtype[:-1].partition(", ")
    unit = what[what.index("[") + 1 :]
    array = columns.in_unit(values, unit if unit in columns.UNITS else "s", name)
    series = pandas.Series(np.where(values.missing, np.array("NaT", array.dtype), array))
    return series.dt.tz_localize("UTC").astype(values.dtype) if zone else series


def _intervals(values: Values) -> Any:
    """Returns intervals from their text, such as (0.5, 1.5]."""
    kind, _, closed = values.dtype[len("interval[") : -1].rpartition(", ")
    texts = np.where(values.missing, "[None, None]", values.array).tolist()
    pairs = [text[1:-1].split(", ") for text in texts]
    ends = [[None if pair[i] == "None" else pair[i] for pair in pairs] for i in (0, 1)]
    left, right = (pandas.Index(side, dtype=object).astype(kind) for side in ends)
    return pandas.IntervalIndex.from_arrays(left, right, closed=closed)


def _strings(values: Values) -> Any:
    """Returns strings; those of a mapping or an array have the usual type of pandas.

    Names that do not say what objects or categories are come from models of earlier versions.
    """
    items = values.array.astype(object)
    items[values.missing] = None
    name, _, storage = values.dtype.partition("(")
    if storage:
        # Versions before 2.3 have one kind of missing string only.
        kept = (storage[:-1], np.nan) if name == "str" else (storage[:-1],)
        return pandas.Series(items, dtype=pandas.StringDtype(*kept))
    known = name in UNSAID or str(pandas.api.types.pandas_dtype(name)) == name
    return pandas.Series(items, dtype=name) if known else pandas.Series(items.tolist())


def _numbers(values: Values, name: str) -> Any:
    """Returns numbers or booleans, in a nullable type if a plain one cannot hold the holes."""
    dtype, missing = values.dtype, values.missing
    if dtype.startswith("float"):
        return pandas.Series(columns.floats(values, dtype, name))
    if dtype.startswith("Float"):
        return pandas.Series(_masked(columns.floats(values, dtype.lower(), name), missing))
    if dtype in ("bool", "boolean"):
        array = values.array.astype(bool)
    else:
        array = columns.whole(values, dtype.lower(), name)
    nullable = dtype == "boolean" or dtype[0] in "IU" or missing.any()
    return pandas.Series(_masked(array, missing) if nullable else array)


def _masked(array: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
    """Returns one of pandas' nullable arrays."""
    kinds = {
        "f": pandas.arrays.FloatingArray,
        "b": pandas.arrays.BooleanArray,
        "i": pandas.arrays.IntegerArray,
        "u": pandas.arrays.IntegerArray,
    }
    return kinds[array.dtype.kind](array, missing.copy())
