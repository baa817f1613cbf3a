"""Columns of Python objects: booleans, numbers, strings, dates, times, durations, decimals.

Their type's name is `object[kind detail, hole]`: the detail is a decimal's digits after the point,
or a zone; the hole is what stands for a missing value, None if nothing is said.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from nits.tables.frames import values as columns
from nits.tables.frames.values import Refused, Values

CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, np.floating),
    "str": (str,),
    "Decimal": (Decimal,),
    "datetime": (datetime.datetime,),
    "date": (datetime.date,),
    "timedelta": (datetime.timedelta,),
}
"""The first that fits names the kind: a boolean is an integer, and a datetime a date, to Python."""

PANDAS = ("Timestamp", "Timedelta")
"""Classes of pandas that derive from Python's, and have nanoseconds."""

UNIONS = {
    frozenset({"bool", "int"}): "int",
    frozenset({"int", "float"}): "float",
    frozenset({"bool", "int", "float"}): "float",
    frozenset({"int", "Decimal"}): "Decimal",
    frozenset({"datetime", "Timestamp"}): "Timestamp",
    frozenset({"timedelta", "Timedelta"}): "Timedelta",
}

HOLES = {"NoneType": "", "NAType": "NA", "NaTType": "NaT", "Decimal": "", "float": "nan"}

SENTENCE = "must hold numbers, times, strings or booleans, but holds {}; convert or drop it."


def read(array: NDArray[Any], dtype: str = "object") -> Values:
    """Returns the values of an array of objects of one kind."""
    items = array.tolist()
    missing = np.fromiter(map(_is_hole, items), bool, len(items))
    known = [item for item, hole in zip(items, missing.tolist(), strict=True) if not hole]
    kind = _kind({type(item) for item in known})
    found, detail = READERS[kind](known)
    spread = np.full(len(items), FILLERS[found.dtype.kind], found.dtype)
    spread[~missing] = found
    first = next((item for item, hole in zip(items, missing, strict=True) if hole), None)
    hole = HOLES.get(type(first).__name__, "nan")
    name = f"{dtype}[{kind}{detail and ' ' + detail}{hole and ', ' + hole}]"
    if found.dtype.kind in "mM":
        return columns.times(spread, name, days=kind == "date")
    return Values(spread, missing, name)


def _is_hole(item: Any) -> bool:
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(item, Decimal):
        return item.is_nan()
    return isinstance(item, float | np.floating) and bool(item != item)


def _kind(types: set[type]) -> str:
    names = {_class(each) for each in types} or {"str"}
    kind = UNIONS.get(frozenset(names), next(iter(names)) if len(names) == 1 else "")
    odd = sorted(name for name in names if name not in READERS)
    if odd and (kind or len(odd) == len(names)):
        raise Refused(SENTENCE.format(f"objects of the type {odd[0]}"))
    if not kind:
        *others, last = sorted(names)
        raise Refused(
            f"must hold values of one type, but has {', '.join(others)} and {last}; "
            "convert it to strings or to numbers."
        )
    return kind


def _class(each: type) -> str:
    if each.__name__ in PANDAS or issubclass(each, np.timedelta64):  # an integer, to NumPy
        return each.__name__
    found = (name for name, classes in CLASSES.items() if issubclass(each, classes))
    return next(found, each.__name__)


FILLERS = {"b": False, "i": 0, "u": 0, "f": np.nan, "O": "", "M": "NaT", "m": "NaT"}
"""What an array has where values are missing, by the kind of its type."""


Read = tuple[NDArray[Any], str]


def _integers(known: list[Any]) -> Read:
    whole = [int(item) for item in known]
    least, greatest = min(whole), max(whole)
    if least < -(2**63) or greatest >= (2**63 if least < 0 else 2**64):
        raise Refused(
            f"must hold integers of 64 bits, but goes from {least} to {greatest}; "
            "convert it to float or to strings."
        )
    return np.array(whole, np.uint64 if greatest >= 2**63 else np.int64), ""


def _floats(known: list[Any]) -> Read:
    found = np.array(known, np.float64)
    for item, number in zip(known, found.tolist(), strict=True):
        if isinstance(item, int | np.integer) and int(item) != number:
            raise Refused(
                f"must hold numbers of 53 bits where some are no integers, but has {item}; "
                "convert it to float."
            )
    return found, ""


