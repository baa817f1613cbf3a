"""What every column of a schema does: values to numbers for the model and back, and what is fixed.

The model gives the probabilities of what the training rows showed. A column adds what they cannot
show, by construction, not by learning. At an end without a limit, with m the model's mass of the k
outermost of n training values, given the columns before,

    P(beyond) = (1 − ε) m s n / k + ε s,    s = 1 / (n + 1)                                  (28)

So s of all rows lie beyond, those most often whose values are expected near the end. What is beyond
by the first term is taken from the outermost values, what is by the second from all values alike.
If o listed values occurred once in a table of D columns, P(unseen) = (o + 1/D) / (n + 2): the next
row has a new value as often as there are such, and something new in a column without any in one of
n + 2 rows. Everything known is multiplied by what that leaves. Later columns read the nearest
number that the training rows had.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nits.heads import Head
from nits.tables.columns.beyond import NOWHERE, Beyond
from nits.tables.frames import Values, plain, single
from nits.tables.zones import local

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sides = NDArray[np.int8]

LOWER, BODY, UPPER = -1, 0, 1
"""Where a value lies: beyond the least training value, between the ends, beyond the greatest."""


class Coded(NamedTuple):
    """A column's values as the model sees them, each of shape (N,).

    numbers: What the model reads, always something that it has a probability for.
    log_prob: What is added to the model's log-probability, or stands in its place.
    fixed: Whether it stands in its place.
    unseen: Which values were never seen in training, though they could have been.
    side: LOWER or UPPER for values beyond an end, to which the model's log-mass of the outermost
        values is added, equation (28); BODY for all others.
    """

    numbers: Numbers
    log_prob: Numbers
    fixed: Flags
    unseen: Flags
    side: Sides


@dataclass(frozen=True)
class Facts:
    """What a column was in the training table.

    rows, holes: How many known and how many missing values it had.
    singles: How many of its listed values occurred once.
    columns: How many columns the table had.
    reason: Why it is modelled as it is, and by how much the other candidates were behind.
    scores: Nats per row of held-out values, by candidate.
    levels, ordered: Declared categories, and whether their order means something.
    """

    name: str
    dtype: str
    rows: int
    holes: int = 0
    singles: int = 0
    columns: int = 1
    reason: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    levels: tuple[Any, ...] | None = None
    ordered: bool = False

    @classmethod
    def of(cls, name: str, values: Values, reason: str = "") -> Facts:
        """Returns the facts of a column of the training table."""
        holes = int(values.missing.sum())
        known = len(values) - holes
        levels, ordered = values.levels, values.ordered
        return cls(name, values.dtype, known, holes, reason=reason, levels=levels, ordered=ordered)


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table.

    kind: What users call it: continuous, integer, ordered or categorical.
    record: What files call it.
    """

    facts: Facts
    kind: ClassVar[str]
    record: ClassVar[str]

    @property
    def name(self) -> str:
        """As the table has it."""
        return self.facts.name

    @property
    def dtype(self) -> str:
        """The name of its type in the training table."""
        return self.facts.dtype

    @property
    def reason(self) -> str:
        """Why it is modelled as it is."""
        return self.facts.reason

    @property
    def optional(self) -> bool:
        """Whether values were missing in training; such a column's holes have probabilities."""
        return self.facts.holes > 0

    @property
    def known(self) -> float:
        """The share of the training rows that had a value."""
        return self.facts.rows / max(1, self.facts.rows + self.facts.holes)

    @property
    def unseen(self) -> float:
        """The probability of what was never seen, equation (28)."""
        facts = self.facts
        return (facts.singles + 1 / facts.columns) / (facts.rows + facts.holes + 2)

    @property
    def beyond(self) -> Beyond:
        """What lies below the least value and above the greatest, equation (28)."""
        return NOWHERE

    @property
    def log_left(self) -> float:
        """Log of the probability that is left for what the model knows, and what lies beyond."""
        return math.log1p(-self.unseen)

    @abstractmethod
    def encode(self, values: Values) -> Coded:
        """Returns the numbers that stand for values, and what to add to their log-probability."""

    @abstractmethod
    def decode(self, numbers: Numbers, source: np.random.Generator) -> Values:
        """Returns the values that numbers stand for.

        source: Draws members of pools.
        """

    @abstractmethod
    def head(self, hidden: tuple[int, ...], knots: int) -> Head:
        """Returns the head that models the numbers."""

    @property
    def within(self) -> tuple[float, float]:
        """Low and high such that the numbers of values are in (low, high], and those of holes not.

        Infinite where there are no holes.
        """
        return -math.inf, math.inf

    def number(self, value: Any) -> float:
        """Returns the number of one value that is given."""
        try:
            coded = self.encode(local(plain(single(value))))
        except TypeError as error:
            raise TypeError(f"the value given for {self.name!r} {error}") from None
        if bool(coded.unseen[0]) or coded.log_prob[0] == -math.inf:
            raise ValueError(
                f"the value given for {self.name!r} must be one that the column can have, "
                f"but is {value!r}; see nits info."
            )
        return float(coded.numbers[0])

    def reach(self, values: Values) -> tuple[Numbers, tuple[Numbers, Numbers]]:
        """Returns the greatest number up to each value, and the shares of the tails up to it."""
        numbers = self.encode(values).numbers
        return numbers, (np.ones(len(numbers)), np.zeros(len(numbers)))

    def end(self, side: int) -> float:
        """Returns the number that stands for values beyond an end, LOWER or UPPER."""
        raise ValueError(f"column {self.name!r} has no ends.")

    def drawn_beyond(self, side: int, u: Numbers) -> NDArray[Any]:
        """Returns values beyond an end, at probabilities u of what lies there."""
        raise ValueError(f"column {self.name!r} has no ends.")

    def to_dict(self) -> dict[str, Any]:
        """Returns everything in a form that JSON can hold."""
        return {"column": self.record, "facts": asdict(self.facts)}


def facts_of(record: dict[str, Any]) -> Facts:
    """Returns the facts that `to_dict` described."""
    levels = record["levels"]
    found = Facts(**(record | {"levels": None if levels is None else tuple(levels)}))
    for name, least in (("rows", 0), ("holes", 0), ("singles", 0), ("columns", 1)):
        count = getattr(found, name)
        if isinstance(count, int) and count < least:  # of another type: see `nits.typed`
            raise ValueError(f"{name} of a column must be at least {least}, but are {count}")
    return found
