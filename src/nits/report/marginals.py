"""The section about each column: rows of the table against rows that the model drew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.report import axes, words
from nits.report.axes import Axis, Bars
from nits.report.subject import Subject
from nits.tables.columns import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.columns.plainly import per_second
from nits.tables.frames import Values

Numbers = NDArray[np.float64]

MOST_COLUMNS = 48
"""Columns that are drawn; of wider tables, those whose samples differ most."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_SPECIAL = 5

DRAWS = 200
"""Pairs of samples of one distribution, by which it is known what chance allows categories."""

CHANCE = 1.358
"""Of the Kolmogorov–Smirnov statistic, √n times which 5 % of samples exceed."""


@dataclass(frozen=True)
class Special:
    """A value with a probability of its own: its share in the table and in samples."""

    label: str
    real: float
    drawn: float


@dataclass(frozen=True)
class Quantile:
    """The value below which a share of the known values lies, in the table and in samples."""

    level: float
    real: str
    drawn: str


@dataclass(frozen=True)
class Marginal:
    """A column of the table beside that of samples.

    axis: Its bins; None if the rows have no known value.
    real, drawn: The share of each bin among values that are known and not drawn apart.
    special: Missing values, and frequent ones.
    gap: The largest difference between the two distribution functions, or, of categories, half of
        the sum of differences; missing values count as a value.
    chance: The gap that two samples of one distribution exceed in 5 % of cases.
    outside: Share of the samples beyond the axis.
    """

    name: str
    kind: str
    axis: Axis | None
    real: Numbers
    drawn: Numbers
    special: tuple[Special, ...]
    quantiles: tuple[Quantile, ...]
    gap: float
    chance: float
    outside: float

    @property
    def bars(self) -> bool:
        """Whether bins are values."""
        return isinstance(self.axis, Bars)


@dataclass(frozen=True)
class Marginals:
    """The columns that are drawn, in the table's order, and how many there are."""

    columns: tuple[Marginal, ...]
    total: int

    @property
    def worst(self) -> Marginal:
        """The column whose samples differ most from the table, for what chance allows."""
        return max(self.columns, key=lambda column: column.gap / column.chance)


def measured(subject: Subject) -> Marginals:
    """Returns every column beside samples; of very wide tables, those that differ most."""
    real, drawn = subject.rows.frame.columns, subject.drawn.columns
    columns = subject.columns
    far = []
    for column in columns:
        gap, chance = _gap(column, real[column.name], drawn[column.name])
        far.append(gap / chance)
    shown = sorted(np.argsort(far)[::-1][:MOST_COLUMNS].tolist())
    found = [marginal(columns[i], real[columns[i].name], drawn[columns[i].name]) for i in shown]
    return Marginals(tuple(found), len(columns))


def marginal(column: Column, real: Values, drawn: Values) -> Marginal:
    """Returns a column of the table beside that of samples."""
    gap, chance = _gap(column, real, drawn)
    categories = column.kind == "categorical"
    if real.missing.all():
        empty, special = np.empty(0), _holes(real, drawn)
        return Marginal(column.name, column.kind, None, empty, empty, special, (), gap, chance, 0.0)
    axis = axes.axis(column, real)
    off = axes.apart(column, real) if not isinstance(axis, Bars) else np.empty(0)
    special = (*_holes(real, drawn), *_special(column, real, drawn, off))
    shares = [_shares(column, axis, values, off) for values in (real, drawn)]
    return Marginal(
        column.name,
        column.kind,
        axis,
        shares[0][0],
        shares[1][0],
        special,
        () if categories or isinstance(axis, Bars) else _quantiles(column, real, drawn),
        gap,
        chance,
        shares[1][1],
    )


def _shares(column: Column, axis: Axis, values: Values, off: NDArray[Any]) -> tuple[Numbers, float]:
    """Returns the share of each bin, and that of what lies beyond them."""
    bins = axis.bins(values)
    counted = ~values.missing
    if len(off):
        counted &= ~np.isin(axes.plain(column, values), off)
    total = max(1, int(counted.sum()))
    inside = counted & (bins != axes.NOWHERE)
    count = np.bincount(bins[inside], minlength=len(axis))
    return count / total, float((counted & ~inside).sum() / total)


def _holes(real: Values, drawn: Values) -> tuple[Special, ...]:
    shares = [float(values.missing.mean()) for values in (real, drawn)]
    return (Special("missing", *shares),) if max(shares) > 0 else ()


def _special(column: Column, real: Values, drawn: Values, off: NDArray[Any]) -> tuple[Special, ...]:
    """Returns the shares of values that are drawn apart, the most frequent ones."""
    plain = [(axes.plain(column, v), v) for v in (real, drawn)] if len(off) else []
    found = []
    for atom in off:
        shares = [float(((x == atom) & ~v.missing).mean()) for x, v in plain]
        found.append(Special(axes.named(column, atom), *shares))
    return tuple(sorted(found, key=lambda each: -each.real)[:MOST_SPECIAL])


def _quantiles(column: Column, real: Values, drawn: Values) -> tuple[Quantile, ...]:
    both = []
    for values in (real, drawn):
        known = np.sort(axes.plain(column, values)[~values.missing])
        at = [min(len(known) - 1, int(level * len(known))) for level in LEVELS]
        both.append(_told(column, known[at]) if len(known) else ["–"] * len(LEVELS))
    return tuple(Quantile(*each) for each in zip(LEVELS, *both, strict=True))


def _told(column: Column, quantiles: NDArray[Any]) -> list[str]:
    """Returns quantiles as readers would write them: dates of times that lie days apart."""
    unit = getattr(column, "unit", None)
    if unit is None:
        return [axes.named(column, x) for x in quantiles]
    if unit.startswith("m"):
        return [words.duration(float(x) / per_second(unit)) for x in quantiles]
    days = float(quantiles[-1] - quantiles[0]) / per_second(unit) / 86400
    spelled = [str(x) for x in quantiles.astype(np.int64).view(unit).astype("M8[s]")]
    return [text[:10] if days > 4 else text[5:16].replace("T", " ") for text in spelled]


def _gap(column: Column, real: Values, drawn: Values) -> tuple[float, float]:
    """Returns how far apart the two distributions are, from 0 to 1, and what chance allows."""
    if column.kind == "categorical" or not isinstance(column, Numeric):
        return _total_variation(real, drawn)
    ordered = []
    for values in (real, drawn):
        x = column.ruler.numbers(axes.plain(column, values))
        ordered.append(np.sort(np.where(values.missing, -np.inf, x)))
    every = np.concatenate(ordered)
    below = [np.searchsorted(x, every, side="right") / len(x) for x in ordered]
    chance = CHANCE * (1 / len(real) + 1 / len(drawn)) ** 0.5
    return float(np.abs(below[0] - below[1]).max()), chance


def _total_variation(real: Values, drawn: Values) -> tuple[float, float]:
    counts: dict[object, list[int]] = {}
    for i, values in enumerate((real, drawn)):
        for key in axes.keys(values):
            counts.setdefault(key, [0, 0])[i] += 1
    every = np.array(list(counts.values()))
    share = every / [len(real), len(drawn)]
    source, pooled = np.random.default_rng(0), every.sum(1) / every.sum()
    again = [source.multinomial(n, pooled, DRAWS) / n for n in (len(real), len(drawn))]
    by_chance = np.abs(again[0] - again[1]).sum(1) / 2
    gap = float(np.abs(share[:, 0] - share[:, 1]).sum() / 2)
    return gap, max(float(np.quantile(by_chance, 0.95)), 1 / len(real))
