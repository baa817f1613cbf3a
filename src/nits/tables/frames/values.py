"""A table as named columns of NumPy values with holes, whatever library it came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
"""Units of times and durations, the finest first, in nanoseconds."""


class Refused(TypeError):
    """A column that cannot be read; the words follow its name in the sentence."""


@dataclass(frozen=True)
class Values:
    """One column: its values, and which of them are missing.

    array: float64; int64, or uint64 if a value is 2⁶³ or more; bool; object for strings; datetime64
        (in UTC) and timedelta64 in nanoseconds if all values fit, else in the finest of
        microseconds, milliseconds and seconds; dates in seconds. What it has where values are
        missing means nothing.
    dtype: The name of the type that the column had in its table, from which it can be restored.
    levels: The declared values of a categorical, in their order, times as integers; None for
        columns of other types.
    ordered: Whether the order of the levels means something.
    """

    array: NDArray[Any]
    missing: Mask
    dtype: str
    levels: tuple[Any, ...] | None = None
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.array)

    @property
    def known(self) -> NDArray[Any]:
        """The values that are not missing; no copy if none is."""
        found: NDArray[Any] = self.array[~self.missing] if self.missing.any() else self.array
        return found

    def take(self, rows: NDArray[np.int64] | slice) -> Values:
        """Returns the values at some rows; those of a slice are not copied."""
        return replace(self, array=self.array[rows], missing=self.missing[rows])

    def replaced(self, at: Mask, array: NDArray[Any]) -> Values:
        """Returns the values with others at some rows."""
        kinds = {self.array.dtype.kind, array.dtype.kind}
        # Integers of both types would become floats.
        mixed = np.uint64 if kinds == {"i", "u"} else np.result_type(self.array, array)
        found = self.array.astype(mixed)
        found[at] = array
        return replace(self, array=found, missing=self.missing & ~at)

    def named(self, dtype: str) -> Values:
        """Returns the same values of a type with another name."""
        return replace(self, dtype=dtype)


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


def integers(array: NDArray[Any], missing: Mask, dtype: str) -> Values:
    """Returns integers of any type as int64, or as uint64 if one of them needs it."""
    if array.dtype.kind == "u" and bool((array[~missing] >= 2**63).any()):
        return Values(array.astype(np.uint64), missing, dtype)
    return Values(array.astype(np.int64), missing, dtype)


def times(array: NDArray[Any], dtype: str, *, days: bool = False) -> Values:
    """Returns times or durations in the finest unit that holds them all.

    days: Whether they are dates, for which seconds are fine enough.
    """
    kind = f"{'datetime' if array.dtype.kind == 'M' else 'timedelta'}64"
    missing = np.isnat(array)
    unit, count = np.datetime_data(array.dtype)
    if unit not in UNITS or count != 1:
        array = _in_seconds(array, kind, missing)
        unit, days = "s", days or unit == "D"
    known = array[~missing].astype(np.int64)
    ends = [int(end) for end in (known.min(), known.max())] if len(known) else [0, 0]
    finer = (name for name in UNITS if _fits(ends, UNITS[unit], UNITS[name]))
    best = unit if days else next(finer, unit)
    return Values(array.astype(f"{kind}[{best}]"), missing, dtype)


def _in_seconds(array: NDArray[Any], kind: str, missing: Mask) -> NDArray[Any]:
    """Returns times in units that are none of ours, such as days, as seconds."""
    with np.errstate(over="ignore"):
        found = array.astype(f"{kind}[s]")
    if bool((found.astype(array.dtype) != array)[~missing].any()):
        raise Refused("must hold times in seconds to nanoseconds, but has others; convert it.")
    return found


def _fits(ends: list[int], size: int, finer: int) -> bool:
    return finer <= size and all(abs(end) * (size // finer) < 2**63 for end in ends)


def in_unit(values: Values, unit: str, name: str) -> NDArray[Any]:
    """Returns times or durations in a unit; a value that it cannot hold is an error."""
    array = values.array
    if np.datetime_data(array.dtype)[0] == unit:
        return array
    kind = f"{'datetime' if array.dtype.kind == 'M' else 'timedelta'}64"
    found = array.astype(f"{kind}[{unit}]")
    size = UNITS[np.datetime_data(array.dtype)[0]]
    ticks = array.astype(np.int64)
    if unit in UNITS and size > UNITS[unit]:
        wrapped = ~values.missing & (found.astype(np.int64) // (size // UNITS[unit]) != ticks)
        if bool(wrapped.any()):
            raise beyond(name, array[wrapped][0], f"{kind}[{unit}]")
    return found


def whole(values: Values, dtype: str, name: str) -> NDArray[Any]:
    """Returns integers of a type, 0 where they are missing; one beyond the type is an error."""
    array = np.where(values.missing, 0, values.array)
    array = np.rint(array) if array.dtype.kind == "f" else array
    ends = np.iinfo(dtype)
    # The float of 2⁶³ − 1 is 2⁶³, which is beyond.
    high = array >= float(ends.max) + 1 if array.dtype.kind == "f" else array > ends.max
    outside = (array < ends.min) | high
    if bool(outside.any()):
        raise beyond(name, array[outside][0], dtype)
    return array.astype(dtype)


def floats(values: Values, dtype: str, name: str) -> NDArray[Any]:
    """Returns floats of a type, NaN where they are missing; one beyond the type is an error."""
    array = np.where(values.missing, np.nan, values.array.astype(np.float64))
    with np.errstate(over="ignore"):
        found = array.astype(dtype)
    outside = np.isinf(found) & np.isfinite(array)
    if bool(outside.any()):
        raise beyond(name, array[outside][0], dtype)
    return found


def beyond(name: str, value: object, dtype: str) -> ValueError:
    """Returns the error that a value is none of a column's type."""
    return ValueError(f"column {name!r} must hold {dtype} values, but has {value}, beyond them.")


