"""The one loop that trains rivals: `nits.fit` in all that is not the model's own.

The same schedule over the minutes, clipped gradients, looks at validation, averaged weights, and
choice of the best average. `TorchLoop` runs it over a torch module.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import get_ema_multi_avg_fn

from models.fitted import VALIDATION_ROWS, Clock, Fitted, Points, Settings, Values, score
from nits.datasets import Split
from nits.training import memory, subnormal
from nits.training.recipe import SCHEDULE_FREE, Constant, Cosine
from nits.training.schedule_free import ScheduleFree

LOOKS = 25
"""Looks at validation during a run, as in `nits.fit`."""

MAX_SKIPPED = 50

Build = Callable[[int, Settings], nn.Module]
LogProb = Callable[[nn.Module, Tensor], Tensor]


class Loop(ABC):
    """The state of one training run, whatever the model is written in."""

    def __init__(self, train: Points, settings: Settings, seed: int) -> None:
        self.train, self.settings = train, settings
        self.batch = min(settings["batch_size"], len(train))
        self.per_epoch = max(1, len(train) // self.batch)
        self.rng = np.random.default_rng(seed)
        self.free = settings["optimizer"] == SCHEDULE_FREE
        self.schedule = (Constant if self.free else Cosine)(settings["warmup"])
        self.step = self.skipped = 0
        self.best = -math.inf
        self.history: list[tuple[float, float]] = []

    @abstractmethod
    def take(self, rows: Points, rate: float, decay: float) -> bool:
        """Takes one step, moves the average by 1 − decay, and says whether all was finite."""

    @abstractmethod
    def score(self, rows: Points) -> Values:
        """Returns the nats of rows under the averaged weights."""

    @abstractmethod
    def keep(self) -> None:
        """Keeps the averaged weights as the best so far."""

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
        rate = self.settings["learning_rate"] * self.schedule.factor(self.step, progress, [])
        rows = self._next_batch()
        self.step += 1
        decay = min(self.settings["average"], self.step / (self.step + 10))
        self.skipped = 0 if self.take(rows, rate, decay) else self.skipped + 1
        if self.skipped >= MAX_SKIPPED:
            raise RuntimeError(
                f"{self.skipped} steps in a row were not finite; lower the learning rate."
            )

    def _next_batch(self) -> Points:
        position = self.step % self.per_epoch
        if position == 0:
            self.order = self.rng.permutation(len(self.train))
        return self.train[self.order[position * self.batch : (position + 1) * self.batch]]

    def look(self, validation: Points, clock: Clock) -> None:
        """Looks at validation, and keeps the averaged weights if they are the best so far."""
        value = float(self.score(validation).mean())
        self.history.append((clock.seconds, value))
        if value > self.best:
            self.best = value
            self.keep()

    def fitted(self, log_prob: Callable[[Points], Values], parameters: int, clock: Clock) -> Fitted:
        """Returns what came of the run."""
        epochs = self.step / self.per_epoch
        return Fitted(log_prob, parameters, epochs, self.step, clock.seconds, self.history)


class TorchLoop(Loop):
    """The loop over a torch module."""

    def __init__(
        self, model: nn.Module, log_prob: LogProb, train: Points, settings: Settings, seed: int
    ) -> None:
        super().__init__(train, settings, seed)
        self.model, self.log_prob = model, log_prob
        self.average = copy.deepcopy(model).eval()
        self.weights, self.averages = list(model.parameters()), list(self.average.parameters())
        self.optimizer = self._optimizer()
        self.best_state = self.average.state_dict()

    def _optimizer(self) -> torch.optim.Optimizer:
        rate, decay = self.settings["learning_rate"], self.settings["weight_decay"]
        if self.free:
            return ScheduleFree(self.weights, self.averages, lr=rate, weight_decay=decay)
        return torch.optim.AdamW(self.weights, lr=rate, weight_decay=decay, fused=True)

    def take(self, rows: Points, rate: float, decay: float) -> bool:
        """Takes one step, unless its loss or gradient is not finite."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = -self.log_prob(self.model, torch.from_numpy(rows)).mean()
        loss.backward()
        norm = clip_grad_norm_(self.weights, self.settings["clip"])
        if not (math.isfinite(float(loss.detach())) and math.isfinite(float(norm))):
            return False
        self.optimizer.step()
        if not self.free:  # schedule-free AdamW keeps the average itself
            with torch.no_grad():
                get_ema_multi_avg_fn(decay)(self.averages, self.weights, None)
        return True

    def score(self, rows: Points) -> Values:
        """Returns the nats of rows under the averaged weights."""
        return score(partial(self.log_prob, self.average), rows)

    def keep(self) -> None:
        """Keeps the averaged weights as the best so far."""
        self.best_state = copy.deepcopy(self.average.state_dict())


def train(
    build: Build, log_prob: LogProb, split: Split, settings: Settings, minutes: float, seed: int
) -> Fitted:
    """Builds and trains a rival's module; what is left in it is the best average."""
    clock = Clock(minutes)
    torch.manual_seed(seed)
    model = build(split.train.shape[1], settings)
    loop = TorchLoop(model, log_prob, split.train, settings, seed)
    with memory.kept(), subnormal.flushed():
        loop.run(np.array(split.validation[:VALIDATION_ROWS]), clock)
    model.load_state_dict(loop.best_state)
    model.eval()
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return loop.fitted(partial(score, partial(log_prob, model)), parameters, clock)
