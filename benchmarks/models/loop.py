"""What training a rival is, whatever it is written in: `nits.fit` in all that is not the model's own.

The same schedule over the minutes, clipped gradients, looks at validation, averaged weights, and
choice of the best average.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from models.fitted import LOOKS, Clock, Rows
from nits.training.schedules import Constant, Cosine, Schedule

SCORED_AT_ONCE = 4096
MAX_SKIPPED = 50


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training run; schedule-free AdamW keeps the average itself."""

    optimizer: str
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: int
    average: float
    clip: float


class Loop(ABC):
    """The state of one training run."""

    def __init__(self, train: Rows, recipe: Recipe, seed: int) -> None:
        self.train, self.recipe = train, recipe
        self.batch = min(recipe.batch_size, len(train))
        self.per_epoch = max(1, len(train) // self.batch)
        self.rng = np.random.default_rng(seed)
        self.free = recipe.optimizer == "schedule-free"
        self.schedule: Schedule = Constant(recipe.warmup) if self.free else Cosine(recipe.warmup)
        self.step = self.skipped = 0
        self.best = -math.inf
        self.history: list[tuple[float, float]] = []

    @abstractmethod
    def take(self, rows: Rows, rate: float, decay: float) -> bool:
        """Takes one step at a learning rate, moves the average by 1 − decay, and says if all was finite."""

    @abstractmethod
    def mean(self, rows: Rows) -> float:
        """Returns the mean nats of rows under the averaged weights."""

    @abstractmethod
    def keep(self) -> None:
        """Keeps the averaged weights as the best so far."""

    def run(self, validation: Rows, clock: Clock) -> None:
        """Trains until the clock is up, at least for one step."""
        looked = clock.seconds
        every = max(2.0, 60 * clock.minutes / LOOKS)
        while True:
            self.advance(clock.progress)
            over = clock.progress >= 1
            if over or clock.seconds - looked > every:
                self.look(validation, clock)
                looked = clock.seconds
            if over:
                break

    def advance(self, progress: float) -> None:
        """Takes one step; one whose loss or gradient is not finite is skipped."""
        rate = self.recipe.learning_rate * self.schedule.factor(self.step, progress, [])
        rows = self._next_batch()
        self.step += 1
        decay = min(self.recipe.average, self.step / (self.step + 10))
        self.skipped = 0 if self.take(rows, rate, decay) else self.skipped + 1
        if self.skipped >= MAX_SKIPPED:
            raise RuntimeError(
                f"{self.skipped} steps in a row were not finite; lower the learning rate."
            )

    def _next_batch(self) -> Rows:
        position = self.step % self.per_epoch
        if position == 0:
            self.order = self.rng.permutation(len(self.train))
        index = self.order[position * self.batch : (position + 1) * self.batch]
        return self.train[index]

    def look(self, validation: Rows, clock: Clock) -> None:
        """Looks at validation with the averaged weights, and keeps them if they are the best so far."""
        value = self.mean(validation)
        self.history.append((clock.seconds, value))
        if value > self.best:
            self.best = value
            self.keep()
