"""The types of a CSV file's columns: told by what a column was in training, or seen in its text.

Integers, times, durations and decimals are read as text and converted, since people write them in
more ways than Arrow reads: 3.0 for an integer, a zone or none, 1 days 02:00:00.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow
from pyarrow import compute, types

from nits.tables.frames import arrow_tables

ISO = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")
DAYS = re.compile(r"(-?\d+) days?(?: ([-+]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?")
"""A duration as pandas prints it."""

OBJECTS = {
    "bool": pyarrow.bool_(),
    "int": pyarrow.int64(),
    "float": pyarrow.float64(),
    "date": pyarrow.date32(),
    "timedelta": pyarrow.duration("us"),
    "Timedelta": pyarrow.duration("ns"),
}

INFERRED = ("", "object", "category", "null", "Categorical", "Enum")
TEXT = ("str", "large_str", "<U", ">U", "interval")
"""Names of types that are read as text, and how such names begin."""


def types_of(dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Returns the types in which to read columns that had types with these names in training.

    Narrow types become wide ones, so that a value that is new is no error.
    """
    return {column: _type_of(name) for column, name in dtypes.items()}


def _type_of(name: str) -> Any:
    name = name.removesuffix("[pyarrow]")
    if name.startswith("category["):
        return _type_of(name[len("category[") : -1])
    if found := arrow_tables.DICTIONARY.fullmatch(name):
        return _type_of(found.group(1))
    if name.startswith("object["):
        return _object(name[len("object[") : -1].partition(", ")[0])
    if name in INFERRED or name.startswith(TEXT):
        return pyarrow.string()
    if name.startswith(("datetime64", "timedelta64")):
        return _numpy(name)
    if name.startswith("period["):
        return pyarrow.timestamp("us")
    if re.fullmatch(r"u?int\d+", name.lower()):
        return pyarrow.uint64() if name.lower() == "uint64" else pyarrow.int64()
    if name.lower().startswith(("float", "double", "halffloat")):
        return pyarrow.float64()
    return pyarrow.bool_() if name in ("bool", "boolean") else arrow_tables.type_of(name)


def _object(name: str) -> Any:
    kind, _, detail = name.partition(" ")
    if kind in ("datetime", "Timestamp"):
        return _timestamp("us" if kind == "datetime" else "ns", detail)
    if kind == "Decimal":
        return pyarrow.decimal128(38, int(detail))
    return OBJECTS.get(kind, pyarrow.string())


def _numpy(name: str) -> Any:
    kind, _, detail = name[:-1].partition("[")
    unit, _, zone = detail.partition(", ")
    if unit == "D" and kind == "datetime64":
        return pyarrow.date32()
    unit = unit if unit in ("s", "ms", "us", "ns") else "s"
    return pyarrow.duration(unit) if kind == "timedelta64" else _timestamp(unit, zone)


def _timestamp(unit: str, zone: str) -> Any:
    named = zone.removeprefix("UTC") if zone.startswith(("UTC+", "UTC-")) else zone
    return pyarrow.timestamp(unit, named or None)


def as_text(kind: Any) -> bool:
    """Whether a column of a type is read as text first."""
    return not (types.is_string(kind) or types.is_floating(kind) or types.is_boolean(kind))


def converted(table: Any, wanted: Mapping[str, Any]) -> Any:
    """Returns a table, read as text where `as_text` says so, in the types that are wanted.

    Text that the type cannot hold, such as 2.5 among integers, is read in the next wider one.
    """
    for i, name in enumerate(table.column_names):
        kind = wanted.get(name)
        if kind is not None and as_text(kind):
            table = table.set_column(i, name, _converted(table.column(i), kind, name))
    return table


def _converted(text: Any, kind: Any, name: str) -> Any:
    trimmed = compute.utf8_trim_whitespace(text)
    found = _parsed(trimmed, kind)
    if found is None:
        odd = _odd(trimmed, kind)
        raise ValueError(
            f"column {name!r} must hold {kind} values, as in training, but has {odd!r}; convert it."
        )
    return _cast(found, kind)


def _cast(found: Any, kind: Any) -> Any:
    """Returns values in a type if nothing is lost, else as they are."""
    try:
        cast = found.cast(kind)
    except pyarrow.ArrowInvalid:
        return found
    return cast if cast.cast(found.type).equals(found) else found


def _parsed(text: Any, kind: Any) -> Any:
    return _durations(text, kind) if types.is_duration(kind) else _first(text, _chain(kind))


def _chain(kind: Any) -> Iterable[Any]:
    """Returns types to try one after another."""
    if types.is_integer(kind):
        return (kind, pyarrow.int64(), pyarrow.uint64(), pyarrow.float64())
    if types.is_timestamp(kind) or types.is_date(kind):
        zoned = [pyarrow.timestamp(unit, zone) for unit in ("ns", "us") for zone in (None, "UTC")]
        return (pyarrow.date32(), *zoned)
    return (kind, pyarrow.float64())


def _first(text: Any, chain: Iterable[Any]) -> Any:
    for kind in chain:
        try:
            return text.cast(kind)
        except pyarrow.ArrowInvalid:
            continue
    return None


def _odd(text: Any, kind: Any) -> str:
    """Returns the first text that cannot be read."""
    known = (str(one) for one in text.drop_null())
    return next((one for one in known if _parsed(pyarrow.array([one]), kind) is None), "")


def _durations(text: Any, kind: Any) -> Any:
    """Returns durations from their counts of the unit, as Arrow writes them, or as pandas does."""
    counts = _first(text, (pyarrow.int64(),))
    if counts is not None:
        return counts.cast(kind)
    parts = [one if one is None else DAYS.fullmatch(one) for one in text.to_pylist()]
    if sum(one is None for one in parts) > text.null_count:
        return None
    found = pyarrow.array([one and _nanoseconds(one) for one in parts], pyarrow.int64())
    return found.cast(pyarrow.duration("ns"))


def _nanoseconds(parts: re.Match[str]) -> int:
    days, sign, hours, minutes, seconds, fraction = parts.groups(default="0")
    clock = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    part = clock * 10**9 + int(f"{fraction:0<9}")
    return int(days) * 86_400 * 10**9 + (-part if sign == "-" else part)


def unsigned(text: Any) -> Any:
    """Returns text as integers of 64 bits without a sign, or None if it is something else."""
    return _first(text, (pyarrow.uint64(),))


def large(table: Any) -> list[str]:
    """Returns the names of columns of floats that may be integers of 2⁶³ and more."""
    floats = [f.name for f in table.schema if types.is_floating(f.type)]
    ends = {name: compute.min_max(table.column(name)).as_py() for name in floats}
    return [
        name
        for name, end in ends.items()
        if end["max"] is not None and end["min"] >= 0 and 2.0**63 <= end["max"] <= 2.0**64
    ]


def seen(table: Any) -> Any:
    """Returns a table with times and durations where Arrow saw only text, and clocks as text."""
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        if types.is_time(column.type):
            table = table.set_column(i, name, column.cast(pyarrow.string()))
        elif types.is_string(column.type) and len(known := column.drop_null()):
            first = str(known[0])
            if ISO.fullmatch(first):
                found = _first(column, _chain(pyarrow.timestamp("us")))
            elif DAYS.fullmatch(first):
                found = _durations(column, pyarrow.duration("ns"))
            else:
                continue
            table = table if found is None else table.set_column(i, name, found)
    return table
