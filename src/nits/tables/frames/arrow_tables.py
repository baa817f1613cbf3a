"""Columns of Arrow, and back. Types have the names that Arrow gives them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import types

from nits.tables.frames import objects
from nits.tables.frames import values as columns
from nits.tables.frames.values import Frame, Mask, Refused, Values

DICTIONARY = re.compile(r"dictionary<values=(.*), indices=(\w+), ordered=([01])>")
DECIMAL = re.compile(r"decimal(\d+)\((\d+), (-?\d+)\)")


def read(column: Any) -> Values:
    """Returns the values of an array, in one piece or several."""
    kind = column.type
    if isinstance(column, pyarrow.ChunkedArray):
        column = _whole(column)
    if types.is_dictionary(kind):
        return _dictionary(column)
    missing = np.asarray(column.is_null())
    if types.is_null(kind):
        return Values(np.full(len(column), np.nan), missing, str(kind))
    if types.is_boolean(kind):
        return Values(_filled(column, False), missing, str(kind))
    if types.is_integer(kind):
        return columns.integers(_filled(column, 0), missing, str(kind))
    if types.is_floating(kind):
        return _floats(column, str(kind))
    if types.is_decimal(kind):
        return _decimals(column, missing)
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return Values(_filled(column, ""), missing, str(kind))
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_date(kind):
        return _times(column)
    raise Refused(objects.SENTENCE.format(f"{kind} values"))


def _whole(column: Any) -> Any:
    if types.is_dictionary(column.type):
        column = _unified(column)
    if column.num_chunks == 1:
        return column.chunk(0)
    found = column.combine_chunks()
    # Older versions return one chunk, or none if there are no rows.
    if isinstance(found, pyarrow.ChunkedArray):
        return found.chunk(0) if found.num_chunks else pyarrow.array([], column.type)
    return found


def _unified(column: Any) -> Any:
    """Returns chunks with one dictionary, made anew if one of theirs has a null."""
    try:
        return column.unify_dictionaries()
    except pyarrow.ArrowInvalid:
        return column.cast(column.type.value_type).dictionary_encode()


def _filled(column: Any, value: object) -> NDArray[Any]:
    if column.null_count:
        column = column.fill_null(pyarrow.scalar(value, column.type))
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def _floats(column: Any, name: str) -> Values:
    numbers = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return Values(numbers, np.isnan(numbers), name)


def _decimals(column: Any, missing: Mask) -> Values:
    kind = column.type
    if missing.all():
        return Values(np.full(len(column), np.nan), missing, str(kind))
    listed = np.empty(len(column), object)
    listed[:] = column.to_pylist()
    return objects.read(listed).named(str(kind))


def _times(column: Any) -> Values:
    kind = column.type
    if types.is_date32(kind):
        column = column.cast(pyarrow.int32()).cast(pyarrow.int64())
        return columns.times(_ticks(column, "datetime64[D]"), str(kind), days=True)
    ticks = column.cast(pyarrow.int64())
    if types.is_date64(kind):
        found = _ticks(ticks, "datetime64[ms]")
        days = found.astype("datetime64[D]")
        even = bool((np.isnat(found) | (days == found)).all())
        return columns.times(days if even else found, str(kind), days=True)
    what = "timedelta64" if types.is_duration(kind) else "datetime64"
    return columns.times(_ticks(ticks, f"{what}[{kind.unit}]"), str(kind))


def _ticks(column: Any, dtype: str) -> NDArray[Any]:
    missing = np.asarray(column.is_null())
    found = _filled(column, 0).astype(dtype)
    return np.where(missing, np.array("NaT", dtype), found)


def _dictionary(column: Any) -> Values:
    kind = column.type
    levels = column.dictionary
    codes = np.asarray(column.indices.cast(pyarrow.int64()).fill_null(-1))
    if levels.null_count:
        known = np.flatnonzero(~np.asarray(levels.is_null()))
        places = np.full(len(levels) + 1, -1, np.int64)
        places[known] = np.arange(len(known))
        levels, codes = levels.take(pyarrow.array(known)), places[codes]
    found = columns.categorical(read(levels), codes, "", ordered=kind.ordered)
    return found.named(str(kind))


def type_of(name: str) -> Any:
    """Returns the type with this name."""
    if found := DICTIONARY.fullmatch(name):
        values, indices, ordered = found.groups()
        return pyarrow.dictionary(type_of(indices), type_of(values), ordered == "1")
    if found := DECIMAL.fullmatch(name):
        bits, precision, scale = found.groups()
        return getattr(pyarrow, f"decimal{bits}")(int(precision), int(scale))
    what, _, detail = name.rstrip("]").partition("[")
    unit, _, zone = detail.partition(", tz=")
    if what == "timestamp":
        return pyarrow.timestamp(unit, zone or None)
    if what == "duration":
        return pyarrow.duration(unit)
    return pyarrow.type_for_alias(what)


def write(values: Values, name: str) -> Any:
    """Returns a column as an array of the type that it had."""
    kind = type_of(values.dtype)
    if types.is_dictionary(kind):
        levels, codes = columns.coded(values, str(kind.value_type), name)
        indices = pyarrow.array(codes, pyarrow.int64(), mask=values.missing)
        indices = indices.cast(_index(kind.index_type, len(levels)))
        made = write(levels, name)
        return pyarrow.DictionaryArray.from_arrays(indices, made, ordered=kind.ordered)
    if types.is_null(kind):
        return pyarrow.nulls(len(values))
    if types.is_decimal(kind):
        return _as_decimals(values, kind, name)
    return pyarrow.array(_storage(values, kind, name), mask=values.missing).cast(kind)


def _index(kind: Any, levels: int) -> Any:
    """Returns the type of indices, wider if levels are more than it can tell apart."""
    return kind if levels <= np.iinfo(str(kind)).max else pyarrow.int64()


def _storage(values: Values, kind: Any, name: str) -> NDArray[Any]:
    """Returns an array that Arrow casts to the type without loss."""
    if types.is_integer(kind):
        return columns.whole(values, str(kind), name)
    if types.is_floating(kind):
        return columns.floats(values, np.dtype(kind.to_pandas_dtype()).name, name)
    if types.is_boolean(kind):
        return values.array.astype(bool)
    if types.is_timestamp(kind) or types.is_duration(kind):
        return columns.in_unit(values, kind.unit, name).astype(np.int64)
    if types.is_date(kind):
        return columns.in_unit(values, "D", name).astype("datetime64[D]")
    return values.array


def _as_decimals(values: Values, kind: Any, name: str) -> Any:
    numbers = np.where(values.missing, 0.0, values.array).tolist()
    made = [objects.decimal(number, max(0, kind.scale)) for number in numbers]
    listed = [None if hole else item for item, hole in zip(made, values.missing, strict=True)]
    try:
        return pyarrow.array(listed, kind)
    except pyarrow.ArrowInvalid:
        largest = max((item for item in listed if item is not None), key=abs)
        raise columns.beyond(name, largest, str(kind)) from None


def table(frame: Frame) -> Any:
    """Returns the columns as a table."""
    return pyarrow.table({name: write(values, name) for name, values in frame.columns.items()})
