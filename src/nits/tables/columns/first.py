"""Columns of files written before version 0.3: guessed kinds, no tails, holes without likelihood.

What such a model was never shown, or lies outside its support, has probability zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from nits.heads import Atoms, Categorical, Continuous, Head, Integer
from nits.tables.columns import plainly
from nits.tables.columns.column import Coded, Column, Facts, Flags, Numbers
from nits.tables.frames import Values
from nits.tables.zones import local, universal


@dataclass(frozen=True)
class First(Column):
    """A column whose holes, NaN to the model, add nothing to the log-density."""

    @property
    def unseen(self) -> float:
        """Nothing unseen is possible."""
        return 0.0

    def _coded(self, values: Values, numbers: Numbers, log_prob: Numbers) -> Coded:
        if not self.optional and values.missing.any():
            raise ValueError(
                f"column {self.name!r} has {int(values.missing.sum())} missing values, "
                "but had none in training; fill them, or train on rows that have some."
            )
        none = np.zeros(len(numbers), bool)
        holes = values.missing
        numbers, log_prob = np.where(holes, np.nan, numbers), np.where(holes, 0.0, log_prob)
        return Coded(numbers, log_prob, none, none, none.astype(np.int8))

    def _values(self, found: Any) -> Values:
        unit = "M8[ns]" if _is_time(self.dtype) else None
        if unit is not None:
            found = np.round(np.asarray(found) * 1e6).astype(np.int64) * 1000
        return local(plainly.values(found, np.zeros(len(found), bool), self.facts, unit))

    def _numbers(self, values: Values) -> Numbers:
        """Returns numbers or times as float64; times in seconds."""
        unit = "M8[ns]" if _is_time(self.dtype) else None
        plain, _ = plainly.numbers(universal(values), self.facts, unit)
        return plain.astype(np.float64) / (1e9 if unit else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as such files have them: an infinite limit is null."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        facts = own.pop("facts")
        record = {"kind": self.kind, "name": facts.name, "dtype": facts.dtype}
        record |= {"optional": self.optional, "reason": facts.reason, **own}
        return {
            name: None if value in (math.inf, -math.inf) else value
            for name, value in record.items()
        }


@dataclass(frozen=True)
class Real(First):
    """A column with a density on [low, high], and a probability of its own at each atom."""

    kind: ClassVar[str] = "continuous"
    low: float
    high: float
    shift: float
    scale: float
    atoms: tuple[float, ...] = ()

    def encode(self, values: Values) -> Coded:
        """Returns shifted and scaled values, and −log scale where there is a density."""
        numbers = self._scaled(self._numbers(values))
        mass = np.zeros(len(numbers), bool)
        for atom in self.atoms:
            mass |= self._is_atom(numbers, atom)
        return self._coded(values, numbers, np.where(mass, 0.0, -math.log(self.scale)))

    def _scaled(self, x: Any) -> Numbers:
        scaled: Numbers = (np.asarray(x, np.float64) - self.shift) / self.scale
        return scaled

    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns the values, never outside the support, with atoms exact to the last digit."""
        x = np.clip(numbers * self.scale + self.shift, self.low, self.high)
        for atom in self.atoms:
            x[self._is_atom(numbers, atom)] = atom
        return self._values(x)

    def _is_atom(self, numbers: Numbers, atom: float) -> Flags:
        """Returns which numbers equal the atom in float32, the precision the model compares in."""
        found: Flags = numbers.astype(np.float32) == np.float32(self._scaled(atom))
        return found

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN on the support, with atoms if there are any."""
        low, high = (float(self._scaled(end)) for end in (self.low, self.high))
        if not self.atoms:
            return Continuous(low, high, hidden, knots, self.optional)
        atoms = tuple(float(self._scaled(atom)) for atom in self.atoms)
        return Atoms(atoms, low, high, hidden, knots, self.optional)


@dataclass(frozen=True)
class Whole(First):
    """A column of multiples of a step, each with a probability: integers, or rounded decimals.

    least, greatest: In steps from `origin`; infinite where there is no limit.
    """

    kind: ClassVar[str] = "integer"
    step: float
    origin: float
    least: float
    greatest: float
    scale: float

    def encode(self, values: Values) -> Coded:
        """Returns the number of steps from the origin; a half-integer for what is no multiple."""
        numbers = (self._numbers(values) - self.origin) / self.step
        whole = np.round(numbers)
        off = np.abs(numbers - whole) > 1e-6 * np.maximum(1.0, np.abs(numbers))
        steps = np.where(off, np.floor(numbers) + 0.5, whole)
        return self._coded(values, steps, np.zeros(len(steps)))

    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns the values."""
        x = numbers * self.step + self.origin
        if _is_time(self.dtype):
            return self._values(x)
        digits = max(0, round(-math.log10(self.step)))
        real = self.dtype.lower().startswith(("float", "double", "object"))
        x = np.round(x, digits)
        return self._values(x if real or digits else x.astype(np.int64))

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN whose masses of unit intervals are the probabilities."""
        return Integer(self.least, self.greatest, 0.0, self.scale, hidden, knots, self.optional)


@dataclass(frozen=True)
class Levels(First):
    """A column of categories: strings, booleans, or a few numbers.

    pooled, shares: Rare categories that are modelled as one, and the share of each in that pool.
    """

    kind: ClassVar[str] = "categorical"
    levels: tuple[Any, ...]
    pooled: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()

    def encode(self, values: Values) -> Coded:
        """Returns each value's position among the levels, the pool being last; −1 if unknown."""
        position = {level: float(i) for i, level in enumerate(self.levels)}
        position |= dict.fromkeys(self.pooled, float(len(self.levels)))
        listed = values.array.tolist()
        found = np.array([position.get(value, -1.0) for value in listed], np.float64)
        share = dict(zip(self.pooled, self.shares, strict=True))
        return self._coded(values, found, np.log([share.get(value, 1.0) for value in listed]))

    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns the levels; members of the pool are drawn by their shares."""
        every = (*self.levels, *self.pooled)
        index = numbers.astype(np.int64)
        if self.pooled:
            at = np.flatnonzero(index == len(self.levels))
            index[at] += source.choice(len(self.pooled), len(at), p=np.array(self.shares))
        return self._values(plainly.array(every)[index])

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a softmax."""
        return Categorical(len(self.levels) + bool(self.pooled), self.optional)


UNLIMITED = {"low": -math.inf, "high": math.inf, "least": -math.inf, "greatest": math.inf}
"""The limits that are null in JSON, which has no infinity."""

KINDS: dict[str, type[First]] = {cls.kind: cls for cls in (Real, Whole, Levels)}


def from_dict(record: dict[str, Any]) -> Column:
    """Returns the column that an old file describes; fields that it lacks have defaults."""
    cls = KINDS[record["kind"]]
    own = {field.name for field in fields(cls)} & set(record)
    values = {n: UNLIMITED.get(n) if record[n] is None else record[n] for n in own}
    made: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    facts = Facts(
        record["name"], record["dtype"], 0, int(record["optional"]), reason=record["reason"]
    )
    return cls(facts, **made)


def _is_time(dtype: str) -> bool:
    return dtype.startswith(("datetime", "timestamp", "date"))
