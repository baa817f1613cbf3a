"""AdamW with an average in place of a schedule, so that the end of training need not be planned.

With a rate γ, weights z that take the steps, their average x, and the gradient g taken at a point y
between the two (Defazio et al., 2024, "The Road Less Scheduled"):

    y = (1 − β) z + β x
    z ← z − γ (g(y) / √v + decay · y)
    x ← (1 − c) x + c z,    c = γ² / Σ γ²

The parameters of the model are y, and x is the result of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

TOWARDS_AVERAGE = 0.9
"""β."""

MEMORY = 0.999
"""Decay of v, the moving average of g²."""

SMALLEST = 1e-8
"""Added to √v."""


class ScheduleFreeAdamW(torch.optim.Optimizer):
    """Steps parameters y, and keeps the average x in the parameters of another model.

    parameters, averages: Of the two models, which are equal to begin with.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        averages: Sequence[nn.Parameter],
        lr: float,
        weight_decay: float,
    ) -> None:
        super().__init__(list(parameters), {"lr": lr, "weight_decay": weight_decay})
        self.parameters = list(parameters)
        self.averages = list(averages)
        for p in self.parameters:
            self.state[p] = {
                "z": p.detach().clone(),
                "square": torch.zeros_like(p),
                # Loading a state converts all of it to the dtype of p, so counts have it too.
                "steps": torch.zeros((), dtype=p.dtype),
                "rates": torch.zeros((), dtype=p.dtype),
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Takes a step with the gradients, which are overwritten."""
        (group,) = self.param_groups
        rate = float(group["lr"])
        for p in self.parameters:
            self.state[p]["steps"] += 1
            self.state[p]["rates"] += rate**2
        first = self.state[self.parameters[0]]
        rates = float(first["rates"])
        z = self._of("z")
        direction = self._direction(float(first["steps"]), group["weight_decay"])
        torch._foreach_add_(z, direction, alpha=-rate)
        averages: list[Tensor] = list(self.averages)
        torch._foreach_lerp_(averages, z, rate**2 / rates if rates else 1.0)
        y: list[Tensor] = list(self.parameters)
        torch._foreach_copy_(y, averages)
        torch._foreach_lerp_(y, z, 1 - TOWARDS_AVERAGE)

    def _direction(self, steps: float, decay: float) -> list[Tensor]:
        """Returns g / √v + decay · y."""
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        square = self._of("square")
        torch._foreach_mul_(square, MEMORY)
        torch._foreach_addcmul_(square, grads, grads, value=1 - MEMORY)
        root = torch._foreach_div(square, 1 - MEMORY**steps)
        torch._foreach_sqrt_(root)
        torch._foreach_add_(root, SMALLEST)
        torch._foreach_div_(grads, root)
        if decay:
            torch._foreach_add_(grads, list(self.parameters), alpha=decay)
        return grads

    def _of(self, name: str) -> list[Tensor]:
        return [self.state[p][name] for p in self.parameters]