def _decimals(known: list[Any]) -> Read:
    exact = [Decimal(item) for item in known]
    finite = [item for item in exact if item.is_finite()]
    scale = max((max(0, -int(item.as_tuple().exponent)) for item in finite), default=0)
    found = np.array([float(item) for item in exact], np.float64)
    for item, number in zip(exact, found.tolist(), strict=True):
        if decimal(number, scale) != item:
            raise Refused(
                f"must hold decimals that are floats to the last digit, but has {item}; "
                "convert it to float, or round it."
            )
    return found, str(scale)


def decimal(number: float, scale: int) -> Decimal:
    """Returns a number with so many digits after the point."""
    # The shortest digits that are read as this float, not all those that it has.
    return Decimal(f"{Decimal(repr(number)):.{scale}f}")


def _datetimes(known: list[Any]) -> Read:
    zones = {str(item.tzinfo) if item.tzinfo is not None else "" for item in known}
    if "" in zones and len(zones) > 1:
        raise Refused("must hold times with a zone or without one, but has both; convert it.")
    utc = datetime.UTC
    naive = [item.astimezone(utc).replace(tzinfo=None) if item.tzinfo else item for item in known]
    zone = next(iter(zones)) if len(zones) == 1 else "UTC"
    if any(hasattr(item, "to_datetime64") for item in naive):
        found = [np.datetime64(getattr(i, "to_datetime64", lambda i=i: i)()) for i in naive]
        return columns.times(np.array(found), "").array, zone
    return np.array(naive, "datetime64[us]"), zone


def _durations(known: list[Any]) -> Read:
    found = [np.timedelta64(getattr(i, "to_timedelta64", lambda i=i: i)()) for i in known]
    return np.array(found), ""


def _strings(known: list[Any]) -> Read:
    found = np.empty(len(known), object)
    found[:] = [str(item) for item in known]
    return found, ""


READERS: dict[str, Callable[[list[Any]], Read]] = {
    "bool": lambda known: (np.array(known, bool), ""),
    "int": _integers,
    "float": _floats,
    "str": _strings,
    "Decimal": _decimals,
    "datetime": _datetimes,
    "Timestamp": _datetimes,
    "date": lambda known: (np.array(known, "datetime64[D]"), ""),
    "timedelta": _durations,
    "Timedelta": _durations,
}


def write(values: Values, name: str) -> NDArray[Any]:
    """Returns values as the objects that they were, with what stood for missing values."""
    described = values.dtype[values.dtype.index("[") + 1 : -1]
    what, _, hole = described.partition(", ")
    kind, _, detail = what.partition(" ")
    found = np.empty(len(values), object)
    found[:] = _hole(hole)
    known = Values(values.known, np.zeros(len(values.known), bool), values.dtype)
    found[~values.missing] = _listed(_objects(known, kind, detail, name))
    return found


def _listed(items: list[Any]) -> NDArray[Any]:
    found = np.empty(len(items), object)
    found[:] = items
    return found


def _hole(name: str) -> object:
    if name in ("NA", "NaT"):
        import pandas

        return getattr(pandas, name)
    return float("nan") if name == "nan" else None


def _objects(known: Values, kind: str, detail: str, name: str) -> list[Any]:
    if kind == "int":
        unsigned = known.array.dtype.kind == "u"
        return list(columns.whole(known, "uint64" if unsigned else "int64", name).tolist())
    if kind == "Decimal":
        return [decimal(number, int(detail)) for number in known.array.tolist()]
    if kind in PANDAS:
        import pandas

        made = [getattr(pandas, kind)(item) for item in known.array]
        zone = _zone(detail) if detail else None
        return [item.tz_localize("UTC").tz_convert(zone) for item in made] if zone else made
    if kind in ("date", "datetime", "timedelta"):
        return _of_datetime(known, kind, detail, name)
    python = {"bool": bool, "float": float, "str": str}[kind]
    return [python(item) for item in known.array.tolist()]


def _of_datetime(known: Values, kind: str, zone: str, name: str) -> list[Any]:
    found = columns.in_unit(known, "D" if kind == "date" else "us", name).tolist()
    for item, value in zip(found, known.array, strict=True):
        if isinstance(item, int):
            raise columns.beyond(name, value, kind)
    utc = datetime.UTC
    return [item.replace(tzinfo=utc).astimezone(_zone(zone)) for item in found] if zone else found


def _zone(name: str) -> datetime.tzinfo:
    """Returns the zone of a name: UTC, UTC+02:00, or one of a place."""
    if name.startswith("UTC"):
        offset = datetime.datetime.fromisoformat(f"2000-01-01T00:00{name[3:] or '+00:00'}")
        return datetime.timezone(offset.utcoffset() or datetime.timedelta(0))
    return ZoneInfo(name)
