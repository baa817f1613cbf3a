"""What a table's columns are: decided by evidence from the training rows, unless the user says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import checks
from nits.chunks import slices
from nits.engines.engine import Engine
from nits.printable import listed
from nits.tables import orders
from nits.tables.columns import Coded, Column, build, from_dict
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.deciding import decided
from nits.tables.evidence import choice
from nits.tables.frames import Frame, Values
from nits.tables.idle import Idle
from nits.tables.lacking import sentence

Support = tuple[float, float]
Kinds = Mapping[str | int, str] | str | None
Supports = Mapping[str | int, Support] | None

ENCODED_AT_ONCE = 2**18
"""Rows of a column that become numbers at once."""


@dataclass(frozen=True)
class Encoded:
    """A table as numbers, each of shape (N, D): see `Coded`."""

    numbers: NDArray[np.float32]
    log_prob: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    side: NDArray[np.int8]

    @classmethod
    def empty(cls, rows: int, columns: int) -> Encoded:
        """Returns a table to put columns into."""
        shape = (rows, columns)
        return cls(
            np.empty(shape, np.float32),
            np.empty(shape),
            np.empty(shape, bool),
            np.empty(shape, bool),
            np.empty(shape, np.int8),
        )

    def put(self, at: tuple[slice, int], coded: Coded) -> None:
        """Puts some rows of a column in their place."""
        self.numbers[at], self.log_prob[at] = coded.numbers, coded.log_prob
        self.fixed[at], self.unseen[at], self.side[at] = coded.fixed, coded.unseen, coded.side

    def of(self, rows: slice, column: int) -> Coded:
        """Returns some rows of a column."""
        at = (rows, column)
        return Coded(
            self.numbers[at].astype(np.float64),
            self.log_prob[at],
            self.fixed[at],
            self.unseen[at],
            self.side[at],
        )

    def units(
        self, model: NDArray[np.float64], beyond: NDArray[np.float64] | float = 0.0
    ) -> NDArray[np.float64]:
        """Returns each entry's log-probability from that of the model, in the table's units.

        beyond: Of entries beyond an end the log-probability of lying there, 0 for all others.
        """
        return np.where(self.fixed, self.log_prob + beyond, model + self.log_prob)


class Schema:
    """The columns of a table that are modelled, in the order in which it has them."""

    def __init__(self, columns: Sequence[Column], form: str) -> None:
        self.columns = tuple(columns)
        self.form = form

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    def select(self, names: Sequence[str]) -> Schema:
        """Returns the schema of some of the columns."""
        named = {column.name: column for column in self.columns}
        return Schema([named[name] for name in names], self.form)

    def encode(self, frame: Frame) -> Encoded:
        """Returns a table's values as numbers; its columns may be in any order, and be more."""
        self._refuse_lacking(frame)
        found = Encoded.empty(len(frame), len(self.columns))
        for at, coded in self._coded(frame):
            found.put(at, coded)
        return found

    def numbers(self, frame: Frame) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Returns what a network learns from, and what to add to the log-density of each row.

        The numbers are those of `encode`, shape (N, D); the rest of it is only summed, shape (N,).
        """
        self._refuse_lacking(frame)
        found = np.empty((len(frame), len(self.columns)), np.float32)
        units = np.zeros(len(frame))
        for at, coded in self._coded(frame):
            found[at] = coded.numbers
            units[at[0]] += coded.log_prob
        return found, units

    def _coded(self, frame: Frame) -> Iterator[tuple[tuple[slice, int], Coded]]:
        """Yields the columns, some rows at a time: the work on them needs no memory for all."""
        for i, column in enumerate(self.columns):
            values = frame.columns[column.name]
            for rows in slices(len(frame), ENCODED_AT_ONCE):
                try:
                    coded = column.encode(values.take(rows))
                except ValueError:
                    raise ValueError(" ".join(self._odd(frame))) from None
                yield (rows, i), coded

    def _odd(self, frame: Frame) -> list[str]:
        """Returns what is wrong with the columns that a table has, a sentence for each."""
        found = []
        for column in self.columns:
            try:
                if column.name in frame.columns:
                    column.encode(frame.columns[column.name])
            except ValueError as error:
                found.append(str(error))
        return found

    def _refuse_lacking(self, frame: Frame) -> None:
        lacking = [name for name in self.names if name not in frame.columns]
        if lacking and frame.form == "numpy" and len(frame.columns) == len(self.columns):
            raise ValueError(
                f"the table must have the columns {listed(self.names)}, but is an array without "
                "names; convert it to a DataFrame with these columns."
            )
        if lacking and frame.form == "numpy":
            raise ValueError(
                f"X has {len(frame.columns)} features, "
                f"but this model was fitted on {len(self.columns)}."
            )
        if lacking:
            told = sentence(lacking, list(frame.columns))
            raise ValueError(" ".join([told, *self._odd(frame)]))

    def known(self) -> list[tuple[float, float]]:
        """Returns low and high of each column: numbers of values are in (low, high], holes not."""
        return [column.within for column in self.columns]

    def decode(
        self, numbers: NDArray[np.float32], tails: NDArray[np.float64], source: np.random.Generator
    ) -> dict[str, Values]:
        """Returns the values that numbers, shape (N, D), stand for.

        tails: The share of the upper tail up to an entry that lies there, minus that of the lower
            tail for an entry there, and NaN for all others.
        """
        found = {}
        for i, column in enumerate(self.columns):
            values = column.decode(numbers[:, i].astype(np.float64), source)
            for side in (LOWER, UPPER):
                at = side * tails[:, i] > 0
                if at.any():
                    array = column.drawn_beyond(side, np.abs(tails[at, i]))
                    values = values.replaced(at, array)
            found[column.name] = values
        return found

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields in a form that JSON can hold."""
        return {"form": self.form, "columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Schema:
        """Returns the schema that `to_dict` described."""
        return cls([from_dict(column) for column in record["columns"]], record["form"])


def infer(
    frame: Frame,
    kinds: Kinds = None,
    support: Supports = None,
    pool_below: int = 0,
    given: Sequence[str] = (),
    engine: Engine | None = None,
) -> tuple[Schema, Idle]:
    """Returns what each column is, and the columns that hold nothing to model.

    kinds: "continuous", "integer", "ordered" or "categorical" by name or position, or one kind for
        all columns of numbers.
    support: (low, high) by name or position; either may be infinite.
    pool_below: Categories in fewer rows than this are modelled as one.
    given: Columns that are read and not modelled. Numbers among them are read as amounts, however
        they would be modelled, unless the user has named a kind.
    engine: Where columns of numbers are decided at once; by default all are decided here.
    """
    names = list(frame.columns)
    wanted, limits = wanted_kinds(kinds, frame), by_name(support, names)
    for ends in limits.values():
        checks.ends(*ends)
    idle = Idle.of(frame, [*wanted, *limits] if not isinstance(kinds, str) else [*limits])
    amounts = [name for name in given if frame.columns[name].array.dtype.kind in "iuf"]
    wanted = {**dict.fromkeys(amounts, "continuous"), **wanted}
    tasks = {
        name: (name, values, wanted.get(name), limits.get(name), pool_below)
        for name, values in frame.columns.items()
        if name not in idle.columns
    }
    # Strings are only counted, and sending them takes longer.
    numbers = [name for name in tasks if frame.columns[name].array.dtype.kind in "iufmM"]
    far = decided(_column, [tasks[name] for name in numbers], engine)
    found = dict(zip(numbers, far, strict=True))
    columns = [found[n] if n in found else _column(task) for n, task in tasks.items()]
    return Schema([among(column, len(columns)) for column in columns], frame.form), idle


def _column(task: tuple[str, Values, str | None, Support | None, int]) -> Column:
    return build.column(*task)


def among(column: Column, columns: int) -> Column:
    """Returns a column that knows how many others the table has."""
    return replace(column, facts=replace(column.facts, columns=columns))


def unlimited(frame: Frame, support: Supports = None) -> tuple[Schema, Idle]:
    """Returns columns of real numbers without limits, which may be mapped linearly."""
    if support:
        raise ValueError(
            "whitened columns must be real ones without limits, atoms or missing values, but "
            "support= names limits; turn whitening off."
        )
    idle = Idle.of(frame, [])
    named = [(name, v) for name, v in frame.columns.items() if name not in idle.columns]
    return Schema([build.unlimited(name, values) for name, values in named], frame.form), idle


def by_name(given: Mapping[str | int, Any] | None, names: list[str]) -> dict[str, Any]:
    """Returns what is given for columns, by name or position, by name."""
    return {names[orders.position(key, names)]: value for key, value in (given or {}).items()}


def wanted_kinds(kinds: Kinds, frame: Frame) -> dict[str, str]:
    """Returns the kinds that the user wants, by name."""
    if isinstance(kinds, str):
        _refuse_kind("every column", kinds)
        numeric = [name for name, v in frame.columns.items() if v.array.dtype.kind in "fiumM"]
        return dict.fromkeys(numeric, kinds)
    found = by_name(kinds, list(frame.columns))
    for name, kind in found.items():
        _refuse_kind(repr(name), kind)
        if kind in ("continuous", "integer") and frame.columns[name].array.dtype.kind in "OUb":
            raise ValueError(
                f"column {name!r} must be categorical, since it holds "
                f"{'booleans' if frame.columns[name].array.dtype.kind == 'b' else 'strings'}, "
                f"but was named {kind}; leave its kind out."
            )
    return found


def _refuse_kind(which: str, kind: str) -> None:
    if kind not in choice.KINDS:
        known = ", ".join(choice.KINDS[:-1])
        raise ValueError(
            f"the kind of {which} must be {known} or {choice.KINDS[-1]}, but is {kind!r}."
        )
