"""A column's values as plain numbers: times as ticks of a unit, ordered categories as positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns.column import Facts, Flags
from nits.tables.evidence import grids
from nits.tables.frames import Values


def array(plain: Sequence[Any]) -> NDArray[Any]:
    """Returns plain numbers, strings or booleans as an array that has them to the last digit.

    NumPy makes floats of integers if some of them are below 2⁶³ and others are not.
    """
    if plain and isinstance(plain[0], str):
        return np.array(plain, object)
    whole = all(type(one) is int for one in plain)
    unsigned = whole and min(plain, default=0) >= 0 and 2**63 <= max(plain, default=0) < 2**64
    return np.array(plain, np.uint64 if unsigned else None)


def per_second(unit: str) -> int:
    """Returns how many ticks of times or durations, such as "M8[ns]", a second has."""
    return grids.PER_SECOND[np.datetime_data(unit)[0]]


def unit_of(array: NDArray[Any]) -> str | None:
    """Returns the type of times and durations, such as "M8[ns]", and None for anything else."""
    return array.dtype.str[1:] if array.dtype.kind in "mM" else None


def numbers(values: Values, facts: Facts, unit: str | None) -> tuple[NDArray[Any], Flags]:
    """Returns integers or floats, anything where a value is missing, and which are no numbers.

    facts: What the column was in training.
    unit: The type of its times or durations, such as "M8[ns]", whose ticks are counted.

    Infinite values, times that have no place among the ticks, and categories that were not declared
    count as none. Where all values are missing they may be of any type.
    """
    array, missing = values.array, values.missing
    if bool(missing.all()):
        return np.zeros(len(missing), np.int64), np.zeros(len(missing), bool)
    if facts.ordered and facts.levels is not None:
        return _positions(values, facts.levels)
    if array.dtype.kind in "mM" and unit is not None:
        return _ticks(array, missing, facts, unit)
    if array.dtype.kind == "O":
        array = _parsed(array, missing, facts, unit)
    if array.dtype.kind not in "fiub" or unit is not None:
        raise _other(facts, unit, values.dtype)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    broken = ~np.isfinite(array) & ~missing
    plain = array.copy()
    plain[broken | missing] = array[~(broken | missing)][:1] if (~(broken | missing)).any() else 0
    return plain, broken


def _other(facts: Facts, unit: str | None, got: str) -> ValueError:
    return ValueError(
        f"column {facts.name!r} must hold {_what(unit)}, as it did in training, "
        f"but holds {got}; convert it."
    )


def _what(unit: str | None) -> str:
    if unit is None:
        return "numbers"
    return "durations" if unit.startswith("m") else "times"


def _positions(values: Values, levels: tuple[Any, ...]) -> tuple[NDArray[np.int64], Flags]:
    place = {level: i for i, level in enumerate(levels)}
    found = np.array([place.get(value, -1) for value in values.array.tolist()], np.int64)
    broken = (found < 0) & ~values.missing
    return np.maximum(found, 0), broken


def _ticks(
    array: NDArray[Any], missing: Flags, facts: Facts, unit: str
) -> tuple[NDArray[np.int64], Flags]:
    """Returns times or durations in ticks, and which of them have no place among the ticks."""
    kind = "durations" if array.dtype.kind == "m" else "times"
    if kind != _what(unit):
        raise _other(facts, unit, kind)
    ticks = array.view(np.int64)
    coarse, fine = per_second(array.dtype.str[1:]), per_second(unit)
    if fine >= coarse:
        factor = fine // coarse
        lost = np.abs(ticks.astype(np.float64)) * factor >= 2.0**63
        found = np.where(lost | missing, 0, ticks) * factor
    else:
        factor = coarse // fine
        found, lost = np.where(missing, 0, ticks // factor), ticks % factor != 0
    return found, lost & ~missing


def _parsed(
    array: NDArray[Any], missing: Flags, facts: Facts, unit: str | None
) -> NDArray[np.float64]:
    """Returns the numbers that strings spell."""
    try:
        return np.where(missing, "nan", array).astype(np.float64)
    except ValueError:
        raise _other(facts, unit, "strings") from None


def values(plain: NDArray[Any], holes: Flags, facts: Facts, unit: str | None) -> Values:
    """Returns plain numbers as values of the column's table."""
    if unit is not None:
        plain = np.asarray(plain, np.int64).view(unit)
    if facts.ordered and facts.levels is not None:
        plain = np.array(facts.levels, dtype=object)[np.asarray(plain, np.int64)]
    return Values(plain, holes, facts.dtype, facts.levels, facts.ordered)
