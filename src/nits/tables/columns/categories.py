"""Categories: strings, booleans, and whatever the user says has no order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nits.heads import Categorical, Head
from nits.tables.columns import plainly
from nits.tables.columns.column import Coded, Column, Numbers
from nits.tables.frames import Values

UNKNOWN = -1.0
"""The number of a category that was never seen: the network reads none of those it knows."""


@dataclass(frozen=True)
class Categories(Column):
    """A column of categories; its number is the position, that of a pool comes after the others.

    levels: Strings, booleans or plain numbers, in order.
    pooled, shares: Rare categories that are modelled as one, and the share of each in that pool.
    unit: The type of times and durations, such as "M8[ns]".
    """

    kind: ClassVar[str] = "categorical"
    record: ClassVar[str] = "categories"
    levels: tuple[Any, ...]
    pooled: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()
    unit: str | None = None

    @property
    def _size(self) -> int:
        """The number of categories, a pool being one; also the number of a hole."""
        return len(self.levels) + bool(self.pooled)

    @property
    def within(self) -> tuple[float, float]:
        """The numbers up to the last category: that of a hole comes after it."""
        return -math.inf, self._size - 1.0 if self.optional else math.inf

    def encode(self, values: Values) -> Coded:
        """Returns each value's position."""
        position = {level: float(i) for i, level in enumerate(self.levels)}
        position |= dict.fromkeys(self.pooled, float(len(self.levels)))
        listed = self._plain(values)
        numbers = np.array([position.get(value, UNKNOWN) for value in listed], np.float64)
        numbers[values.missing] = self._size if self.optional else UNKNOWN
        unseen = numbers == UNKNOWN
        log_prob = np.where(unseen, np.log(self.unseen), self.log_left)
        if self.pooled:
            share = dict(zip(self.pooled, self.shares, strict=True))
            log_prob += np.log([share.get(value, 1.0) for value in listed]) * ~values.missing
        return Coded(numbers, log_prob, unseen, unseen, np.zeros(len(numbers), np.int8))

    def _plain(self, values: Values) -> list[Any]:
        """Returns values of the kind that the levels are: a retyped table may have others."""
        kind = type(self.levels[0])
        array = values.array
        if kind is bool:
            known = {True: True, False: False, "true": True, "false": False}
            return [known.get(_lower(value), value) for value in array.tolist()]
        if kind is str:
            strings = array.dtype.kind == "O"
            return [value if strings else _spelled(value) for value in array.tolist()]
        if array.dtype.kind == "O" and values.missing.all():
            return list(array)
        return list(plainly.numbers(values, self.facts, self.unit)[0].tolist())

    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns the levels; members of the pool are drawn by their shares."""
        every = (*self.levels, *self.pooled)
        index = numbers.astype(np.int64)
        holes = (index == self._size) if self.optional else np.zeros(len(index), bool)
        index = np.where(holes, 0, index)
        if self.pooled:
            at = np.flatnonzero(index == len(self.levels))
            index[at] += source.choice(len(self.pooled), len(at), p=_normal(self.shares))
        found = plainly.array(every)[index]
        return plainly.values(found, holes, self.facts, self.unit)

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a softmax over the categories, and over holes if there were any."""
        return Categorical(self._size + self.optional)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        own = {
            "levels": list(self.levels),
            "pooled": list(self.pooled),
            "shares": list(self.shares),
            "unit": self.unit,
        }
        return {**super().to_dict(), **own}


def _normal(shares: tuple[float, ...]) -> Numbers:
    found = np.array(shares)
    normal: Numbers = found / found.sum()
    return normal


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _spelled(value: Any) -> str:
    """Returns a number as a CSV file would have it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
