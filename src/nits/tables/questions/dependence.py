"""How much columns tell of one another: the mutual information of every pair, from draws.

With the values of each column in cells of about equal shares, and a cell for holes, the mutual
information of a pair of columns is that of its table of counts, less the bias (a − 1)(b − 1) / 2n
that counts of n independent draws have with a and b cells.

Given the rest, columns tell of one another what no other column tells: the mean over rows of

    log p(x) + log p(x without i and j) − log p(x without i) − log p(x without j),           (41)

where columns that are left out are integrated out by particles; the joint density is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits import checks
from nits.tables.questions import rows
from nits.tables.questions.cloud import members, walked
from nits.tables.questions.query import Query

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

CELLS = 24
"""Cells of a column at most."""

DRAWS, DRAWS_GIVEN_REST = 20_000, 256
"""Rows that are drawn."""

PARTICLES = 128
"""Particles by which columns of a row are left out."""


class Dependence(NamedTuple):
    """The mutual information of every pair of columns.

    names: The columns.
    information: In nats, shape (D, D), symmetric, 0 on the diagonal.
    error: Its standard error, shape (D, D); if it is not given the rest, about that of columns
        that are independent.
    """

    names: list[str]
    information: NDArray[np.float64]
    error: NDArray[np.float64]

    def __repr__(self) -> str:
        told = ", ".join(f"{a} and {b}: {nats:.3g}" for a, b, nats in self.pairs(5))
        return f"<mutual information of {len(self.names)} columns in nats; {told or 'no pair'}>"

    def pairs(self, count: int = 10) -> list[tuple[str, str, float]]:
        """Returns the pairs that tell most of one another, the first of them first."""
        rows, columns = np.triu_indices(len(self.names), 1)
        order = np.argsort(-self.information[rows, columns], kind="stable")[:count]
        places = zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        return [(self.names[i], self.names[j], float(self.information[i, j])) for i, j in places]

    def plot(self, ax: Any = None) -> Any:
        """Draws the matrix; returns the axes."""
        if ax is None:
            from matplotlib.figure import Figure

            side = 2 + 0.35 * len(self.names)
            ax = Figure(figsize=(side + 1, side), layout="constrained").subplots()
        image = ax.imshow(self.information, cmap="Blues", vmin=0)
        places = np.arange(len(self.names))
        ax.set_xticks(places, self.names, rotation=90)
        ax.set_yticks(places, self.names)
        ax.figure.colorbar(image, ax=ax, label="nats")
        return ax


def found(answer: Answer, draws: int, seed: int) -> Dependence:
    """Returns the mutual information of every pair of columns of an answer."""
    checks.positive("draws", draws)
    with torch.no_grad():
        drawn = rows.drawn(answer.estimator, answer.query, draws, seed)
    numbers, tails = (part.double().numpy() for part in drawn)
    laws = answer.query.laws
    cells = [_cells(numbers[:, i] + np.nan_to_num(tails[:, i])) for i in range(len(laws))]
    d = len(laws)
    information, error = np.zeros((d, d)), np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            information[i, j], error[i, j] = _of_pair(cells[i], cells[j])
    names = [law.column.name for law in laws]
    return Dependence(names, information + information.T, error + error.T)


def given_rest(answer: Answer, draws: int, seed: int) -> Dependence:
    """Returns what each pair of columns tells of one another given all others, equation (41)."""
    checks.positive("draws", draws)
    with torch.no_grad():
        numbers = rows.drawn(answer.estimator, answer.query, draws, seed).numbers
    base = answer.query.take(torch.zeros(draws, dtype=torch.long))
    whole = replace(
        base,
        numbers=numbers.to(base.numbers),
        given=torch.ones_like(base.given),
        fixed=torch.zeros_like(base.fixed),
        log_prob=torch.zeros_like(base.log_prob),
    )
    names = [law.column.name for law in base.laws]
    free = [i for i in range(len(names)) if not bool(base.given[0, i])]
    joint = _without(answer, whole, (), seed)
    lone = {i: _without(answer, whole, (i,), seed) for i in free}
    information, error = np.zeros((2, len(names), len(names)))
    for i in free:
        for j in free:
            if j < i:
                each = joint + _without(answer, whole, (i, j), seed) - lone[i] - lone[j]
                information[i, j] = max(0.0, float(each.mean()))
                error[i, j] = float(each.std()) / np.sqrt(draws)
    return Dependence(names, information + information.T, error + error.T)


def _without(
    answer: Answer, whole: Query, left_out: Sequence[int], seed: int
) -> NDArray[np.float64]:
    """Returns log-densities of rows with some columns integrated out, shape (N,)."""
    density = answer.estimator.model_
    given = whole.given.clone()
    given[:, list(left_out)] = False
    question = replace(whole, given=given)
    size = max(1, min(member.stepped_at_once for _, member in members(density)) // PARTICLES)
    parts = []
    with torch.no_grad():
        for start in range(0, question.rows, size):
            some = question.take(slice(start, start + size))
            cloud = walked(density, some, seed, total=PARTICLES, batches=1)
            parts.append(cloud.log_evidence()[:, 0])
    return torch.cat(parts).numpy()


def _cells(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the cell of each value: few values have one each, others share them evenly."""
    distinct, place = np.unique(x, return_inverse=True)
    if len(distinct) <= CELLS:
        return place.astype(np.int64)
    edges = np.unique(np.quantile(x, np.arange(1, CELLS) / CELLS, method="higher"))
    return np.searchsorted(edges, x, side="right").astype(np.int64)


def _of_pair(a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[float, float]:
    """Returns the mutual information of two columns' cells, and how far chance may move it."""
    n, rows, columns = len(a), int(a.max()) + 1, int(b.max()) + 1
    share = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns) / n
    apart = share.sum(1, keepdims=True) * share.sum(0)
    told = share > 0
    whole = float((share[told] * np.log(share[told] / apart[told])).sum())
    free = (rows - 1) * (columns - 1)
    return max(0.0, whole - free / (2 * n)), float(np.sqrt(free / 2) / n)
