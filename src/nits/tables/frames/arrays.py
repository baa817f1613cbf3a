"""NumPy arrays as columns, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.frames import objects
from nits.tables.frames import values as columns
from nits.tables.frames.values import Frame, Refused, Values


def plain(array: NDArray[Any], dtype: str | None = None) -> Values:
    """Returns a NumPy array as a column's values."""
    dtype = dtype or str(array.dtype)
    kind = array.dtype.kind if array.ndim == 1 else ""
    none = np.zeros(len(array), bool)
    if kind == "f":
        numbers = array.astype(np.float64, copy=False)
        return Values(numbers, np.isnan(numbers), dtype)
    if kind in ("i", "u"):
        return columns.integers(array, none, dtype)
    if kind == "b":
        return Values(array, none, dtype)
    if kind in ("m", "M"):
        return columns.times(array, dtype)
    if kind == "O":
        return objects.read(array)
    if kind in ("U", "T"):
        return Values(array.astype(object), none, dtype)
    what = f"{array.ndim - 1} more dimensions" if array.ndim > 1 else dtype
    raise Refused(objects.SENTENCE.format(what))


def single(value: object) -> NDArray[Any]:
    """Returns an array that holds one object, also where that is a list; NumPy's times as such."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return np.array([value])
    found = np.empty(1, object)
    found[0] = value
    return found


def write(frame: Frame) -> NDArray[Any]:
    """Returns the columns as an array: of floats where values are missing, or of objects."""
    parts = [_array(values, name) for name, values in frame.columns.items()]
    kinds = {part.dtype.kind for part in parts}
    if "O" in kinds or (len(kinds) > 1 and kinds & {"m", "M"}):
        found = np.stack([part.astype(object) for part in parts], 1)
    else:
        found = np.stack(parts, 1)
    return _restored(found, frame)


def _restored(found: NDArray[Any], frame: Frame) -> NDArray[Any]:
    """Returns an array in the type that all columns had, if it can hold them."""
    dtypes = {values.dtype for values in frame.columns.values()}
    name = dtypes.pop()
    if dtypes or name.startswith("object"):
        return found
    holes = any(values.missing.any() for values in frame.columns.values())
    if np.dtype(name).kind == "U":
        return found if holes else found.astype(str)
    return found.astype(name) if found.dtype.kind == np.dtype(name).kind else found


def _array(values: Values, name: str) -> NDArray[Any]:
    """Returns one column; NaN or NaT where a number or a time is missing."""
    kind = values.array.dtype.kind
    if kind == "O":
        known = values if values.dtype.startswith("object[") else values.named("object[str]")
        return objects.write(known, name)
    if kind in "mM":
        return _times(values, name)
    if values.dtype.startswith("float"):
        return columns.floats(values, values.dtype, name)
    if values.missing.any():
        return columns.floats(values, "float64", name)
    whole = values.dtype.startswith(("int", "uint"))
    return columns.whole(values, values.dtype, name) if whole else values.array


def _times(values: Values, name: str) -> NDArray[Any]:
    named = values.dtype.startswith(("datetime64", "timedelta64"))
    unit = np.datetime_data(values.dtype if named else values.array.dtype)[0]
    array = columns.in_unit(values, unit, name)
    return np.where(values.missing, np.array("NaT", array.dtype), array)
