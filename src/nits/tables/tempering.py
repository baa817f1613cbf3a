"""How much the columns before should tell about members, by rows that these have not seen.

Of each fold there is a mixture of the members that held it out. Its rows are scored with several
powers τ of `Tempered`, equation (48); the power under which they are likeliest is used, if powers
that were chosen by the other folds make the rows of each fold likelier than Bayes' rule does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.model.mixture import Mixture
from nits.model.tempered import Tempered
from nits.training.likelihood import SCORED_AT_ONCE
from nits.training.rows import Rows

Numbers = NDArray[np.float64]

POWERS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.0)
"""τ, of which the best is taken; the first is Bayes' rule."""

WORTH, ERRORS = 0.02, 2.0
"""Nats per row that a power must add, since draws and answers take longer with it, and of how many
standard errors."""

MOST = 5_000
"""Rows of a fold that are looked at."""


class Seen(NamedTuple):
    """Log-densities of rows that a mixture has not seen, shape (N, powers), and which they are."""

    which: NDArray[np.int64]
    scores: Numbers


class Found(NamedTuple):
    """A power, and what powers that other folds have chosen add to the rows that were looked at."""

    power: float
    which: NDArray[np.int64]
    gains: Numbers


def seen(members: Sequence[Density], shares: list[float], rows: Rows, index: torch.Tensor) -> Seen:
    """Scores some rows with each power, under members that held them out."""
    mixtures = [Tempered(members, shares, power).eval() for power in POWERS]
    index, found = index[:MOST], []
    with torch.no_grad():
        for batch in rows.view(index).batches(SCORED_AT_ONCE, mixtures[0].like):
            parts = [member.log_prob_per_column(batch.x, batch.context) for member in members]
            every = torch.stack(parts)
            found.append(torch.stack([mixture.mixed(every).sum(1) for mixture in mixtures], 1))
    return Seen(index.numpy(), torch.cat(found).double().numpy())


def found(parts: list[Seen], weight: Numbers | None) -> Found | None:
    """Returns the power, if it makes held-out rows likelier by enough; else None.

    weight: Of all rows.
    """
    if len(parts) == 1:  # halves stand in for folds
        (which, scores), half = parts[0], len(parts[0].which) // 2
        parts = [Seen(which[:half], scores[:half]), Seen(which[half:], scores[half:])]
    parts = [part for part in parts if len(part.which)]
    if len(parts) < 2:
        return None
    gains = [
        _gains(part, _best([other for other in parts if other is not part], weight))
        for part in parts
    ]
    which, gain = np.concatenate([part.which for part in parts]), np.concatenate(gains)
    best = _best(parts, weight)
    by_row = np.ones(len(which)) if weight is None else weight[which]
    share = by_row / by_row.sum()
    mean = float(share @ gain)
    error = float(np.sqrt(np.sum((share * (gain - mean)) ** 2)))
    if best == 0 or mean < max(WORTH, ERRORS * error):
        return None
    return Found(POWERS[best], which, gain)


def _gains(part: Seen, k: int) -> Numbers:
    """Returns by how much the power number k is ahead of Bayes' rule in each row."""
    with np.errstate(invalid="ignore"):  # rows that all members find impossible
        return np.nan_to_num(part.scores[:, k] - part.scores[:, 0])


def _best(parts: list[Seen], weight: Numbers | None) -> int:
    """Returns the number of the power that makes rows likeliest."""
    sums = np.zeros(len(POWERS))
    for part in parts:
        by_row = np.ones(len(part.which)) if weight is None else weight[part.which]
        sums += [by_row @ _gains(part, k) for k in range(len(POWERS))]
    return int(np.argmax(sums))


def mixture(members: Sequence[Density], shares: list[float], told: Found | None) -> Mixture:
    """Returns the members' mixture, tempered if there is a power."""
    return Mixture(members, shares) if told is None else Tempered(members, shares, told.power)
