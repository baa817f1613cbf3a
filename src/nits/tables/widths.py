"""Curves of one number: as a normal law is narrower or broader than another.

Bumps of a curve, equation (31), tell apart what happens in each twelfth of the probabilities; few
rows tell that with large errors. How broad a law is, they tell better. If the normal scores of rows
have the standard deviation s, the curve that makes them even is u ↦ Φ(Φ⁻¹(u) / s).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.calibrated import BUMPS
from nits.model.curve import Curve
from nits.tables import stacking

Numbers = NDArray[np.float64]

WIDTHS = np.geomspace(0.25, 2.0, 43)
"""Standard deviations of normal scores, of which the likeliest is taken."""

NONE, OWN = 4.0, 40.0
"""Rows that a guess counts for: that nothing is to be changed, and what all columns together have
shown for each of them."""

LEVELS = 400
"""Quantiles of a normal law that stand for it."""


def bumps(middle: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    """Returns the logarithm of each bump's mean slope over a value's probabilities, (N, D, m)."""
    known = torch.isfinite(middle)
    at = middle.masked_fill(~known, 0.5), mass.masked_fill(~known, 0.0)
    single = torch.eye(BUMPS, dtype=torch.float64)
    found = torch.stack([Curve(one).log_slope(*at) for one in single], -1)
    return found.masked_fill(~known.unsqueeze(-1), 0.0)


@cache
def normal() -> Numbers:
    """Returns the likeliest weights of the bumps for scores of each width, shape (S, m)."""
    z = torch.special.ndtri((torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS)
    u = torch.special.ndtr(z.unsqueeze(1) * torch.from_numpy(WIDTHS))
    scores = bumps(u, torch.zeros_like(u)).numpy()
    none, count = np.full(BUMPS, 1e-3), np.ones(LEVELS)
    found = np.stack([stacking.guessed(one, count, none) for one in scores.swapaxes(0, 1)])
    found[np.isclose(WIDTHS, 1.0)] = 1 / BUMPS
    return found


def fitted(scores: Numbers, by_row: Numbers) -> Numbers:
    """Returns the weights of the bumps of each column with a width, shape (D, m).

    scores: What rows say of each bump in each column, shape (N, D, m).
    by_row: How often each row counts.
    """
    slopes = np.exp(scores)
    said = np.stack([by_row @ np.log(slopes @ weights) for weights in normal()], 1)
    rows = max(by_row.sum(), 1e-300) * len(said)
    guess = OWN / rows * said.sum(0) - NONE * np.log(WIDTHS) ** 2
    return np.asarray(normal()[(said + guess).argmax(1)])
