"""How much narrower or broader a mixture should be, by rows that its members have not seen.

Of each fold there is a mixture of the members that held it out. Where its distribution functions
have their values, the probabilities u, tells whether it is too broad: u should be even. The curves
of `Calibrated`, equation (31), are fitted to them, and used if curves that were fitted to the other
folds make the rows of each fold likelier.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.calibrated import BUMPS, Calibrated, Curve
from nits.model.density import Density
from nits.tables import stacking
from nits.training.likelihood import SCORED_AT_ONCE
from nits.training.rows import Rows

Numbers = NDArray[np.float64]

WORTH = 0.02
"""Nats per row that curves must add: with them scoring takes twice as long, and sampling longer."""

COMMON, OWN = 12.0, 40.0
"""Rows that a guess counts for: even probabilities for all columns together, and what these have
shown for each column."""

ENOUGH = 2
"""Networks of a fold, from which their mixture tells how broad the whole mixture is."""

MOST = 20_000
"""Rows of a fold that are looked at."""


class Seen(NamedTuple):
    """What held-out rows of a fold say of each bump in each column's curve.

    which: The rows.
    scores: Logarithms of the bumps' mean slopes, shape (N, D, m); zeros for columns without a
        curve.
    """

    which: NDArray[np.int64]
    scores: Numbers


class Found(NamedTuple):
    """The curves of all columns, and what they add.

    logits: Of the bumps, shape (D, m).
    which, gains: The rows that were looked at, and what curves of other folds add to each.
    """

    logits: torch.Tensor
    which: NDArray[np.int64]
    gains: Numbers


def seen(mixture: Density, rows: Rows, index: torch.Tensor, curved: list[bool]) -> Seen:
    """Returns what some rows say under a mixture that has not learned from them.

    curved: Which columns may have a curve.
    """
    index = index[:MOST]
    parts = []
    with torch.no_grad():
        for batch in rows.view(index).batches(SCORED_AT_ONCE, mixture.like):
            middle = mixture.to_uniform(batch.x, batch.context)
            log_p = mixture.log_prob_per_column(batch.x, batch.context)
            columns = zip(mixture.heads, batch.x.t(), middle.t(), log_p.t(), curved, strict=True)
            parts.append(torch.stack([_bumps(*column) for column in columns], 1))
    return Seen(index.numpy(), torch.cat(parts).numpy())


def _bumps(
    head: object, x: torch.Tensor, middle: torch.Tensor, log_p: torch.Tensor, curved: bool
) -> torch.Tensor:
    """Returns the logarithm of each bump's mean slope over a value's probabilities, (N, m)."""
    told = torch.isfinite(middle) & torch.isfinite(log_p)
    if not curved:
        return torch.zeros(len(x), BUMPS, dtype=torch.float64)
    mass = torch.where(head.has_mass(x) & told, log_p.exp(), 0.0)  # type: ignore[attr-defined]
    single = torch.eye(BUMPS, dtype=torch.float64)
    at = middle.masked_fill(~told, 0.5)
    found = torch.stack([Curve(one).log_slope(at.double(), mass) for one in single], 1)
    return found.masked_fill(~told.unsqueeze(1), 0.0)


def found(parts: list[Seen], weight: Numbers | None) -> Found | None:
    """Returns the curves, if they make held-out rows likelier by enough; else None.

    weight: Of all rows.
    """
    if not parts:
        return None
    if len(parts) == 1:  # halves stand in for folds
        which, scores = parts[0]
        half = len(which) // 2
        parts = [Seen(which[:half], scores[:half]), Seen(which[half:], scores[half:])]
    gains = []
    for k, part in enumerate(parts):
        others = [other for j, other in enumerate(parts) if j != k]
        gains.append(_gain(part, _fitted(others, weight)))
    index = np.concatenate([part.which for part in parts])
    by_row = np.concatenate(gains)
    shares = None if weight is None else weight[index]
    if not len(by_row) or np.average(by_row, weights=shares) < WORTH:
        return None
    return Found(torch.from_numpy(np.log(_fitted(parts, weight))), index, by_row)


def _fitted(parts: list[Seen], weight: Numbers | None) -> Numbers:
    """Returns the weights of the bumps of each column, shape (D, m)."""
    scores = np.concatenate([part.scores for part in parts])
    index = np.concatenate([part.which for part in parts])
    by_row = np.ones(len(index)) if weight is None else weight[index]
    by_row = by_row * (len(by_row) / max(by_row.sum(), 1e-300))
    even = np.full(BUMPS, 1 / BUMPS)
    curved = [d for d in range(scores.shape[1]) if scores[:, d].any()]
    whole = np.tile(even, (scores.shape[1], 1))
    if not curved:
        return whole
    every = np.concatenate([scores[:, d] for d in curved])
    common = stacking.guessed(every, np.tile(by_row, len(curved)), COMMON * even)
    for d in curved:
        whole[d] = stacking.guessed(scores[:, d], by_row, OWN * common)
    return whole


def _gain(part: Seen, weights: Numbers) -> Numbers:
    """Returns what curves add to the log-density of each row, shape (N,)."""
    curved = ~np.isclose(weights, weights[:, :1]).all(1)
    said = np.exp(part.scores[:, curved]) * weights[curved]
    return np.asarray(np.log(said.sum(2)).sum(1))


def calibrated(density: Density, found: Found | None) -> Density:
    """Returns the density with curves, if there are any."""
    return density if found is None else Calibrated(density, found.logits).eval()
