"""The rivals' training loop: AdamW, warm-up and cosine over the minutes, averaged weights, gradient clipping.

It follows `nits.fit` in all that is not the model's own: the same schedule, looks at validation, average and
choice of the best average.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import get_ema_multi_avg_fn

from models.fitted import LOOKS, VALIDATION_ROWS, Clock, Fitted, Rows, Settings, Values, chunks, taken
from nits import memory, subnormal
from nits.datasets import Split
from nits.schedules import Cosine

LogProb = Callable[[nn.Module, Tensor], Tensor]

SCORED_AT_ONCE = 4096
MAX_SKIPPED = 50


@dataclass(frozen=True)
class Recipe:
    """The numbers of a training run."""

    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: int
    average: float
    clip: float


class Loop:
    """The state of one training run."""

    def __init__(self, model: nn.Module, log_prob: LogProb, train: Rows, recipe: Recipe, seed: int) -> None:
        self.model, self.log_prob, self.train, self.recipe = model, log_prob, train, recipe
        self.batch = min(recipe.batch_size, len(train))
        self.per_epoch = max(1, len(train) // self.batch)
        self.rng = np.random.default_rng(seed)
        self.average = copy.deepcopy(model).eval()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.schedule = Cosine(recipe.warmup)
        self.step = self.skipped = 0
        self.best, self.best_state = -math.inf, self.average.state_dict()
        self.history: list[tuple[float, float]] = []

    def run(self, validation: Rows, clock: Clock) -> None:
        """Trains until the clock is up, at least for one step, and puts the best average into the model."""
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
        self.model.load_state_dict(self.best_state)
        self.model.eval()

    def advance(self, progress: float) -> None:
        """Takes one step; one whose loss or gradient is not finite is skipped."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * self.schedule.factor(self.step, progress, [])
        self.optimizer.zero_grad(set_to_none=True)
        loss = -self.log_prob(self.model, self._next_batch()).mean()
        loss.backward()
        norm = clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.step += 1
        if math.isfinite(float(loss.detach())) and math.isfinite(float(norm)):
            self.skipped = 0
            self.optimizer.step()
            self._average()
            return
        self.skipped += 1
        if self.skipped >= MAX_SKIPPED:
            raise RuntimeError(f"{self.skipped} steps in a row were not finite; lower the learning rate.")

    def _next_batch(self) -> Tensor:
        position = self.step % self.per_epoch
        if position == 0:
            self.order = self.rng.permutation(len(self.train))
        index = self.order[position * self.batch : (position + 1) * self.batch]
        return torch.from_numpy(self.train[index])

    def _average(self) -> None:
        decay = min(self.recipe.average, self.step / (self.step + 10))
        with torch.no_grad():
            get_ema_multi_avg_fn(decay)(list(self.average.parameters()), list(self.model.parameters()), None)

    def look(self, validation: Rows, clock: Clock) -> None:
        """Looks at validation with the averaged weights, and keeps them if they are the best so far."""
        value = float(score(self.average, self.log_prob, validation).mean())
        self.history.append((clock.seconds, value))
        if value > self.best:
            self.best = value
            self.best_state = copy.deepcopy(self.average.state_dict())


def score(model: nn.Module, log_prob: LogProb, rows: Rows) -> Values:
    """Returns the nats of rows."""
    with torch.no_grad():
        parts = [log_prob(model, torch.from_numpy(part)) for part in chunks(rows, SCORED_AT_ONCE)]
    return torch.cat(parts).double().numpy()


def train(
    model: nn.Module, log_prob: LogProb, split: Split, settings: Settings, clock: Clock, seed: int
) -> Fitted:
    """Trains a rival's module within the clock."""
    loop = Loop(model, log_prob, split.train, taken(Recipe, settings), seed)
    with memory.kept(), subnormal.flushed():
        loop.run(np.array(split.validation[:VALIDATION_ROWS]), clock)
    return Fitted(
        log_prob=lambda rows: score(model, log_prob, rows),
        parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        epochs=loop.step / loop.per_epoch,
        steps=loop.step,
        seconds=clock.seconds,
        history=loop.history,
    )
