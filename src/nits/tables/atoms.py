"""Values of a column that deserve a probability of their own beside a smooth model: zeros, caps, spikes.

A value is an atom if the smooth model, fitted without it, expects so much fewer rows at it that naming
the value and its share is worth the words: the log-likelihood gained exceeds log(recordable values in the
range), for saying which one it is, and ½ log n, for its share.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nits.tables.views import Counts, Numbers, View

Mask = NDArray[np.bool_]

SEVERAL = 3
"""Rows that an atom has at least: two may agree by chance."""

MOST_ATOMS = 64
"""Atoms of a column: as many logits more than the 96 numbers that the smooth model takes are a burden."""

LEFT = 3
"""Distinct values that are left to the smooth model."""

PROBED = 512
"""Values at which the fit of the smooth model is judged."""


def find(view: View, counts: Counts, log_cells: Numbers) -> Mask:
    """Returns which of the distinct values are atoms, shape (K,).

    log_cells: Logarithm of how many values could have been recorded, by the resolution at each.
    """
    price = 0.5 * math.log(max(int(counts.sum()), 2)) + log_cells
    none = np.zeros(len(counts), bool)
    able = np.flatnonzero(counts >= SEVERAL)
    if not len(able) or len(counts) <= LEFT:
        return none
    frequent = able[np.argsort(-counts[able], kind="stable")][:MOST_ATOMS]
    chosen = max(_nested(frequent, len(counts)), key=lambda set_: _worth(view, counts, set_, price))
    for _ in range(3):
        chosen, before = _justified(view, counts, chosen, price), chosen
        if np.array_equal(chosen, before):
            break
    return chosen if _worth(view, counts, chosen, price) > _worth(view, counts, none, price) else none


def _nested(frequent: NDArray[np.intp], size: int) -> list[Mask]:
    """Returns the sets of the 0, 1, 2, 4, … most frequent values that leave some to the smooth model."""
    sizes = [0] + [2**i for i in range(7)]
    found = []
    for wanted in sizes:
        if wanted <= min(len(frequent), size - LEFT):
            found.append(np.zeros(size, bool))
            found[-1][frequent[:wanted]] = True
    return found


def _justified(view: View, counts: Counts, atoms: Mask, price: Numbers) -> Mask:
    """Returns the values that are worth being atoms, given the smooth model without the present ones."""
    able = np.flatnonzero(counts >= SEVERAL)
    model = view.fit(counts, (counts > 0) & ~atoms)
    expected = math.log(counts[~atoms].sum()) + view.log_prob(model, able)
    gain = _gain(counts[able], expected) - price[able]
    best = np.argsort(-gain, kind="stable")[:MOST_ATOMS]
    found = np.zeros(len(counts), bool)
    found[able[best[gain[best] > 0]]] = True
    return found if np.count_nonzero(~found) >= LEFT else atoms


def _gain(rows: Counts, log_expected: Numbers) -> Numbers:
    """Returns the nats gained by naming values that have more rows than expected; −inf if they have not."""
    deviance = rows * (np.log(rows) - log_expected) - rows + np.exp(np.minimum(log_expected, 300))
    return np.where(np.log(rows) > log_expected, deviance, -np.inf)


def _worth(view: View, counts: Counts, atoms: Mask, price: Numbers) -> float:
    """Returns the log-likelihood with these atoms less the price of naming them."""
    n, others = int(counts.sum()), np.flatnonzero((counts > 0) & ~atoms)
    rest = int(counts[others].sum())
    model = view.fit(counts, (counts > 0) & ~atoms)
    probe = others[:: max(1, len(others) // PROBED)]
    weights = counts[probe] * (rest / counts[probe].sum())
    worth = float(weights @ (view.log_prob(model, probe) + math.log(rest / n)))
    if not atoms.any():
        return worth
    rows, smooth = counts[atoms], view.log_prob(model, np.flatnonzero(atoms))
    own = rows @ np.logaddexp(np.log(rows / n), math.log(rest / n) + smooth)
    return worth + float(own - price[atoms].sum())
