"""The section about pairs of columns: those that tell most of one another, data beside samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nits.report import axes, split
from nits.report.axes import Axis
from nits.report.split import Split
from nits.report.subject import CannotSay, Subject
from nits.tables.columns import Column
from nits.tables.frames import Frame, Values

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_PAIRS = 6
LEAST_NATS = 0.01
"""That a pair must tell to be drawn, but for the first."""

MOST_OF_ONE = 2
"""Pairs of one column: three columns that say the same would fill the section."""

MOST_COLUMNS = 60
"""Columns whose pairs are compared; of wider tables, the first so many."""

PARTS = 10
"""Parts of equal share into which numbers are cut for the mutual information."""

CELLS = 36
"""Bins of each axis of a picture."""

BARS = 12


@dataclass(frozen=True)
class Pair:
    """Two columns: how much one tells of the other, and where both lie.

    real_nats, drawn_nats: Their mutual information, in the table and in samples.
    axes: That of the first, across, and that of the second, upwards.
    real, drawn: Shares of cells among rows that have both values, shape (across, up).
    """

    names: tuple[str, str]
    real_nats: float
    drawn_nats: float
    axes: tuple[Axis | Split, Axis | Split]
    real: Numbers
    drawn: Numbers


@dataclass(frozen=True)
class Dependence:
    """The pairs that tell most, and what all pairs tell.

    names: The columns that were compared.
    real, drawn: Mutual information of every pair of them, in nats, shape (D, D).
    total: How many columns are modelled.
    """

    pairs: tuple[Pair, ...]
    names: tuple[str, ...]
    real: Numbers
    drawn: Numbers
    total: int

    @property
    def farthest(self) -> tuple[str, str]:
        """The pair whose mutual information differs most between the table and samples."""
        i, j = np.triu_indices(len(self.names), 1)
        k = int(np.abs(self.real[i, j] - self.drawn[i, j]).argmax())
        return self.names[i[k]], self.names[j[k]]


def measured(subject: Subject) -> Dependence:
    """Returns the pairs with the greatest mutual information in the rows of the table."""
    frame = subject.rows.frame
    columns = [c for c in subject.columns if not frame.columns[c.name].missing.all()]
    some = columns[:MOST_COLUMNS]
    if len(some) < 2:
        raise CannotSay("A pair needs two columns with values, and the model has fewer.")
    rules = [_Parts.of(column, frame.columns[column.name]) for column in some]
    nats = [_information(some, rules, rows) for rows in (frame, subject.drawn)]
    ranked = sorted(combinations(range(len(some)), 2), key=lambda ij: -nats[0][ij])
    drawn = subject.drawn
    pairs = []
    for i, j in _varied([pair for pair in ranked if nats[0][pair] > LEAST_NATS] or ranked[:1]):
        chosen = some[i], some[j]
        both = tuple(split.axis(c, frame.columns[c.name], CELLS, BARS) for c in chosen)
        cells = [_cells(both, chosen, rows) for rows in (frame, drawn)]
        told = float(nats[0][i, j]), float(nats[1][i, j])
        pairs.append(Pair((some[i].name, some[j].name), *told, (both[0], both[1]), *cells))
    names = tuple(column.name for column in some)
    return Dependence(tuple(pairs), names, nats[0], nats[1], len(subject.columns))


def _varied(ranked: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the first pairs in which no column occurs too often."""
    used: Counter[int] = Counter()
    found: list[tuple[int, int]] = []
    for pair in ranked:
        if len(found) < MOST_PAIRS and all(used[i] < MOST_OF_ONE for i in pair):
            used.update(pair)
            found.append(pair)
    return found


@dataclass(frozen=True)
class _Parts:
    """Cuts a column into few parts: by quantiles of the table's rows, or by values."""

    column: Column
    bars: axes.Axis | None
    cuts: Numbers

    @classmethod
    def of(cls, column: Column, values: Values) -> _Parts:
        axis = axes.axis(column, values, bars=BARS)
        if isinstance(axis, axes.Bars):
            return cls(column, axis, np.empty(0))
        known = axes.plain(column, values)[~values.missing]
        levels = np.arange(1, PARTS) / PARTS
        cuts = np.unique(np.quantile(known, levels, method="inverted_cdf"))
        return cls(column, None, cuts)

    def parts(self, values: Values) -> Places:
        """Returns the part of each value; missing ones have the first."""
        if self.bars is not None:
            return self.bars.bins(values) + 1
        found = np.searchsorted(self.cuts, axes.plain(self.column, values), side="left") + 1
        return np.where(values.missing, 0, found).astype(np.int64)


def _information(columns: list[Column], rules: list[_Parts], frame: Frame) -> Numbers:
    parts = [rule.parts(frame.columns[c.name]) for c, rule in zip(columns, rules, strict=True)]
    found = np.zeros((len(parts), len(parts)))
    for i, j in combinations(range(len(parts)), 2):
        found[i, j] = found[j, i] = mutual_information(parts[i], parts[j])
    return found


def mutual_information(a: Places, b: Places) -> float:
    """Returns the mutual information of two columns of parts in nats, less its bias.

    The bias of counts is about (cells − rows − columns + 1) / 2n (Miller and Madow), counting
    those that occur; what is left is not below zero.
    """
    n = len(a)
    width = int(b.max()) + 1
    joint = np.bincount(a * width + b).astype(np.float64)
    entropies = [_entropy(c, n) for c in (np.bincount(a), np.bincount(b), joint)]
    used = [int((c > 0).sum()) for c in (np.bincount(a), np.bincount(b), joint)]
    bias = (used[2] - used[0] - used[1] + 1) / (2 * n)
    return max(0.0, entropies[0] + entropies[1] - entropies[2] - bias)


def _entropy(counts: NDArray[np.number], n: int) -> float:
    share = counts[counts > 0] / n
    return float(-(share * np.log(share)).sum())


def _cells(both: tuple[Axis | Split, ...], columns: tuple[Column, ...], frame: Frame) -> Numbers:
    first, second = (
        axis.bins(frame.columns[column.name]) for axis, column in zip(both, columns, strict=True)
    )
    inside = (first != axes.NOWHERE) & (second != axes.NOWHERE)
    shape = len(both[0]), len(both[1])
    at = first[inside] * shape[1] + second[inside]
    counts = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)
    found: Numbers = counts / max(1, int(inside.sum()))
    return found
