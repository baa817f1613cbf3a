"""How training runs: the recipe's numbers and the budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from nits import checks
from nits.training.optimizers import AdamW, Optimizer
from nits.training.schedules import Schedule


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training run; the defaults are what reached a given likelihood soonest.

    batch_size: Rows per step; all of them if there are fewer.
    learning_rate: The peak of the schedule; `ScheduleFree` wants about twice as much as `AdamW`.
    weight_decay: AdamW's.
    optimizer: `nits.AdamW()`, or `nits.ScheduleFree()`, which need not know when training ends.
    schedule: `Cosine`, `Constant` or `Plateau`, or anything with their method; by default the
        optimizer's own.
    average: For `AdamW`, decay per step of the average of the weights, which is what `fit` returns;
        0 for no average.
    clip: Largest norm of the gradient.
    patience: Evaluations without a better validation likelihood, during at least a quarter of the
        steps so far, after which training stops early; none during twice the warm-up counts.
    start_from_data: Whether the weights start where each column follows its own distribution.
    hide: Share of the entries of optional columns that are hidden from later columns at a step, so
        that these learn to do without them.
    parts: Parts of a batch whose gradients are taken in turn and added up: memory for one of them
        is enough, and the steps are those of as many ranks, bit for bit.
    precision: Of the inner layers of image networks while they learn: `torch.bfloat16`, which CPUs
        and GPUs with units for it multiply several times as fast, or by default that of the
        weights. Likelihoods that choose weights, and all that the model computes later, have full
        precision.

    >>> import nits
    >>> recipe = nits.Recipe(batch_size=256, optimizer=nits.ScheduleFree(), learning_rate=4e-3)
    >>> nits.Recipe(schedule=nits.Plateau(patience=2)).schedule.cut
    0.5
    """

    batch_size: int = 1024
    learning_rate: float = 3e-3
    weight_decay: float = 1e-5
    optimizer: Optimizer = field(default_factory=AdamW)
    schedule: Schedule | None = None
    average: float = 0.999
    clip: float = 5.0
    patience: int = 10
    start_from_data: bool = True
    hide: float = 0.0
    parts: int = 1
    precision: torch.dtype | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, Optimizer):
            raise TypeError(
                f"optimizer must be an object, but is {self.optimizer!r}; "
                "pass nits.AdamW() or nits.ScheduleFree()."
            )
        if not 0 <= self.hide < 1:
            raise ValueError(f"hide must be a share in [0, 1), but is {self.hide!r}; 0.1 is usual.")
        checks.positive("parts", self.parts)
        if self.precision not in (None, torch.bfloat16):
            raise ValueError(
                f"precision must be None or torch.bfloat16, but is {self.precision!r}; "
                "None is that of the weights."
            )

    def rate(self, step: int, progress: float, validation: list[float]) -> float:
        """Returns the learning rate at a step; see `Schedule.factor`."""
        return self.learning_rate * self._schedule.factor(step, progress, validation)

    @property
    def warmup(self) -> int:
        """Steps of the schedule's warm-up; 0 if it has none."""
        return int(getattr(self._schedule, "warmup", 0))

    @property
    def _schedule(self) -> Schedule:
        return self.schedule or self.optimizer.schedule()


@dataclass(frozen=True)
class Budget:
    """When training ends: at a number of epochs, steps or minutes, whichever comes first."""

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
