"""Learning-rate schedules: the factor of the rate at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """A learning-rate schedule: a factor between 0 and 1."""

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns the factor at a step, when a share `progress` of the budget is used up.

        validation: The validation log-likelihoods of all evaluations so far that count, those
            after twice the warm-up, which is what a schedule has in its attribute `warmup`.
        """


@dataclass(frozen=True)
class Cosine:
    """Linear warm-up, then half a cosine down to `floor` at the end of the budget.

    warmup: Steps of the warm-up.

    >>> import nits
    >>> nits.Cosine(warmup=10).factor(step=500, progress=0.5, validation=[])
    0.5
    """

    warmup: int = 100
    floor: float = 0.0

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns floor + (1 − floor) (1 + cos π p) / 2, and less during warm-up."""
        cosine = (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0))) / 2
        return min(1.0, (step + 1) / self.warmup) * (self.floor + (1 - self.floor) * cosine)


@dataclass(frozen=True)
class Constant:
    """Linear warm-up, then the same rate to the end.

    warmup: Steps of the warm-up.

    >>> import nits
    >>> nits.Constant(warmup=10).factor(step=4, progress=0.1, validation=[])
    0.5
    """

    warmup: int = 100

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns 1, and less during warm-up."""
        return min(1.0, (step + 1) / self.warmup)


@dataclass(frozen=True)
class Plateau:
    """Linear warm-up, then the rate times `cut` whenever validation has stalled.

    warmup: Steps of the warm-up.
    patience: Evaluations in a row without a better validation likelihood before a cut.

    >>> import nits
    >>> nits.Plateau(patience=2).factor(step=500, progress=0.5, validation=[1.0, 0.9, 0.9])
    0.5
    """

    warmup: int = 100
    cut: float = 0.5
    patience: int = 3

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns `cut` to the power of the number of stalls, and less during warm-up."""
        best = -math.inf
        waited = cuts = 0
        for value in validation:
            waited = 0 if value > best else waited + 1
            best = max(best, value)
            if waited >= self.patience:
                cuts += 1
                waited = 0
        return float(min(1.0, (step + 1) / self.warmup) * self.cut**cuts)
