"""The one loop that trains rivals: `nits.fit` in all that is not the model's own.

The same schedule over the minutes, clipped gradients, looks at validation, averaged weights, and
choice of the best average.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import get_ema_multi_avg_fn

from models.fitted import VALIDATION_ROWS, Clock, Fitted, Points, Settings, score
from nits.datasets import Split
from nits.training import memory, subnormal
from nits.training.schedule_free import ScheduleFreeAdamW
from nits.training.schedules import Constant, Cosine

LOOKS = 25
"""Looks at validation during a run, as in `nits.fit`."""

MAX_SKIPPED = 50

Build = Callable[[int, Settings], nn.Module]
LogProb = Callable[[nn.Module, Tensor], Tensor]


class Loop:
    """The state of one training run."""

    def __init__(
        self, model: nn.Module, log_prob: LogProb, train: Points, settings: Settings, seed: int
    ) -> None:
        self.model, self.log_prob, self.train, self.settings = model, log_prob, train, settings
        self.batch = min(settings["batch_size"], len(train))
        self.per_epoch = max(1, len(train) // self.batch)
        self.rng = np.random.default_rng(seed)
        self.free = settings["optimizer"] == "schedule-free"
        self.schedule = (Constant if self.free else Cosine)(settings["warmup"])
        self.average = copy.deepcopy(model).eval()
        self.weights, self.averages = list(model.parameters()), list(self.average.parameters())
        self.optimizer = self._optimizer()
        self.step = self.skipped = 0
        self.best, self.best_state = -math.inf, self.average.state_dict()
        self.history: list[tuple[float, float]] = []

    def _optimizer(self) -> torch.optim.Optimizer:
        rate, decay = self.settings["learning_rate"], self.settings["weight_decay"]
        if self.free:
            return ScheduleFreeAdamW(self.weights, self.averages, lr=rate, weight_decay=decay)
        return torch.optim.AdamW(self.weights, lr=rate, weight_decay=decay, fused=True)

    def run(self, validation: Points, clock: Clock) -> None:
        """Trains until the clock is up, at least for one step."""
        looked, every = clock.seconds, max(2.0, 60 * clock.minutes / LOOKS)
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
        for group in self.optimizer.param_groups:
            factor = self.schedule.factor(self.step, progress, [])
            group["lr"] = self.settings["learning_rate"] * factor
        rows = self._next_batch()
        self.step += 1
        self.skipped = 0 if self._take(rows) else self.skipped + 1
        if self.skipped >= MAX_SKIPPED:
            raise RuntimeError(
                f"{self.skipped} steps in a row were not finite; lower the learning rate."
            )

    def _next_batch(self) -> Tensor:
        position = self.step % self.per_epoch
        if position == 0:
            self.order = self.rng.permutation(len(self.train))
        index = self.order[position * self.batch : (position + 1) * self.batch]
        return torch.from_numpy(self.train[index])

    def _take(self, rows: Tensor) -> bool:
        """Takes one step and moves the average, if all is finite, and returns whether it is."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = -self.log_prob(self.model, rows).mean()
        loss.backward()
        norm = clip_grad_norm_(self.weights, self.settings["clip"])
        if not (math.isfinite(float(loss.detach())) and math.isfinite(float(norm))):
            return False
        self.optimizer.step()
        if not self.free:  # schedule-free AdamW keeps the average itself
            decay = min(self.settings["average"], self.step / (self.step + 10))
            with torch.no_grad():
                get_ema_multi_avg_fn(decay)(self.averages, self.weights, None)
        return True

    def look(self, validation: Points, clock: Clock) -> None:
        """Looks at validation, and keeps the averaged weights if they are the best so far."""
        value = float(score(partial(self.log_prob, self.average), validation).mean())
        self.history.append((clock.seconds, value))
        if value > self.best:
            self.best, self.best_state = value, copy.deepcopy(self.average.state_dict())


def train(
    build: Build, log_prob: LogProb, split: Split, settings: Settings, minutes: float, seed: int
) -> Fitted:
    """Builds and trains a rival's module; what is left in it is the best average."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    model = build(split.train.shape[1], settings)
    loop = Loop(model, log_prob, split.train, settings, seed)
    with memory.kept(), subnormal.flushed():
        loop.run(np.array(split.validation[:VALIDATION_ROWS]), clock)
    model.load_state_dict(loop.best_state)
    model.eval()
    return Fitted(
        log_prob=partial(score, partial(log_prob, model)),
        parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        epochs=loop.step / loop.per_epoch,
        steps=loop.step,
        seconds=clock.seconds,
        history=loop.history,
    )
