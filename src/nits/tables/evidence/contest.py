"""Candidates compared by held-out scores: leads, ties, and who wins them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nits.tables.evidence.samples import Trial
from nits.tables.evidence.smooth import UNITS
from nits.tables.evidence.views import Numbers

NEGLIGIBLE = 0.01
"""Nats per row that no choice is made for: 32 logistics at quantiles miss as
much of a normal variable, so smaller differences tell of the smooth model, not of the column, and
training wins them back."""

CLIPPED = 10.0
"""Nats at which a row's difference enters the standard error: a row that one
candidate finds absurd is evidence, not noise."""

SMOOTH = 3 * UNITS - 1
"""Free numbers of the smooth model: centres, widths and weights."""

LISTED = SMOOTH + UNITS // 2
"""What ordered values count for: the smooth model over them, and as
16 atoms, since only a grid gives values that were never seen."""


@dataclass(frozen=True)
class Candidate:
    """One way to model a column.

    scores: Of the held-out values of all trials, in order.
    free: Numbers that a network has to give for each row.
    rank: Which comes first, if these are as many.
    made: What the candidate is made of.
    """

    name: str
    scores: Numbers
    free: int = SMOOTH
    rank: int = 0
    made: Any = None


class Contest:
    """Scores of all trials, weighted by the rows that the values stand for."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        rows = np.concatenate([trial.rows for trial in trials]).astype(np.float64)
        factor = np.concatenate([trial.factor for trial in trials])
        self._weight, self._variance = rows * factor, rows * factor**2

    def mean(self, scores: Numbers) -> float:
        """Returns nats per row."""
        return float(scores @ self._weight / self._weight.sum())

    def lead(self, scores: Numbers, other: Numbers) -> tuple[float, float]:
        """Returns by how many nats per row scores are better, and the standard error of that."""
        difference = scores - other
        noise = np.clip(difference, -CLIPPED, CLIPPED)
        noise = noise - self.mean(noise)
        error = math.sqrt(float(noise**2 @ self._variance)) / float(self._weight.sum())
        return self.mean(difference), error

    def tied(self, scores: Numbers, other: Numbers, errors: float = 1.0) -> bool:
        """Whether the lead over the other is within so many standard errors, or negligible."""
        lead, error = self.lead(scores, other)
        return lead <= max(errors * error, NEGLIGIBLE)

    def winner(self, candidates: Sequence[Candidate]) -> Candidate:
        """Returns the best candidate, or of those tied with it the one with fewest free numbers."""
        best = max(candidates, key=lambda one: self.mean(one.scores))
        tied = [one for one in candidates if self.tied(best.scores, one.scores)]
        return min(tied, key=lambda one: (one.free, one.rank))
