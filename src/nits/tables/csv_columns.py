"""The types of a CSV file's columns: told by what a column was in training, or seen in its text.

Columns whose types are told are read as text and converted, since people write them in more ways
than Arrow reads: 3.0 for an integer, a zone or none, 1 days 02:00:00.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyarrow import compute, types

from nits.tables.csv_text import MISSING
from nits.tables.frames import arrow_tables
from nits.tables.lacking import infinite, sentence

ISO = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")
PLAIN = (pyarrow.int64(), pyarrow.uint64(), pyarrow.float64(), pyarrow.bool_(), pyarrow.date32())
"""Types of numbers, booleans and dates, in the order in which they are tried."""

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

FLOATS = {
    "float": pyarrow.float32(),
    "float32": pyarrow.float32(),
    "float16": pyarrow.float16(),
    "halffloat": pyarrow.float16(),
    "float64": pyarrow.float64(),
    "double": pyarrow.float64(),
}

INFERRED = ("", "object", "category", "null", "Categorical", "Enum")
TEXT = ("str", "large_str", "<U", ">U", "interval")
"""Names of types that are read as text, and how such names begin."""


class Wanted(NamedTuple):
    """How a column of a CSV file is to be read.

    kind: Its type.
    words: Text that is a value here, though elsewhere it stands for a missing one.
    needed: Whether text that is none of the type is an error; else all of the column stays text.
    """

    kind: Any
    words: frozenset[str] = frozenset()
    needed: bool = True


def types_of(
    dtypes: Mapping[str, str],
    words: Mapping[str, Iterable[Any]] | None = None,
    spare: Collection[str] = (),
) -> dict[str, Wanted]:
    """Returns how to read columns that had types with these names in training.

    Narrow integers become wide ones, so that a value that is new is no error.

    words: Categories of columns, among which may be such as "NA" and "".
    spare: Columns that are not needed.
    """
    every = {name: frozenset(MISSING) & set(map(str, some)) for name, some in (words or {}).items()}
    return {
        column: Wanted(_type_of(name), frozenset(every.get(column, ())), column not in spare)
        for column, name in dtypes.items()
    }


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
    if name.lower() in FLOATS:
        return FLOATS[name.lower()]
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


def converted(table: Any, wanted: Mapping[str, Wanted], path: str) -> Any:
    """Returns a table that was read as text in the types that are wanted.

    Text that the type cannot hold, such as 2.5 among integers, is read in the next wider one. What
    is none of the type is told of all columns at once, with those that lack.
    """
    odd = []
    for i, name in enumerate(table.column_names):
        if name not in wanted:
            continue
        try:
            found = _converted(table.column(i), wanted[name])
        except ValueError as error:
            odd.append(f"column {name!r} {error}")
        else:
            table = table.set_column(i, name, found)
    if odd:
        odd += infinite(table)
        names = [name for name, one in wanted.items() if one.needed]
        lacking = [name for name in names if name not in table.column_names]
        told = f"{sentence(lacking, table.column_names)} " if lacking else ""
        raise ValueError(f"{path}: {told}{'; '.join(odd)}; convert it.")
    return table


def _converted(text: Any, wanted: Wanted) -> Any:
    text = without(text, frozenset(MISSING) - wanted.words)
    if types.is_string(wanted.kind):
        return text
    trimmed = without(compute.utf8_trim_whitespace(text), MISSING)
    found = _parsed(trimmed, wanted.kind)
    if found is None and wanted.needed:
        odd = _odd(trimmed, wanted.kind)
        raise ValueError(f"must hold {wanted.kind} values, as in training, but has {odd!r}")
    return text if found is None else _cast(found, wanted.kind)


def without(text: Any, words: Iterable[str]) -> Any:
    """Returns text with holes in place of some words."""
    there = compute.is_in(text, pyarrow.array(list(words), text.type))
    if not compute.any(there).as_py():
        return text
    return compute.if_else(there, pyarrow.scalar(None, text.type), text)


def _cast(found: Any, kind: Any) -> Any:
    """Returns values in a type if nothing is lost, else as they are; floats are rounded to it."""
    if types.is_floating(kind):
        return _rounded(found, kind)
    try:
        cast = found.cast(kind)
    except pyarrow.ArrowInvalid:
        return found
    return cast if cast.cast(found.type).equals(found) else found


def _rounded(found: Any, kind: Any) -> Any:
    """Returns floats with the digits of a type, as they were in training, unless it is too small.

    The text of a float32 has the digits that tell it from others, which are another float64.
    """
    numbers = found.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(over="ignore"):
        rounded = numbers.astype(kind.to_pandas_dtype()).astype(np.float64)
    lost = np.isinf(rounded) & np.isfinite(numbers)
    return pyarrow.array(np.where(lost, numbers, rounded), mask=np.asarray(found.is_null()))


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


def exact(column: Any, text: Any) -> Any:
    """Returns a column of `inexact` as its text has it: integers, or times of day as text."""
    if types.is_time(column.type):
        return text
    found = _first(text, (pyarrow.uint64(),))
    return column if found is None else found


def inexact(table: Any) -> list[str]:
    """Returns the names of columns that have another text than Arrow's values show.

    Floats may be integers of 2⁶³ and more; 10:30 is a time of day, but 10:30:00 another text.
    """
    clocks = [f.name for f in table.schema if types.is_time(f.type)]
    floats = [f.name for f in table.schema if types.is_floating(f.type)]
    ends = {name: compute.min_max(table.column(name)).as_py() for name in floats}
    return clocks + [
        name
        for name, end in ends.items()
        if end["max"] is not None and end["min"] >= 0 and 2.0**63 <= end["max"] <= 2.0**64
    ]


def seen(table: Any) -> Any:
    """Returns a table with numbers, times and durations where Arrow saw only text.

    Words in quotes, such as "NA", are missing among numbers and times, and words among words. The
    empty word in quotes is missing, too, unless there are empty cells without quotes.
    """
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        if types.is_string(column.type):
            table = table.set_column(i, name, _seen(column))
    return table


def _seen(text: Any) -> Any:
    known = without(text, MISSING)
    found = _guessed(known, quoted=known.null_count > text.null_count)
    if found is not None:
        return found
    return without(text, [""]) if text.null_count == 0 else text


def _guessed(text: Any, *, quoted: bool) -> Any:
    """Returns what text spells, None if it is words.

    quoted: Whether words in quotes, now missing, have kept Arrow from seeing what the others are.
    """
    if text.null_count == len(text):
        return None
    first = str(text.drop_null()[0])
    if ISO.fullmatch(first):
        return _first(text, _chain(pyarrow.timestamp("us")))
    if DAYS.fullmatch(first):
        return _durations(text, pyarrow.duration("ns"))
    return _first(text, PLAIN) if quoted else None
