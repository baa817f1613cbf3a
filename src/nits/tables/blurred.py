"""The network of outlier scores: how many rows are like one, each entry seen through a blur.

Numbers are counted in standard deviations of their column and blurred by w of these; a category is
with probability w that of another row. What is learned is the density ν of blurred rows, equation
(39). With K the density of the noise, divided by its greatest value, a row's score is

    −log E K(x − X) = −Σ_i log ( w √(2π) ν(x_i | x_<i) ),                                    (40)

without the factor for categories. It has no unit. E is over the training rows, none of which is
kept: ν is a network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from nits.chunks import slices
from nits.heads import Categorical, Continuous, Head
from nits.model import persistence
from nits.model.density import Density
from nits.tables.columns import plainly
from nits.tables.columns.column import Column, Numbers
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame, Values
from nits.weights.allowance import Allowance

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

WIDTH = 0.5
"""Standard deviations of a column by which its numbers are blurred."""

REPLACED = 0.1
"""Probability of a category to be that of another row."""

PNN, KNOTS = (8,), 8
"""Units of each column's PNN, and its hats."""

MARGIN = 2 * WIDTH
"""How far beyond the training values later columns read, in standard deviations."""

FARTHEST = 1e30
"""Standard deviations beyond which all values count as so far away."""

AT_ONCE = 4096
"""Rows that are scored together."""


class Place(NamedTuple):
    """Where the known values of a column of numbers lie.

    middle, spread: Their mean and standard deviation, less the ruler's base.
    low, high: The least and the greatest, in standard deviations from the mean.
    """

    middle: float
    spread: float
    low: float
    high: float

    @classmethod
    def of(cls, amounts: Numbers, weight: Numbers | None = None) -> Place:
        """Returns the place of some values, of which rows have weights."""
        top = float(np.abs(amounts).max(initial=0.0)) or 1.0
        share = amounts / top  # squares of the greatest floats would overflow
        middle = float(np.average(share, weights=weight))
        spread = math.sqrt(float(np.average((share - middle) ** 2, weights=weight))) or 1.0
        ends = (np.array([share.min(), share.max()]) - middle) / spread
        return cls(middle * top, spread * top, *ends.tolist())

    def to(self, amounts: Numbers) -> Numbers:
        """Returns values in standard deviations from the mean."""
        with np.errstate(over="ignore"):
            found = amounts / self.spread - self.middle / self.spread
        return np.clip(found, -FARTHEST, FARTHEST)


class Entry(NamedTuple):
    """A column of the network: a column of the table, or whether that has a value.

    of: Position of the table's column.
    place: Where its numbers lie; None for categories.
    """

    of: int
    head: Head
    place: Place | None = None

    @property
    def width(self) -> float:
        """By how much it is blurred."""
        return REPLACED if self.head.discrete else WIDTH


class Layout:
    """How a table's rows are those of the network.

    columns: Of the schema.
    places: Of the columns of numbers, None for others.
    """

    def __init__(self, columns: Sequence[Column], places: Sequence[Place | None]) -> None:
        self.columns, self.places = tuple(columns), tuple(places)
        every = [self._entries(i) for i in range(len(self.columns))]
        self.entries = tuple(entry for some in every for entry in some)

    def _entries(self, i: int) -> list[Entry]:
        column, place = self.columns[i], self.places[i]
        if place is None:
            return [Entry(i, column.head(PNN, KNOTS))]
        number = Continuous(hidden=PNN, knots=KNOTS, optional=column.optional)
        whether = [Entry(i, Categorical(2))] if column.optional else []
        return [*whether, Entry(i, number, place)]

    def numbers(self, frame: Frame) -> tuple[Numbers, Numbers]:
        """Returns what the network scores, shape (N, K), and terms that stand in its place.

        The second array, shape (N, D), is NaN where there is none: it is for what was never seen,
        and for what `support` rules out.
        """
        found = np.empty((len(frame), len(self.entries)))
        fixed = np.full((len(frame), len(self.columns)), np.nan)
        for k, entry in enumerate(self.entries):
            column = self.columns[entry.of]
            values = frame.columns[column.name]
            if entry.place is not None and isinstance(column, Numeric):
                found[:, k], fixed[:, entry.of] = _placed(column, entry.place, values)
            elif isinstance(column, Numeric):
                found[:, k] = values.missing
            else:
                coded = column.encode(values)
                found[:, k] = coded.numbers
                fixed[:, entry.of] = np.where(coded.fixed, coded.log_prob, np.nan)
        return found, fixed

    def read(self, found: Numbers) -> Numbers:
        """Returns what later columns read: no number far beyond the training values."""
        ends = [(-np.inf, np.inf) if e.place is None else e.place[2:] for e in self.entries]
        low, high = np.array(ends).T
        return np.clip(found, low - MARGIN, high + MARGIN)


