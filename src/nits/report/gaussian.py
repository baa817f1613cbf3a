"""A Gaussian of a table's columns on their own scales, to compare a model with.

Categories, missing and frequent values have their shares. Every other value is Gaussian on its
column's scale, given a straight line of the columns before; integers have the mass of their cell.
So its log-probabilities stand beside those of any model of the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_ndtr

from nits.heads import Atoms, Categorical, Cells, Inflated, Integer
from nits.heads.head import Head
from nits.pnn.cells import CurvedEdges

Numbers = NDArray[np.float64]
Edges = Callable[[Numbers], Numbers]

HALF = 0.5
"""A count that is added to each share."""

RIDGE = 1e-6
LEAST = 1e-4
"""The least standard deviation, of that of the column."""


@dataclass(frozen=True)
class _Rule:
    """How the numbers of a column are read.

    special: Numbers that have a share of their own; all that occur, if nothing else is left.
    edges: The place of steps on the scale, which need not be whole, if the column has cells.
    only_special: Whether the column has categories and nothing else.
    """

    special: tuple[float, ...]
    edges: Edges | None
    only_special: bool = False

    def at(self, numbers: Numbers) -> Numbers:
        """Returns the places of numbers on the scale."""
        return numbers if self.edges is None else self.edges(numbers)


def _rule(head: Head) -> _Rule:
    """Returns how a column with this head is read."""
    if isinstance(head, Inflated):
        inner = _rule(head.rest)
        return _Rule(head.values, inner.edges, inner.only_special)
    if isinstance(head, Atoms):
        return _Rule(head.values, None)
    if isinstance(head, Categorical):
        return _Rule((), None, only_special=True)
    if isinstance(head, Cells):
        edges = _curve(head.edges) if isinstance(head.edges, CurvedEdges) else None
        return _Rule((), edges, only_special=edges is None)
    return _Rule((), (lambda k: k) if isinstance(head, Integer) else None)


def _curve(edges: CurvedEdges) -> Edges:
    return lambda k: edges.curve.at(torch.from_numpy(k)).numpy()


class Gaussian:
    """Fits rows of numbers, shape (N, D), and gives log-probabilities of other rows.

    heads: What models the columns' numbers, which says which of them have a probability.
    """

    def __init__(self, heads: Sequence[Head]) -> None:
        self.rules = [_rule(head) for head in heads]

    def fit(self, numbers: Numbers) -> Gaussian:
        """Learns shares and straight lines; returns itself."""
        self.shares = [_shares(rule, x) for rule, x in zip(self.rules, numbers.T, strict=True)]
        self.centres = np.zeros(len(self.rules))
        self.widths = np.ones(len(self.rules))
        for j, rule in enumerate(self.rules):
            body = rule.at(numbers[self._body(numbers, j), j])
            body = body[np.isfinite(body)]
            if len(body):
                self.centres[j], self.widths[j] = body.mean(), body.std() or 1.0
        z = self._standard(numbers)
        self.lines = [self._line(z, j, self._body(numbers, j)) for j in range(len(self.rules))]
        return self

    def _body(self, numbers: Numbers, j: int) -> NDArray[np.bool_]:
        """Returns which entries of a column have neither a share nor a hole."""
        rule, x = self.rules[j], numbers[:, j]
        if rule.only_special:
            return np.zeros(len(x), bool)
        return ~np.isin(x.astype(np.float32), np.array(rule.special, np.float32)) & ~np.isnan(x)

    def _standard(self, numbers: Numbers) -> Numbers:
        """Returns what lines read: standardized places, 0 for everything that has a share."""
        z = np.zeros(numbers.shape)
        for j, rule in enumerate(self.rules):
            body = self._body(numbers, j)
            z[body, j] = (rule.at(numbers[body, j]) - self.centres[j]) / self.widths[j]
        return np.nan_to_num(np.clip(z, -50, 50))

    def _line(self, z: Numbers, j: int, body: NDArray[np.bool_]) -> tuple[Numbers, float]:
        """Returns the line of a column's places by those before it, and the deviation from it."""
        x, y = _with_one(z[body, :j]), z[body, j]
        if len(y) <= x.shape[1] + 1:
            return np.zeros(j + 1), 1.0
        normal = x.T @ x + RIDGE * len(y) * np.eye(x.shape[1])
        slope = np.linalg.solve(normal, x.T @ y)
        spare = len(y) - x.shape[1]
        return slope, max(LEAST, float(np.sqrt(((y - x @ slope) ** 2).sum() / spare)))

    def log_prob_per_column(self, numbers: Numbers) -> Numbers:
        """Returns the log-probability of each entry given those before it; 0 for NaN."""
        z = self._standard(numbers)
        found = np.zeros(numbers.shape)
        for j, (rule, (table, rest)) in enumerate(zip(self.rules, self.shares, strict=True)):
            body = self._body(numbers, j)
            own = ~body & ~np.isnan(numbers[:, j])
            listed = numbers[own, j].astype(np.float32).tolist()
            found[own, j] = np.log([table.get(value, table[None]) for value in listed])
            slope, spread = self.lines[j]
            middle = _with_one(z[body, :j]) @ slope
            found[body, j] = np.log(rest) + self._body_law(
                rule, numbers[body, j], j, middle, spread
            )
        return found

    def _body_law(self, rule: _Rule, x: Numbers, j: int, middle: Numbers, spread: float) -> Numbers:
        def distance(places: Numbers) -> Numbers:
            found: Numbers = ((places - self.centres[j]) / self.widths[j] - middle) / spread
            return found

        if rule.edges is not None:
            return _log_mass(*(distance(rule.edges(x + side)) for side in (-0.5, 0.5)))
        t = distance(x)
        found: Numbers = -t * t / 2 - np.log(np.sqrt(2 * np.pi) * spread * self.widths[j])
        return found


def _shares(rule: _Rule, x: Numbers) -> tuple[dict[float | None, float], float]:
    """Returns the shares of special numbers, under None that of any other; and that of the rest."""
    known = x[~np.isnan(x)].astype(np.float32)
    values, counts = np.unique(known, return_counts=True)
    special = np.isin(values, np.array(rule.special, np.float32)) | rule.only_special
    listed = dict(zip(values[special].tolist(), counts[special].tolist(), strict=True))
    total = len(known) + HALF * (len(listed) + 1)
    rest = len(known) - sum(listed.values()) + HALF
    table: dict[float | None, float] = {k: (c + HALF) / total for k, c in listed.items()}
    table[None] = HALF / total
    return table, rest / total


def _log_mass(low: Numbers, high: Numbers) -> Numbers:
    """Returns log(Φ(high) − Φ(low)), precise in both tails."""
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    upper, lower = log_ndtr(b), log_ndtr(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Numbers = upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))
    return np.where(np.isfinite(found), found, upper)


def _with_one(x: Numbers) -> Numbers:
    return np.concatenate([x, np.ones((len(x), 1))], 1)
