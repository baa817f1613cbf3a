"""Tables of pandas, polars, Arrow or NumPy as named columns of NumPy values, and back.

pandas, polars and pyarrow are imported only when one of their tables, or a file, is passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from nits.tables.frames import arrays
from nits.tables.frames.arrays import plain, single
from nits.tables.frames.values import Frame, Refused, Values

__all__ = ["Frame", "Values", "plain", "read", "single", "write"]


USUAL = {
    "object[bool]": "bool",
    "object[int]": "int64",
    "object[float]": "float64",
    "object[float, nan]": "float64",
    "object[str]": "str",
}
"""What pandas makes of lists of Python's objects."""


FAR_APART = 64
"""Columns from which an array is turned before it is read: a column's values lie too far apart."""


def read(table: Any) -> Frame:
    """Returns the columns of a DataFrame, Arrow table, mapping, array, or the file at a path."""
    if isinstance(table, Frame):
        return table
    if isinstance(table, str | Path):
        from nits.tables import files

        return read(files.read_table(str(table)))
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        from nits.tables.frames import pandas_tables

        return _named("pandas", table.columns, lambda i: pandas_tables.read(table.iloc[:, i]))
    if library == "polars":
        from nits.tables.frames import polars_tables

        whole = table.collect() if hasattr(table, "collect") else table
        return _named("polars", whole.columns, lambda i: polars_tables.read(whole.to_series(i)))
    if library == "pyarrow":
        from nits.tables.frames import arrow_tables

        return _named("arrow", table.schema.names, lambda i: arrow_tables.read(table.column(i)))
    if isinstance(table, Mapping):
        columns = list(table.values())
        return _even(_named("pandas", table, lambda i: _listed(columns[i])))
    array = np.asarray(unmasked(table))
    if array.ndim != 2:
        raise ValueError(
            f"a table must have rows and columns, but this has {array.ndim} dimensions; "
            "reshape your data with array.reshape(-1, 1) if it is one column."
        )
    whole = array.T if array.shape[1] <= FAR_APART else np.ascontiguousarray(array.T)
    return _named("numpy", [f"x{i}" for i in range(len(whole))], lambda i: plain(whole[i]))


def unmasked(table: Any) -> Any:
    """Returns a masked array of numbers with NaN where it is masked, and anything else as it is."""
    masked = isinstance(table, np.ma.MaskedArray) and table.dtype.kind in "fiub"
    return table.astype(np.float64).filled(np.nan) if masked else table


def _even(frame: Frame) -> Frame:
    """Refuses a mapping whose columns are of different lengths."""
    lengths = {name: len(values) for name, values in frame.columns.items()}
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ValueError(
                f"columns must have a value for each row, but {first!r} has {lengths[first]} "
                f"values and {name!r} has {length}."
            )
    return frame


def _listed(column: Any) -> Values:
    """Returns a mapping's column: a Series of pandas, an array, or a list."""
    none = not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0
    if none or isinstance(column, str | bytes | Mapping | Set):
        raise Refused(
            f"must be a list of values, but is of the type {type(column).__name__}; "
            "write [value] for a single one."
        )
    if type(column).__module__.partition(".")[0] == "pandas":
        import pandas

        from nits.tables.frames import pandas_tables

        return pandas_tables.read(pandas.Series(column))
    if isinstance(column, np.ndarray):
        return plain(unmasked(column))
    items = np.empty(len(column), object)
    items[:] = list(column)
    found = plain(items)
    return found.named(USUAL.get(found.dtype, found.dtype))


def _named(form: str, names: Iterable[Any], column: Callable[[int], Values]) -> Frame:
    names = [str(name) for name in names]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(
            f"columns must have different names, but {repeated[0]!r} occurs twice; rename one."
        )
    found, refused = {}, []
    for i, name in enumerate(names):
        try:
            found[name] = column(i)
        except Refused as error:
            refused.append(f"column {name!r} {error}")
    if refused:
        raise TypeError(" ".join(refused))
    return Frame(found, form)


def write(frame: Frame) -> Any:
    """Returns the columns as a table of the form and the types that they had: undoes `read`.

    A missing value in a column of plain integers or booleans of pandas makes its type a nullable
    one. A value that its type cannot hold is an error.
    """
    if frame.form == "numpy":
        return arrays.write(frame)
    if frame.form == "pandas":
        from nits.tables.frames import pandas_tables

        return pandas_tables.write(frame)
    if frame.form == "polars":
        from nits.tables.frames import polars_tables

        return polars_tables.write(frame)
    from nits.tables.frames import arrow_tables

    return arrow_tables.table(frame)
