"""What a numeric column could be, and how probable each candidate finds values held out from it.

All log-probabilities are of the value at the column's resolution: masses for discrete candidates,
log density + log resolution for continuous ones. Values beyond the range of the training folds are
left to the tails, which all candidates share.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence import tails
from nits.tables.evidence.samples import Trial
from nits.tables.evidence.views import FARTHEST, Cells, Counts, Numbers, Places, View

STRENGTHS = (0.5, 2.0, 8.0, 32.0, np.inf)
"""Rows per value that the smooth model is worth against the counts, in ordered values."""

Mask = NDArray[np.bool_]


def smooth_scores(view: View, atoms: Mask, trials: list[Trial]) -> Numbers:
    """Returns held-out scores of a smooth model on a scale, with a mass of its own at each atom.

    However absurd the model finds a value, one row does not outweigh all others.
    """
    found = np.concatenate([_smooth(view, atoms, trial) for trial in trials])
    bounded: Numbers = np.maximum(found, -FARTHEST)
    return bounded


def _smooth(view: View, atoms: Mask, trial: Trial) -> Numbers:
    kept = (trial.train > 0) & ~atoms
    if kept.sum() < 2:
        kept = trial.train > 0
    model = view.fit(trial.train, kept)
    found = view.log_prob(model, trial.at)
    if not atoms.any():
        return found
    share = (trial.train[atoms] + 0.5) / (trial.total + 0.5 * (atoms.sum() + 1))
    own = np.zeros(len(atoms))
    own[atoms] = model.share * share
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(np.log(own[trial.at]), found + np.log1p(-share.sum()))
    return np.where(trial.outside, found, mixed)


def level_scores(beyond: Numbers, escape: Numbers, trials: list[Trial]) -> Numbers:
    """Returns held-out scores of categories with smoothed counts.

    beyond: Scores of values beyond the range, shape (T,) over all trials; others are not read.
    escape: Log-probability, given that it is new, of each distinct value, shape (K,).
    """
    flat = [np.zeros(len(trial.at)) for trial in trials]
    return _listed_scores(flat, 0.5, beyond, escape, trials)


def ordered_scores(beyond: Numbers, escape: Numbers, trials: list[Trial]) -> tuple[Numbers, float]:
    """Returns held-out scores of ordered values, and which strength of smoothing is best.

    beyond, escape: As for `level_scores`.
    """
    masses = [rank_masses(trial.train, trial.at) for trial in trials]
    weight = np.concatenate([trial.rows * trial.factor for trial in trials])
    found = [(_listed_scores(masses, s, beyond, escape, trials), s) for s in STRENGTHS]
    return max(found, key=lambda pair: float(pair[0] @ weight))


def rank_masses(counts: Counts, at: Places) -> Numbers:
    """Returns log-masses, at places, of a smooth model over the ranks of the values that occur.

    They are relative to even masses: 0 means one over the number of values.
    """
    seen = counts > 0
    size = int(np.count_nonzero(seen))
    # In units of a quarter of all ranks: the mixture expects points of ordinary size.
    edges: Numbers = (np.cumsum(seen) - 1).astype(np.float64) * (4 / size)
    view = Cells(edges, edges + 4 / size)
    model = view.fit(counts, seen)
    return view.log_prob(model, at) - math.log(model.share / size)


def blended(counts: Counts, masses: Numbers, strength: float, size: int, rows: int) -> Numbers:
    """Returns log-shares of some of the values of a list of this size, which has so many rows.

    counts: How many of the rows the values have.
    masses: Those of a smooth model, relative to even ones; they weigh as much as `strength` rows
        per value.
    """
    if np.isinf(strength):
        return masses - math.log(size)
    with np.errstate(divide="ignore"):
        weights: Numbers = np.log(counts + strength * np.exp(masses))
    return weights - math.log(rows + strength * size)


def _listed_scores(
    masses: list[Numbers], strength: float, beyond: Numbers, escape: Numbers, trials: list[Trial]
) -> Numbers:
    parts = [_listed(m, strength, escape, t) for m, t in zip(masses, trials, strict=True)]
    outside = np.concatenate([trial.outside for trial in trials])
    return np.where(outside, beyond, np.concatenate(parts))


def _listed(masses: Numbers, strength: float, escape: Numbers, trial: Trial) -> Numbers:
    """Returns scores of a list of values: 1/(n + 2) is left to values that are not in it."""
    n, seen = trial.total, trial.train > 0
    counts, size = trial.train[trial.at], int(np.count_nonzero(seen))
    known = blended(counts, masses, strength, size, n) + math.log1p(-1 / (n + 2))
    new = -math.log(n + 2) + escape[trial.at]
    return np.where(counts > 0, known, new) + math.log1p(-2 * tails.share(n))
