"""What a column may be given as: a value, a range, a set of values, or missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nits.tables import orders

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class Missing:
    """That a value is missing: the type of `nits.missing`."""

    def __repr__(self) -> str:
        return "missing"

    def __reduce__(self) -> str:
        return "missing"


missing = Missing()
"""Given for a column, it says that the column's value is missing."""


@dataclass(frozen=True)
class Value:
    """One value, which has a density or a probability."""

    value: Any

    def __str__(self) -> str:
        return f"== {quoted(self.value)}"


@dataclass(frozen=True)
class Range:
    """The known values between two ends, either of which may be None, for no end.

    from_low, to_high: Whether the ends are in it.
    """

    low: Any = None
    high: Any = None
    from_low: bool = True
    to_high: bool = False

    def __str__(self) -> str:
        if self.low is None and self.high is None:
            return "is not missing"
        ends = (
            ("" if self.low is None else f"{'>=' if self.from_low else '>'} {quoted(self.low)}"),
            ("" if self.high is None else f"{'<=' if self.to_high else '<'} {quoted(self.high)}"),
        )
        return " and ".join(end for end in ends if end)


@dataclass(frozen=True)
class Among:
    """Any of some values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"in {{{', '.join(quoted(value) for value in self.values)}}}"


@dataclass(frozen=True)
class Other:
    """Any known value but these."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"!= {quoted(self.values[0])}"
        return f"not {Among(self.values)}"


Condition = Value | Range | Among | Other | Missing
Conditions = dict[str, list[Condition]]
"""Conditions by column, all of which hold."""


def quoted(value: Any) -> str:
    """Returns a value as the parser of conditions reads it."""
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return str(value)
    mark = '"' if "'" in value else "'"
    return f"{mark}{value}{mark}"


def condition(column: str, given: Any) -> Condition:
    """Returns the condition that a Python value stands for.

    A pair (low, high) is low ≤ x < high, with None for no end; a set or a list is any of its
    values; None and NaN are refused, since they may mean two things.
    """
    if isinstance(given, Value | Range | Among | Other | Missing):
        return given
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(
                f"a range of {column!r} must be a pair (low, high), but has {len(given)} "
                "numbers; write a set for several values."
            )
        low, high = (None if _none(end) else end for end in given)
        return Range(low, high)
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    if isinstance(given, slice):
        return Range(given.start, given.stop)
    if isinstance(given, set | frozenset | list | np.ndarray):
        return Among(tuple(sorted(given, key=str) if isinstance(given, set) else given))
    if _none(given):
        raise ValueError(
            f"{column!r} must be given as a value, but is {given}; "
            "give nits.missing for a missing value, or leave the column out."
        )
    return Value(given)


def up_to(column: str, value: Any) -> Range:
    """Returns the condition that a known value is at most as large as one."""
    if _none(value):
        raise ValueError(f"{column!r} must be compared with a value, but with {value}; name one.")
    return Range(None, value, to_high=True)


def _none(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


Told = Mapping[Any, Any] | Iterable[tuple[str, Condition]]
"""Conditions by column, or pairs of a column and a condition."""


def gathered(given: Told | None, names: list[str]) -> Conditions:
    """Returns conditions by column.

    names: The columns that there are; a key is a name or a position.
    """
    if given is None:
        return {}
    pairs: Iterable[tuple[Any, Condition]] = (
        ((key, condition(str(key), value)) for key, value in given.items())
        if isinstance(given, Mapping)
        else given
    )
    found: Conditions = {}
    for key, one in pairs:
        name = names[orders.position(key, names)]
        found.setdefault(name, []).append(one)
    return found
