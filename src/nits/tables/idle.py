"""Columns with nothing to model: constant, empty, identifiers, saved indices; set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns import plainly
from nits.tables.columns.column import Facts, facts_of
from nits.tables.evidence import aside, grids
from nits.tables.evidence.aside import Aside, Constant, Empty, Identifier, Index
from nits.tables.frames import Frame, Values

KINDS: dict[str, type[Any]] = {
    "empty": Empty,
    "constant": Constant,
    "index": Index,
    "identifier": Identifier,
}
NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True)
class Idle:
    """What was set aside, by name.

    columns: The columns' facts, their unit if they hold times, and why they are here.
    """

    columns: dict[str, tuple[Facts, str | None, Aside]]

    @classmethod
    def of(cls, frame: Frame, wanted: Sequence[str]) -> Idle:
        """Finds the columns to set aside; those that the user said something about stay."""
        refuse_infinite(frame)
        found = {}
        for name, values in frame.columns.items():
            why = _why(name, values)
            said = name in wanted and isinstance(why, Index | Identifier)
            if why is not None and not said:
                facts = Facts.of(name, values, why.reason)
                found[name] = (facts, plainly.unit_of(values.array), why)
        return cls(found)

    def notice(self) -> str:
        """Returns one sentence that lists what was set aside, and why; empty if nothing was."""
        listed = [f"{name!r} ({facts.reason})" for name, (facts, _, _) in self.columns.items()]
        return f"set aside: {', '.join(listed)}." if listed else ""

    def changed(self, frame: Frame) -> dict[str, int]:
        """Returns in how many rows of a table a constant column has another value."""
        found = {}
        for name, (facts, unit, why) in self.columns.items():
            if isinstance(why, Constant) and name in frame.columns:
                values = frame.columns[name]
                same = _plain(values, facts, unit, why.value) == why.value
                if other := int((~same & ~values.missing).sum()):
                    found[name] = other
        return found

    def constants(self) -> dict[str, object]:
        """Returns the values of the constant columns, by name."""
        every = self.columns.items()
        return {name: why.value for name, (*_, why) in every if isinstance(why, Constant)}

    def drawn(self, n: int) -> dict[str, Values]:
        """Returns n rows of these columns: constants, holes, and identifiers numbered anew."""
        return {
            name: _drawn(n, facts, unit, why) for name, (facts, unit, why) in self.columns.items()
        }

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns everything in a form that JSON can hold."""
        return [
            {
                "facts": asdict(facts),
                "unit": unit,
                "why": NAMES[type(why)],
                **{field.name: getattr(why, field.name) for field in fields(why)},  # type: ignore[arg-type]
            }
            for facts, unit, why in self.columns.values()
        ]

    @classmethod
    def from_dict(cls, records: Sequence[dict[str, Any]]) -> Idle:
        """Returns what `to_dict` described."""
        found = {}
        for record in records:
            kind = KINDS[record["why"]]
            why = kind(**{field.name: record[field.name] for field in fields(kind)})
            facts = facts_of(record["facts"])
            found[facts.name] = (facts, record["unit"], why)
        return cls(found)


def _why(name: str, values: Values) -> Aside | None:
    """Returns why a column is set aside; one value and holes are something to model."""
    found = aside.find(values.known, name)
    return None if isinstance(found, Constant) and values.missing.any() else found


def refuse_infinite(frame: Frame) -> None:
    """Refuses columns with infinite values, all in one sentence."""
    counts = {
        name: int(np.isinf(values.array).sum())
        for name, values in frame.columns.items()
        if values.array.dtype.kind == "f"
    }
    found = [
        f"column {name!r} has {count} infinite values" for name, count in counts.items() if count
    ]
    if found:
        raise ValueError(f"{', '.join(found)}; drop those rows, or make them missing.")


def _plain(values: Values, facts: Facts, unit: str | None, value: object) -> NDArray[Any]:
    """Returns values as the constant is kept, also where a later table has another type."""
    if unit is not None and values.array.dtype.kind in "mM":
        return plainly.numbers(values, facts, unit)[0]
    if isinstance(value, int | float) and values.array.dtype.kind == "O" and not facts.ordered:
        try:
            return plainly.numbers(values, facts, None)[0]
        except ValueError:
            return values.array
    return grids.integers(values.array)


def _numbered(first: int, n: int, facts: Facts) -> Values:
    """Returns the next n numbers; a type too small for them becomes a larger one."""
    numbers = first + np.arange(n)
    name = facts.dtype.lower()
    small = name.startswith(("int", "uint")) and int(numbers[-1]) > np.iinfo(name).max
    return Values(numbers, np.zeros(n, bool), "int64" if small else facts.dtype)


def _drawn(n: int, facts: Facts, unit: str | None, why: Aside) -> Values:
    if isinstance(why, Constant):
        found = np.full(n, why.value, object if isinstance(why.value, str) else None)
        if unit is not None:
            return plainly.values(found, np.zeros(n, bool), facts, unit)
        return Values(found, np.zeros(n, bool), facts.dtype, facts.levels, facts.ordered)
    if isinstance(why, Index | Identifier) and why.first is not None:
        return _numbered(why.first, n, facts)
    if isinstance(why, Identifier):
        return Values(np.array([f"{i}" for i in range(n)], object), np.zeros(n, bool), facts.dtype)
    empty = np.full(n, np.nan) if unit is None else np.full(n, "NaT", unit)
    return Values(empty, np.ones(n, bool), facts.dtype, facts.levels, facts.ordered)
