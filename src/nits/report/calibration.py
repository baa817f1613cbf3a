"""The section about calibration: are entries spread over their predicted distributions as chance?

The probability integral transform of an entry is the predicted probability of a value at most as
large, given the entries before it. If the model is right, it is uniform. Where a value has a
probability of its own, a random point of that jump is taken, which makes it uniform there, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom

from nits.chunks import slices
from nits.report.subject import CannotSay, Subject, by_rows
from nits.tables.columns import Coded, Column
from nits.tables.columns.column import BODY, LOWER, UPPER
from nits.tables.conditional import Conditional
from nits.tables.schema import Encoded
from nits.training.likelihood import SCORED_AT_ONCE

Numbers = NDArray[np.float64]

ALPHA = 0.05
"""How often chance alone may take any column of a right model out of its band."""

POINTS = 101
INTERVALS = (0.5, 0.9)
MOST_DRAWN = 60
"""Columns that are drawn; of wider tables, the worst."""


@dataclass(frozen=True)
class Covered:
    """The share of entries inside the central interval of a probability, and what chance allows."""

    level: float
    share: float
    low: float
    high: float

    @property
    def outside(self) -> bool:
        """Whether it is none that chance allows."""
        return not self.low <= self.share <= self.high


@dataclass(frozen=True)
class OfColumn:
    """How uniform a column's transforms are.

    rows: How many there are.
    curve: Share of them at most u, less u, for u from 0 to 1.
    gap: The largest of these differences, at any u, and where it is.
    band: What chance allows, for all columns together.
    """

    name: str
    kind: str
    rows: int
    curve: Numbers
    gap: float
    where: float
    band: float
    coverage: tuple[Covered, ...]

    @property
    def outside(self) -> bool:
        """Whether the gap is larger than chance allows."""
        return self.gap > self.band


@dataclass(frozen=True)
class Calibration:
    """The columns in the table's order; entries without a predicted distribution are left out."""

    columns: tuple[OfColumn, ...]
    left_out: int

    @property
    def worst(self) -> OfColumn:
        """The column that is farthest out of its band, or nearest to its edge."""
        return max(self.columns, key=lambda column: column.gap / column.band)

    @property
    def outside(self) -> list[str]:
        """The columns that leave their bands, the worst first."""
        found = [c for c in self.columns if c.outside]
        return [c.name for c in sorted(found, key=lambda c: -c.gap / c.band)]

    @property
    def uncovered(self) -> list[str]:
        """The columns of which a central interval holds more or less than chance allows."""
        return [c.name for c in self.columns if any(each.outside for each in c.coverage)]

    @property
    def drawn(self) -> tuple[OfColumn, ...]:
        """The columns to draw."""
        kept = sorted(self.columns, key=lambda c: -c.gap / c.band)[:MOST_DRAWN]
        names = {c.name for c in kept}
        return tuple(c for c in self.columns if c.name in names)


def measured(subject: Subject) -> Calibration:
    """Returns how uniform the transforms of the rows are, column by column."""
    u = transforms(subject.model, subject.coded, subject.context, subject.seed)
    return of_transforms(subject.columns, u)


def of_transforms(columns: Any, u: Numbers) -> Calibration:
    """Returns how uniform transforms, shape (N, D), are; NaN is left out."""
    found = []
    for column, each in zip(columns, u.T, strict=True):
        known = each[~np.isnan(each)]
        if len(known):
            found.append(_of_column(column, known, len(columns)))
    if not found:
        raise CannotSay("No entry of the rows has a predicted distribution.")
    return Calibration(tuple(found), int(np.isnan(u).sum()))


def transforms(model: Any, coded: Encoded, context: torch.Tensor | None, seed: int) -> Numbers:
    """Returns randomized transforms of entries, shape (N, D); NaN for what was never seen.

    An entry beyond an end of the training values has a random point of the tail's probability.
    """
    density, source = model.model_, np.random.default_rng(seed)
    middle = by_rows(density.to_uniform, coded.numbers, context)
    mass = np.exp(by_rows(density.log_prob_per_column, coded.numbers, context))
    x = torch.from_numpy(coded.numbers)
    flags = [head.has_mass(part) for head, part in zip(density.heads, x.t(), strict=True)]
    jump = mass * torch.stack(flags, 1).numpy()
    v = source.random(coded.numbers.shape)
    u = np.clip(middle + jump * (v - 0.5), 0.0, 1.0)
    with torch.no_grad():
        for some in slices(len(x), SCORED_AT_ONCE):
            laws = density.conditionals(x[some], None if context is None else context[some])
            for j, (column, law) in enumerate(zip(model.schema_.columns, laws, strict=True)):
                here, at = coded.of(some, j), (some, j)
                u[at] = _with_tails(Conditional(column, law), u[at], v[at], here)
    return np.asarray(u)


def _with_tails(law: Conditional, u: Numbers, v: Numbers, coded: Coded) -> Numbers:
    """Returns transforms of a column's entries under the model and its tails together.

    u: Those under the model.
    v: Where in its tail an entry lies that is beyond an end.
    """
    ends, bent = law.column.beyond, law.bent()
    first, last = bent.at[0], bent.at[3]  # holes lie before the known numbers, or after them
    found = ends.left * (np.minimum(u, first) + np.maximum(u - last, 0.0))
    found += np.where(u > first, bent.up_to(u, 1.0, u > last), 0.0)
    start = ends.left * first
    found = np.where(coded.side == LOWER, start + v * bent.lower, found)
    found = np.where(coded.side == UPPER, start + bent.total - v * bent.upper, found)
    never = coded.fixed & (coded.side == BODY)
    return np.asarray(np.where(never | np.isnan(coded.numbers), np.nan, np.clip(found, 0, 1)))


def _of_column(column: Column, u: Numbers, columns: int) -> OfColumn:
    ordered = np.sort(u)
    n = len(ordered)
    levels = np.linspace(0, 1, POINTS)
    below = np.searchsorted(ordered, levels, side="right") / n
    gap, where = _largest(ordered)
    spread = np.abs(u - 0.5)
    alpha = ALPHA / (columns * len(INTERVALS))
    coverage = []
    for level in INTERVALS:
        ends = binom.ppf((alpha / 2, 1 - alpha / 2), n, level) / n
        share = float((spread <= level / 2).mean())
        coverage.append(Covered(level, share, float(ends[0]), float(ends[1])))
    return OfColumn(
        column.name,
        column.kind,
        n,
        below - levels,
        gap,
        where,
        band(n, columns),
        tuple(coverage),
    )


def _largest(ordered: Numbers) -> tuple[float, float]:
    """Returns the Kolmogorov–Smirnov distance to the uniform distribution, and where it is."""
    n = len(ordered)
    above = np.arange(1, n + 1) / n - ordered
    below = ordered - np.arange(n) / n
    i, j = int(above.argmax()), int(below.argmax())
    if above[i] >= below[j]:
        return float(above[i]), float(ordered[i])
    return float(below[j]), float(ordered[j])


def band(n: int, columns: int = 1) -> float:
    """Returns how far chance may take a right model's shares from u, anywhere and in any column.

    P(sup |F_n − F| > ε) ≤ 2 exp(−2 n ε²), for every n (Dvoretzky, Kiefer, Wolfowitz; Massart);
    each of the columns has its share of 5 %.
    """
    return float(np.sqrt(np.log(2 * columns / ALPHA) / (2 * max(n, 1))))
