"""The columns of a schema: how each turns a table's values into numbers for a model, and back.

Scaling is part of a column: it is fitted on training rows, robust to outliers, and its logarithm is
added to the log-density, which is then in the user's units. `decode` undoes `encode` up to
rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nits.heads import Atoms, Categorical, Continuous, Head, Integer
from nits.tables.frames import Values

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table.

    name, dtype: As the table has them.
    optional: Whether values may be missing.
    reason: Why the column has this kind.
    """

    name: str
    dtype: str
    optional: bool
    reason: str
    kind: ClassVar[str]

    @abstractmethod
    def encode(self, values: Values) -> Numbers:
        """Returns the numbers that the model reads, NaN where a value is missing."""

    @abstractmethod
    def decode(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the values that numbers stand for."""

    @abstractmethod
    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns the head that models the numbers."""

    def log_measure(self, numbers: Numbers) -> Numbers:
        """Returns what to add to the model's log-density to have it in the user's units."""
        return np.zeros(len(numbers))

    def has_mass(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Returns which numbers have a probability, not a density."""
        return np.ones(len(numbers), bool)

    def log_share(self, values: Values) -> Numbers:
        """Returns the log-probability of each value given its number: 0, except in a pool."""
        return np.zeros(len(values))

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields in a form that JSON can hold: an infinite limit becomes null."""
        record = {"kind": self.kind, **asdict(self)}
        return {
            name: None if value in (math.inf, -math.inf) else value
            for name, value in record.items()
        }


@dataclass(frozen=True)
class Real(Column):
    """A column with a density on [low, high], and a probability of its own at each atom."""

    kind: ClassVar[str] = "continuous"
    low: float
    high: float
    shift: float
    scale: float
    atoms: tuple[float, ...] = ()

    def encode(self, values: Values) -> Numbers:
        """Returns shifted and scaled values."""
        numbers = _numbers(self, values)
        return self._scaled(np.where(values.missing, np.nan, numbers))

    def _scaled(self, x: Numbers) -> Numbers:
        scaled: Numbers = (np.asarray(x, np.float64) - self.shift) / self.scale
        return scaled

    def decode(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the values, never outside the support, with atoms exact to the last digit."""
        x = np.clip(numbers * self.scale + self.shift, self.low, self.high)
        for atom in self.atoms:
            x[self._is_atom(numbers, atom)] = atom
        return _as_times(x, self.dtype) if _is_time(self.dtype) else x

    def _is_atom(self, numbers: Numbers, atom: float) -> NDArray[np.bool_]:
        """Returns which numbers equal the atom in float32, the precision the model compares in."""
        at = np.float32(self._scaled(np.array(atom)))
        found: NDArray[np.bool_] = numbers.astype(np.float32) == at
        return found

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN on the support, with atoms if there are any."""
        low, high = (float(self._scaled(np.array(end))) for end in (self.low, self.high))
        if not self.atoms:
            return Continuous(low, high, hidden, knots, self.optional)
        atoms = tuple(float(self._scaled(np.array(atom))) for atom in self.atoms)
        return Atoms(atoms, low, high, hidden, knots, self.optional)

    def has_mass(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Returns which numbers are atoms."""
        found = np.zeros(len(numbers), bool)
        for atom in self.atoms:
            found |= self._is_atom(numbers, atom)
        return found

    def log_measure(self, numbers: Numbers) -> Numbers:
        """Returns −log scale where there is a density, and 0 at atoms and missing values."""
        return np.where(self.has_mass(numbers) | np.isnan(numbers), 0.0, -math.log(self.scale))


@dataclass(frozen=True)
class Whole(Column):
    """A column of multiples of a step, each with a probability: integers, or rounded decimals.

    least, greatest: In steps from `origin`; infinite where there is no limit.
    """

    kind: ClassVar[str] = "integer"
    step: float
    origin: float
    least: float
    greatest: float
    scale: float

    def encode(self, values: Values) -> Numbers:
        """Returns the number of steps from the origin.

        A value that is no multiple of the step becomes a half-integer, which has probability zero.
        """
        numbers = (_numbers(self, values) - self.origin) / self.step
        whole = np.round(numbers)
        off = np.abs(numbers - whole) > 1e-6 * np.maximum(1.0, np.abs(numbers))
        return np.where(values.missing, np.nan, np.where(off, np.floor(numbers) + 0.5, whole))

    def decode(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the values."""
        x = numbers * self.step + self.origin
        if _is_time(self.dtype):
            return _as_times(x, self.dtype)
        if self.step == 1:
            return np.round(x) if _is_real(self.dtype) else np.round(x).astype(np.int64)
        digits = max(0, round(-math.log10(self.step)))
        return np.round(x, digits)

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a PNN whose masses of unit intervals are the probabilities."""
        return Integer(self.least, self.greatest, 0.0, self.scale, hidden, knots, self.optional)


@dataclass(frozen=True)
class Levels(Column):
    """A column of categories: strings, booleans, or a few numbers.

    pooled, shares: Rare categories that are modelled as one, and the share of each in that pool.
    """

    kind: ClassVar[str] = "categorical"
    levels: tuple[Any, ...]
    pooled: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()

    def encode(self, values: Values) -> Numbers:
        """Returns each value's position among the levels, the pool being last; −1 if unknown."""
        position = {level: float(i) for i, level in enumerate(self.levels)}
        position |= dict.fromkeys(self.pooled, float(len(self.levels)))
        found = np.array([position.get(value, -1.0) for value in values.array.tolist()], np.float64)
        return np.where(values.missing, np.nan, found)

    def decode(self, numbers: Numbers) -> NDArray[Any]:
        """Returns the levels; members of the pool take turns, in proportion to their shares."""
        every = (*self.levels, *self.pooled)
        index = numbers.astype(np.int64)
        if self.pooled:
            at = np.flatnonzero(index == len(self.levels))
            turn = (np.arange(len(at)) * 0.6180339887498949 + 0.5) % 1
            index[at] += np.searchsorted(np.cumsum(self.shares)[:-1], turn, side="right")
        kind = object if isinstance(every[0], str) else type(every[0])
        found: NDArray[Any] = np.array(every, dtype=kind)[index]
        return found

    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns a softmax."""
        return Categorical(len(self.levels) + bool(self.pooled), self.optional)

    def log_share(self, values: Values) -> Numbers:
        """Returns the logarithm of each value's share of the pool; 0 if it is not pooled."""
        share = dict(zip(self.pooled, self.shares, strict=True))
        return np.log([share.get(value, 1.0) for value in values.array.tolist()])


UNLIMITED = {"low": -math.inf, "high": math.inf, "least": -math.inf, "greatest": math.inf}
"""The limits that are null in JSON, which has no infinity."""

KINDS: dict[str, type[Column]] = {cls.kind: cls for cls in (Real, Whole, Levels)}


def from_dict(record: dict[str, Any]) -> Column:
    """Returns the column that `Column.to_dict` described; fields that it lacks have defaults."""
    cls = KINDS[record["kind"]]
    values = {field.name: record[field.name] for field in fields(cls) if field.name in record}
    values = {name: UNLIMITED.get(name) if v is None else v for name, v in values.items()}
    arguments: dict[str, Any] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in values.items()
    }
    return cls(**arguments)


def _numbers(column: Column, values: Values) -> Numbers:
    """Returns numbers or times as float64; times in seconds."""
    if values.array.dtype.kind == "M":
        return values.array.astype("datetime64[ns]").astype(np.int64) / 1e9
    if values.array.dtype.kind not in "fiub":
        raise ValueError(
            f"column {column.name!r} must hold numbers, as it did in training, but holds strings; "
            "convert it to numbers."
        )
    return values.array.astype(np.float64)


def _is_time(dtype: str) -> bool:
    return dtype.startswith(("datetime", "timestamp", "date"))


def _is_real(dtype: str) -> bool:
    return dtype.lower().startswith(("float", "double", "object"))


def _as_times(seconds: Numbers, dtype: str) -> NDArray[Any]:
    found: NDArray[Any] = (
        np.round(seconds * 1e6).astype(np.int64).astype("datetime64[us]").astype("datetime64[ns]")
    )
    return found
