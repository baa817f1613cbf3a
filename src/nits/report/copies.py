"""The section about copies: are samples nearer to training rows than other real rows are?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from nits.report.subject import CannotSay, Some, Subject
from nits.tables.columns import Column
from nits.tables.frames import Frame

Numbers = NDArray[np.float64]

ASKED = 1500
"""Rows of each sort whose nearest training row is looked for."""

LEAST_ROWS = 40
MOST_LEVELS = 60
"""Categories told apart; rarer ones count as one."""

SAME = 1e-6
"""A distance at which rows are equal in every column, to the precision of numbers."""

NEAR = 0.05
POINTS = 60
ALPHA = 0.05


@dataclass(frozen=True)
class Copies:
    """Distances to the nearest training row.

    reference: The rows to which distances are, in words.
    compared: The rows with which samples are compared, in words.
    rows: How many rows of each sort were asked.
    real, drawn: Quantiles of the distances of real rows and of samples, at `levels`.
    real_same, drawn_same: Shares of rows that equal a training row in all columns.
    near: A distance that about the share `NEAR` of the real rows do not exceed.
    real_near, drawn_near: The shares of real rows and of samples that do not exceed it.
    low, high: What chance allows for that of samples.
    """

    reference: str
    compared: str
    rows: int
    levels: Numbers
    real: Numbers
    drawn: Numbers
    real_same: float
    drawn_same: float
    near: float
    real_near: float
    drawn_near: float
    low: float
    high: float


def measured(subject: Subject) -> Copies:
    """Returns distances of samples and of real rows, which are others or leave themselves out."""
    reference = subject.table
    others = subject.rows if subject.held_out else reference
    n = min(len(others), len(subject.rows), ASKED)
    if n < LEAST_ROWS:
        raise CannotSay(
            f"Distances need at least {LEAST_ROWS} rows to compare with, and there are {n}."
        )
    source = np.random.default_rng(subject.seed)
    asked, some = (
        np.sort(source.choice(len(t), n, replace=False)) for t in (others, subject.drawn)
    )
    space = _Space.of([*subject.columns, *subject.given], reference.frame)
    points = space.points(reference.frame)
    apart = subject.held_out
    near_real = _nearest(points, space.points(others.frame.take(asked)), leave_out=not apart)
    near_drawn = _nearest(points, space.points(subject.drawn.take(some)))
    levels = np.linspace(0, 1, POINTS)
    near = float(np.quantile(near_real, NEAR))
    real_near = float((near_real <= near).mean())
    return Copies(
        _words(reference, subject),
        "held-out rows" if apart else "rows of the table, each compared with the others",
        n,
        levels,
        np.quantile(near_real, levels),
        np.quantile(near_drawn, levels),
        float((near_real <= SAME).mean()),
        float((near_drawn <= SAME).mean()),
        near,
        real_near,
        float((near_drawn <= near).mean()),
        *_allowed(n, real_near),
    )


def _allowed(n: int, share: float) -> tuple[float, float]:
    """Returns what chance allows for a share of n samples, where that of n rows is known."""
    spread = (share * (1 - share) / n) ** 0.5
    low, high = max(0.0, share - 2 * spread), min(1.0, share + 2 * spread)
    ends = binom.ppf(ALPHA / 2, n, low) / n, binom.ppf(1 - ALPHA / 2, n, high) / n
    return float(ends[0]), float(ends[1])


def _words(reference: Some, subject: Subject) -> str:
    return f"{reference.words} of the {'training table' if subject.held_out else 'table given'}"


@dataclass(frozen=True)
class _Space:
    """Rows as points: numbers in standard deviations on their scale, categories one apart."""

    columns: list[Column]
    centres: list[float]
    widths: list[float]
    levels: list[Numbers | None]

    @classmethod
    def of(cls, columns: list[Column], frame: Frame) -> _Space:
        centres, widths, levels = [], [], []
        for column in columns:
            numbers = _numbers(column, frame)
            known = numbers[np.isfinite(numbers)]
            centres.append(float(known.mean()) if len(known) else 0.0)
            widths.append(float(known.std()) or 1.0 if len(known) else 1.0)
            found, counts = np.unique(known, return_counts=True)
            listed = found[np.argsort(-counts)[:MOST_LEVELS]]
            levels.append(listed if column.kind == "categorical" else None)
        return cls(columns, centres, widths, levels)

    def points(self, frame: Frame) -> Numbers:
        """Returns rows as points of the space."""
        parts = []
        for j, column in enumerate(self.columns):
            numbers = _numbers(column, frame)
            listed = self.levels[j]
            if listed is not None:
                parts.append((numbers[:, None] == listed) / np.sqrt(2))
                parts.append(np.isnan(numbers)[:, None] / np.sqrt(2))
                continue
            missing = ~np.isfinite(numbers)
            z = np.where(missing, 0.0, (numbers - self.centres[j]) / self.widths[j])
            parts += [z[:, None], missing[:, None].astype(np.float64)]
        return np.concatenate(parts, 1)


def _numbers(column: Column, frame: Frame) -> Numbers:
    """Returns a column's numbers on its scale, NaN for missing and unseen ones."""
    values = frame.columns[column.name]
    coded = column.encode(values)
    hidden = coded.unseen | values.missing
    return np.where(hidden, np.nan, coded.numbers)


def _nearest(reference: Numbers, asked: Numbers, *, leave_out: bool = False) -> Numbers:
    """Returns the distance of each row asked to the nearest of the reference.

    leave_out: Whether the rows asked are among the reference; each leaves itself out.
    """
    from sklearn.neighbors import NearestNeighbors

    tree = NearestNeighbors(n_neighbors=2 if leave_out else 1).fit(reference)
    found: Numbers = tree.kneighbors(asked)[0][:, -1]
    return np.where(found <= SAME, 0.0, found)
