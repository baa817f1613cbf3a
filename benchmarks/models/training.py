"""Training of the rivals that are torch modules, with AdamW, after a schedule or without."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from models.fitted import (
    OPTIMIZERS,
    VALIDATION_ROWS,
    Clock,
    Fitted,
    Rows,
    Settings,
    Values,
    chunks,
    taken,
)
from models.loop import SCORED_AT_ONCE, Loop, Recipe
from nits.datasets import Split
from nits.training import memory, subnormal

LogProb = Callable[[nn.Module, Tensor], Tensor]


class TorchLoop(Loop):
    """A loop over a module."""

    def __init__(
        self, model: nn.Module, log_prob: LogProb, train: Rows, recipe: Recipe, seed: int
    ) -> None:
        super().__init__(train, recipe, seed)
        self.model, self.log_prob = model, log_prob
        self.average = copy.deepcopy(model).eval()
        self.weights, self.averages = list(model.parameters()), list(self.average.parameters())
        self.method = OPTIMIZERS[recipe.optimizer]
        self.optimizer = self.method.build(
            self.weights,
            self.averages,
            rate=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
        )
        self.best_state = self.average.state_dict()

    def take(self, rows: Rows, rate: float, decay: float) -> bool:
        """Takes one step, unless its loss or gradient is not finite."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = -self.log_prob(self.model, torch.from_numpy(rows)).mean()
        loss.backward()
        norm = clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        if not (math.isfinite(float(loss.detach())) and math.isfinite(float(norm))):
            return False
        self.optimizer.step()
        self.method.move_average(self.averages, self.weights, decay)
        return True

    def mean(self, rows: Rows) -> float:
        """Returns the mean nats of rows under the averaged weights."""
        return float(score(self.average, self.log_prob, rows).mean())

    def keep(self) -> None:
        """Keeps the averaged weights as the best so far."""
        self.best_state = copy.deepcopy(self.average.state_dict())


def score(model: nn.Module, log_prob: LogProb, rows: Rows) -> Values:
    """Returns the nats of rows."""
    with torch.no_grad():
        parts = [log_prob(model, torch.from_numpy(part)) for part in chunks(rows, SCORED_AT_ONCE)]
    return torch.cat(parts).double().numpy()


def train(
    model: nn.Module, log_prob: LogProb, split: Split, settings: Settings, clock: Clock, seed: int
) -> Fitted:
    """Trains a rival's module within the clock; what is left in it is the best average."""
    loop = TorchLoop(model, log_prob, split.train, taken(Recipe, settings), seed)
    with memory.kept(), subnormal.flushed():
        loop.run(np.array(split.validation[:VALIDATION_ROWS]), clock)
    model.load_state_dict(loop.best_state)
    model.eval()
    return Fitted(
        log_prob=lambda rows: score(model, log_prob, rows),
        parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        epochs=loop.step / loop.per_epoch,
        steps=loop.step,
        seconds=clock.seconds,
        history=loop.history,
    )
