"""The optimizers a recipe can name: how the weights move, and their average with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from nits import places
from nits.training.muon import MuonAdamW
from nits.training.schedule_free import ScheduleFreeAdamW
from nits.training.schedules import Constant, Cosine, Schedule

Parameters = Sequence[nn.Parameter]


class Optimizer(ABC):
    """Makes torch's optimizer for a run, and moves the average of the weights after its steps."""

    @abstractmethod
    def schedule(self) -> Schedule:
        """Returns the schedule for recipes that name none."""

    @abstractmethod
    def build(
        self, parameters: Parameters, averages: Parameters, *, rate: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """Returns the optimizer of the parameters.

        averages: Parameters of a second model, equal to the first ones; they hold the average.
        """

    @abstractmethod
    def move_average(self, averages: Parameters, parameters: Parameters, decay: float) -> None:
        """Moves the averages after a step, unless the optimizer has done so itself."""


@dataclass(frozen=True)
class AdamW(Optimizer):
    """AdamW after a cosine, with an exponential moving average of the weights.

    >>> import nits
    >>> nits.Recipe(optimizer=nits.AdamW(), average=0.99).optimizer.schedule()
    Cosine(warmup=100, floor=0.0)
    """

    def schedule(self) -> Schedule:
        """Returns a cosine that ends with the budget."""
        return Cosine()

    def build(
        self, parameters: Parameters, averages: Parameters, *, rate: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """Returns torch's AdamW, in one kernel where the device has one; only matrices decay."""
        places.ready_for_torch()
        fused = parameters[0].device.type in ("cpu", "cuda")
        groups = [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW([g for g in groups if g["params"]], lr=rate, fused=fused)

    def move_average(self, averages: Parameters, parameters: Parameters, decay: float) -> None:
        """Sets the averages to decay · averages + (1 − decay) · parameters."""
        with torch.no_grad():
            get_ema_multi_avg_fn(decay)(list(averages), list(parameters), None)


@dataclass(frozen=True)
class Muon(AdamW):
    """Steps of matrices in which all directions count alike, see `nits.training.muon`.

    Weights that are no matrix, or a narrow one, follow `AdamW`; rate, cosine and average are as
    there. It needs fewer steps, of which each costs some matrix products more.

    >>> import nits
    >>> nits.Recipe(optimizer=nits.Muon()).optimizer.schedule()
    Cosine(warmup=100, floor=0.0)
    """

    def build(
        self, parameters: Parameters, averages: Parameters, *, rate: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """Returns the optimizer of `nits.training.muon`."""
        places.ready_for_torch()
        return MuonAdamW(parameters, lr=rate, weight_decay=weight_decay)


@dataclass(frozen=True)
class ScheduleFree(Optimizer):
    """AdamW at a constant rate, with an average that needs no end of training to be planned for.

    It wants about twice the learning rate of `AdamW`; `Recipe.average` is not used.

    >>> import nits
    >>> nits.ScheduleFree().schedule()
    Constant(warmup=100)
    """

    def schedule(self) -> Schedule:
        """Returns a constant rate after the warm-up."""
        return Constant()

    def build(
        self, parameters: Parameters, averages: Parameters, *, rate: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """Returns the optimizer of `nits.training.schedule_free`, which moves the averages too."""
        places.ready_for_torch()
        return ScheduleFreeAdamW(parameters, averages, lr=rate, weight_decay=weight_decay)

    def move_average(self, averages: Parameters, parameters: Parameters, decay: float) -> None:
        """Does nothing: the optimizer's step has moved the averages."""