def _placed(column: Numeric, place: Place, values: Values) -> tuple[Numbers, Numbers]:
    """Returns numbers in standard deviations, NaN for holes, and fixed terms."""
    plain, broken = plainly.numbers(values, column.facts, column.unit)
    found = place.to(column.ruler.numbers(plain))
    lost = broken | (values.missing & (not column.optional))
    fixed = np.where(lost, np.log(column.unseen), np.nan)
    fixed[column.ruler.ruled_out(plain) & ~values.missing] = -np.inf
    return np.where(lost, 0.0, np.where(values.missing, np.nan, found)), fixed


class OutlierNetwork:
    """What was learned: the density of blurred rows, and how rows are made of a table's."""

    def __init__(self, layout: Layout, density: Density) -> None:
        self.layout, self.density = layout, density

    def scores(self, estimator: NITSDensity, frame: Frame) -> Numbers:
        """Returns the terms of (40) of each column, shape (N, D)."""
        found, fixed = self.layout.numbers(frame)
        read, own = self.layout.read(found), torch.from_numpy(found)
        given = estimator._given(frame)
        terms = np.zeros(fixed.shape)
        for rows in slices(len(frame), AT_ONCE):
            x = torch.from_numpy(read[rows].astype(np.float32))
            with torch.no_grad():
                laws = self.density.conditionals(x, estimator._context(given[rows]))
                for k, (entry, law) in enumerate(zip(self.layout.entries, laws, strict=True)):
                    said = law.log_prob(own[rows, k].to(x)).double().numpy()
                    peak = 0.0 if entry.head.discrete else math.log(WIDTH * math.sqrt(2 * math.pi))
                    terms[rows, entry.of] += np.where(np.isnan(found[rows, k]), 0.0, said + peak)
        return -np.where(np.isnan(fixed), terms, fixed) + 0.0  # no −0

    def description(self) -> dict[str, Any]:
        """Returns what a file holds of it besides tensors."""
        places = [None if place is None else list(place) for place in self.layout.places]
        return {"places": places, "density": self.density.description()}

    @classmethod
    def described(
        cls, about: dict[str, Any], columns: Sequence[Column], allowance: Allowance
    ) -> OutlierNetwork:
        """Returns one as a file describes it, with initial weights, if it is allowed so much."""
        places = [None if four is None else _checked(four) for four in about["places"]]
        numeric = [isinstance(column, Numeric) for column in columns]
        if [place is not None for place in places] != numeric:
            raise ValueError("its network of outliers is of other columns")
        layout = Layout(columns, places)
        density = persistence.built(about["density"], allowance)
        if tuple(density.heads) != tuple(entry.head for entry in layout.entries):
            raise ValueError("its network of outliers is of other columns")
        return cls(layout, density)


def _checked(four: Sequence[Any]) -> Place:
    place = Place(*(float(number) for number in four))
    if not (all(map(math.isfinite, place)) and place.spread > 0 and place.low <= place.high):
        raise ValueError("the places of its columns are no numbers")
    return place