def categorical(levels: Values, codes: NDArray[np.int64], kind: str, *, ordered: bool) -> Values:
    """Returns the values of a categorical; a code below 0 is a missing value.

    levels: What is declared, as a column; its type's name is the detail of the categorical's.
    """
    missing = codes < 0
    empty = not len(levels)
    array = np.full(len(codes), "", object) if empty else levels.array[np.where(missing, 0, codes)]
    ticks = levels.array.astype(np.int64) if levels.array.dtype.kind in "mM" else levels.array
    dtype = f"{kind}[{levels.dtype}]"
    return Values(array, missing, dtype, tuple(ticks.tolist()), ordered)


def coded(values: Values, dtype: str, name: str) -> tuple[Values, NDArray[np.int64]]:
    """Returns the declared levels as a column of a type, and the place of each value among them.

    Levels that are not known are those that occur. A value that is none of them is an error.
    """
    known = values.known
    listed = values.levels
    if listed is None:
        ticks = known.astype(np.int64) if known.dtype.kind in "mM" else known
        listed = tuple(sorted(set(ticks.tolist())))
    kind = known.dtype
    array = np.array(listed, np.int64).astype(kind) if kind.kind in "mM" else _as(listed, kind)
    places = {level: place for place, level in enumerate(listed)}
    ticks = known.astype(np.int64) if kind.kind in "mM" else known
    codes = np.full(len(values), -1, np.int64)
    codes[~values.missing] = [places.get(item, -1) for item in ticks.tolist()]
    outside = (codes < 0) & ~values.missing
    if bool(outside.any()):
        found = values.array[outside][0]
        raise ValueError(
            f"column {name!r} must hold its declared categories, but has {found!r}, none of them."
        )
    return Values(array, np.zeros(len(listed), bool), dtype), codes


def _as(listed: tuple[Any, ...], dtype: Any) -> NDArray[Any]:
    found = np.empty(len(listed), dtype)
    found[:] = listed
    return found
