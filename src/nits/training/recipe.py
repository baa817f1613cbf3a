"""How training runs: the recipe's numbers and the learning-rate schedules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

ADAMW, SCHEDULE_FREE = "adamw", "schedule-free"
"""Optimizers, by what a recipe calls them."""


class Schedule(Protocol):
    """A learning-rate schedule: a factor between 0 and 1."""

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns the factor at a step, when a share `progress` of the budget is used up.

        validation: Validation log-likelihoods so far, best last if all goes well.
        """


@dataclass(frozen=True)
class Cosine:
    """Linear warm-up over the first steps, then half a cosine down to `floor` at the end of the budget."""

    warmup: int = 100
    floor: float = 0.0

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns floor + (1 − floor) (1 + cos π p) / 2, and less during warm-up."""
        cosine = (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0))) / 2
        return min(1.0, (step + 1) / self.warmup) * (self.floor + (1 - self.floor) * cosine)


@dataclass(frozen=True)
class Constant:
    """Linear warm-up over the first steps, then the same rate to the end."""

    warmup: int = 100

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns 1, and less during warm-up."""
        return min(1.0, (step + 1) / self.warmup)


@dataclass(frozen=True)
class Plateau:
    """Linear warm-up, then a cut by `cut` whenever `patience` evaluations brought no better validation."""

    warmup: int = 100
    cut: float = 0.5
    patience: int = 3

    def factor(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns cut to the power of how often validation stalled, and less during warm-up."""
        best, waited, cuts = -math.inf, 0, 0
        for value in validation:
            waited = 0 if value > best else waited + 1
            best = max(best, value)
            if waited >= self.patience:
                cuts, waited = cuts + 1, 0
        return float(min(1.0, (step + 1) / self.warmup) * self.cut**cuts)


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training run; the defaults are what reached a given likelihood soonest.

    batch_size: Rows per step; all of them if there are fewer.
    learning_rate: The peak of the schedule; "schedule-free" wants about twice as much as "adamw".
    weight_decay: AdamW's.
    optimizer: "adamw", or "schedule-free": with an average of its own, so that it need not know when training
        ends.
    schedule: `Cosine`, `Constant` or `Plateau`, or anything with their method; by default the
    first, with
        "schedule-free" the second.
    average: For "adamw", decay per step of the weights' average, which is what `fit` returns; 0 for
        none.
    clip: Largest norm of the gradient.
    patience: Evaluations without a better validation likelihood before training stops early.
    start_from_data: Whether the weights start where each column follows its own distribution.
    hide: Share of the entries of optional columns that later columns are not told at a step, so
        that they learn to do without.
    """

    batch_size: int = 1024
    learning_rate: float = 3e-3
    weight_decay: float = 1e-5
    optimizer: str = ADAMW
    schedule: Schedule | None = None
    average: float = 0.999
    clip: float = 5.0
    patience: int = 10
    start_from_data: bool = True
    hide: float = 0.0

    def __post_init__(self) -> None:
        if self.optimizer not in (ADAMW, SCHEDULE_FREE):
            raise ValueError(
                f"optimizer must be {ADAMW!r} or {SCHEDULE_FREE!r}, but is {self.optimizer!r}; take one."
            )
        if not 0 <= self.hide < 1:
            raise ValueError(f"hide must be a share in [0, 1), but is {self.hide!r}; 0.1 is usual.")

    def rate(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns the learning rate at a step; see `Schedule.factor`."""
        schedule = self.schedule or (Constant() if self.optimizer == SCHEDULE_FREE else Cosine())
        return self.learning_rate * schedule.factor(step, progress, validation)


@dataclass(frozen=True)
class Budget:
    """When training ends: after so many epochs, steps or minutes, whichever comes first."""

    max_epochs: int | None = None
    max_steps: int | None = None
    max_minutes: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_epochs", "max_steps", "max_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(
                    f"{name} must be positive, but is {value!r}; leave it out for no such limit."
                )

    def steps(self, per_epoch: int) -> int | None:
        """Returns the number of steps that epochs and steps allow; None if only minutes count."""
        limits = [self.max_steps] if self.max_steps is not None else []
        if self.max_epochs is not None:
            limits.append(self.max_epochs * per_epoch)
        return min(limits) if limits else None

    def progress(self, step: int, seconds: float, per_epoch: int) -> float:
        """Returns the share of the budget that is used up."""
        steps = self.steps(per_epoch)
        used = [step / steps] if steps is not None else []
        if self.max_minutes is not None:
            used.append(seconds / (60 * self.max_minutes))
        return max(used)
