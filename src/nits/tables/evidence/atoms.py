"""Values that deserve a probability of their own beside a smooth model: zeros, caps, spikes.

A value is an atom if the smooth model, fitted without it, expects so much fewer rows at it that
naming the value and its share is worth the words: the log-likelihood gained exceeds
log(recordable values in the range), for saying which one it is, and ½ log n, for its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence.smooth import UNITS
from nits.tables.evidence.views import FARTHEST, Counts, Numbers, Places, View

Mask = NDArray[np.bool_]

SEVERAL = 4
"""Rows that an atom has at least: of sixty rounded values, two or three agree by chance."""

MOST_ATOMS = 64
"""Atoms of a column: logits beside the 95 numbers of the smooth model; more are a burden."""

ROUNDS = 3
"""Times that atoms are reconsidered, given the smooth model that the last ones left."""

LEFT = 3
"""Distinct values that are left to the smooth model."""

PROBED = 512
"""Values at which the fit of the smooth model is judged."""


def find(view: View, counts: Counts, log_cells: Numbers) -> Mask:
    """Returns which of the distinct values are atoms, shape (K,).

    log_cells: Logarithm of how many values could have been recorded, by the resolution at each.
    """
    able = np.flatnonzero(counts >= SEVERAL)
    if not len(able) or len(counts) <= LEFT:
        return np.zeros(len(counts), bool)
    price = 0.5 * math.log(int(counts.sum())) + log_cells
    search = _Search(view, counts, price, able[np.argsort(-counts[able], kind="stable")])
    sets = [np.zeros(len(counts), bool)]
    for start in search.starts():
        sets.append(start)
        for _ in range(ROUNDS):
            sets.append(search.justified(sets[-1]))
            if np.array_equal(sets[-1], sets[-2]):
                break
    return search.best(sets) if np.any(sets) else sets[0]


@dataclass(frozen=True)
class _Search:
    """able: Places of the values that can be atoms, the most frequent first."""

    view: View
    counts: Counts
    price: Numbers
    able: Places

    def starts(self) -> list[Mask]:
        """Returns sets to begin with: none, and the best of the 1, 2, 4, … most frequent values.

        The latter only if one value has half a logistic for itself, and so hides its excess.
        """
        none = np.zeros(len(self.counts), bool)
        most = min(len(self.able), MOST_ATOMS, len(self.counts) - LEFT)
        if most < 1 or 2 * UNITS * int(self.counts.max()) <= int(self.counts.sum()):
            return [none]
        sizes = [2**i for i in range(7) if 2**i <= most]
        every = np.arange(len(self.counts))
        return [none, self.best([np.isin(every, self.able[:size]) for size in sizes])]

    def best(self, sets: list[Mask]) -> Mask:
        """Returns the set of atoms that is worth most; they are compared at the same values."""
        at, weight = self._probe(np.flatnonzero(np.any(sets, axis=0)))
        return max(sets, key=lambda atoms: self._worth(atoms, at, weight))

    def justified(self, atoms: Mask) -> Mask:
        """Returns the values worth being atoms, given the smooth model without the present ones."""
        model = self.view.fit(self.counts, (self.counts > 0) & ~atoms)
        rest = math.log(self.counts[~atoms].sum())
        gain = _gain(self.counts[self.able], rest + self.view.log_prob(model, self.able))
        gain -= self.price[self.able]
        best = np.argsort(-gain, kind="stable")[:MOST_ATOMS]
        found = np.zeros(len(atoms), bool)
        found[self.able[best[gain[best] > 0]]] = True
        return found if np.count_nonzero(~found) >= LEFT else atoms

    def _worth(self, atoms: Mask, at: Places, weight: Numbers) -> float:
        """Returns the log-likelihood with these atoms less the price of naming them."""
        n, rest = int(self.counts.sum()), int(self.counts[~atoms].sum())
        model = self.view.fit(self.counts, (self.counts > 0) & ~atoms)
        own = np.where(atoms, self.counts, 0)[at] / n
        with np.errstate(divide="ignore"):
            log = np.logaddexp(np.log(own), math.log(rest / n) + self.view.log_prob(model, at))
        return float(weight @ np.maximum(log, -FARTHEST) - self.price[atoms].sum())

    def _probe(self, frequent: Places) -> tuple[Places, Numbers]:
        """Returns places at which fits are judged, the frequent and some others, and weights."""
        others = np.setdiff1d(np.flatnonzero(self.counts), frequent)
        some = others[:: max(1, len(others) // PROBED)]
        scale = self.counts[others].sum() / max(int(self.counts[some].sum()), 1)
        at = np.concatenate([frequent, some])
        return at, self.counts[at] * np.repeat([1.0, scale], [len(frequent), len(some)])


def _gain(rows: Counts, log_expected: Numbers) -> Numbers:
    """Returns the nats gained by naming values with more rows than expected, −inf for others."""
    deviance = rows * (np.log(rows) - log_expected) - rows + np.exp(np.minimum(log_expected, 300))
    return np.where(np.log(rows) > log_expected, deviance, -np.inf)
