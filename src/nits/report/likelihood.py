"""The section about log-likelihoods: the model beside a Gaussian and independent columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.report.gaussian import Gaussian
from nits.report.subject import Subject, by_rows
from nits.tables import networks
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.columns.numeric import Numeric
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows

Numbers = NDArray[np.float64]

FOLDS = 2
LEAST_ROWS = 20
"""Rows from which a Gaussian and independent columns are learned."""


@dataclass(frozen=True)
class Figure:
    """A mean of rows in nats, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, said: Numbers) -> Figure:
        """Returns the mean of log-densities; those of impossible rows are left out."""
        finite = said[np.isfinite(said)]
        if not len(finite):
            return cls(float("nan"), float("nan"))
        return cls(float(finite.mean()), float(finite.std() / len(finite) ** 0.5))


@dataclass(frozen=True)
class OfColumn:
    """What one column adds to the log-density of a row, under each of three models."""

    name: str
    model: Figure
    gaussian: Figure | None
    independent: Figure | None

    @property
    def gain(self) -> float | None:
        """What the columns before tell of this one: the model less the independent column."""
        return None if self.independent is None else self.model.mean - self.independent.mean


@dataclass(frozen=True)
class Likelihood:
    """Log-densities of rows, in nats and in the table's units.

    held_out, held_out_error: Of rows that training held out, as the model file has them.
    sorts: The members that were tried, by weight.
    model, gaussian, independent: Of the rows of the report; the simple two learned from `taught`.
    ahead_of_gaussian, ahead_of_independent: By how much the model is ahead, row by row.
    taught: What the simple two learned from, in words.
    impossible: Rows that the model rules out.
    unseen: Rows with something that was never seen in training.
    """

    held_out: float | None
    held_out_error: float | None
    sorts: tuple[dict[str, Any], ...]
    model: Figure
    gaussian: Figure | None
    independent: Figure | None
    ahead_of_gaussian: Figure | None
    ahead_of_independent: Figure | None
    columns: tuple[OfColumn, ...]
    taught: str
    impossible: int
    unseen: int


def measured(subject: Subject) -> Likelihood:
    """Scores the rows with the model, and with two simple ones that learned from other rows."""
    shares, coded, model = subject.shares, subject.coded, subject.model
    simple, taught = _simple(subject)
    columns = []
    for j, name in enumerate(model.schema_.names):
        of = [_figure(None if s is None else s[:, j]) for s in simple]
        columns.append(OfColumn(name, Figure.of(shares[:, j]), of[0], of[1]))
    total = shares.sum(1)
    gaussian, independent = (None if s is None else s.sum(1) for s in simple)
    return Likelihood(
        model.held_out_,
        model.held_out_error_,
        tuple(sorted(model.sorts_, key=lambda sort: -sort["weight"])),
        Figure.of(total),
        gaussian=_figure(gaussian),
        independent=_figure(independent),
        ahead_of_gaussian=None if gaussian is None else Figure.of(total - gaussian),
        ahead_of_independent=None if independent is None else Figure.of(total - independent),
        columns=tuple(columns),
        taught=taught,
        impossible=int((~np.isfinite(total)).sum()),
        unseen=int(coded.unseen.any(1).sum()),
    )


def _figure(said: Numbers | None) -> Figure | None:
    return None if said is None else Figure.of(said)


def _simple(subject: Subject) -> tuple[list[Numbers | None], str]:
    """Returns each entry's log-density under a Gaussian and under independent columns."""
    rows = subject.rows
    source = len(subject.table) if subject.held_out else len(rows) // FOLDS
    if source < LEAST_ROWS:
        return [None, None], f"not computed: {source} rows are too few to learn them from"
    numbers = subject.coded.numbers
    found = [np.zeros(numbers.shape), np.zeros(numbers.shape)]
    for learned, scored in _folds(subject):
        for into, said in zip(found, _two(subject, learned, numbers[scored]), strict=True):
            into[scored] = said
    units = [subject.coded.units(said, _beyond(subject)) for said in found]
    if subject.held_out:
        return list(units), f"learned from {subject.table.words} of the training table"
    return list(units), (
        f"each half of these {len(rows):,} rows scored by what was learned from the other half"
    )


def _beyond(subject: Subject) -> Numbers:
    """Returns log-probabilities of lying beyond an end that are alike in all rows."""
    found = np.zeros(subject.coded.side.shape)
    for i, column in enumerate(subject.columns):
        if isinstance(column, Numeric):
            for side in (LOWER, UPPER):
                share = column.known * (column.ruler.law(side).share or 1.0)
                found[subject.coded.side[:, i] == side, i] = np.log(share)
    return found


def _folds(subject: Subject) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Yields numbers to learn from, and the positions of the rows to score."""
    numbers = subject.coded.numbers
    every = np.arange(len(numbers))
    if subject.held_out:
        yield subject.model.schema_.numbers(subject.table.frame)[0], every
        return
    fold = np.random.default_rng(subject.seed).permutation(len(numbers)) % FOLDS
    for k in range(FOLDS):
        yield numbers[fold != k], every[fold == k]


def _two(
    subject: Subject, learned: NDArray[np.float32], scored: NDArray[np.float32]
) -> tuple[Numbers, Numbers]:
    """Returns log-probabilities of numbers, shape (N, D), under both simple models."""
    sketch = subject.model.sketch_
    heads = sketch.heads(networks.SIMPLE_PNN, 0)
    order = list(range(len(heads))) if sketch.order is None else [int(i) for i in sketch.order]
    gaussian = Gaussian([heads[i] for i in order]).fit(learned[:, order].astype(np.float64))
    said = gaussian.log_prob_per_column(scored[:, order].astype(np.float64))
    alone = networks.simple(sketch._replace(given=()), networks.INDEPENDENT)
    start_from_data(alone, Rows(torch.from_numpy(learned), None, None))
    return said[:, np.argsort(order)], by_rows(alone.eval().log_prob_per_column, scored, None)
