"""Ways to train that the recipe's search tried beside `nits.fit`: Muon, and a batch that grows."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from models.fitted import Rows
from nits import NITS, Recipe
from nits.training import memory, subnormal
from nits.training.history import History
from nits.training.loop import Loop
from nits.training.progress import Bar
from nits.training.recipe import Budget
from nits.training.rows import Rows as TrainingRows
from nits.training.rows import checked, inside, shuffled
from nits.weights import MaskedMLP
from nits.weights.block_linear import BlockLinear

GROWTH = 4
"""How many times larger the batch is at the end than at the start; half-way it is the recipe's."""

MOMENTUM = 0.95
"""Muon's."""


class WithMuon(Loop):
    """Muon (Jordan et al., 2024) for the inner matrices, in steps as large as AdamW's; AdamW for the rest."""

    def prepare(self, compile_: bool | None, resume: Any) -> None:
        """Replaces the optimizer."""
        super().prepare(compile_, resume)
        inner = cast(MaskedMLP, self.model.weights).inner
        layers = [layer for layer in inner if isinstance(layer, BlockLinear)]
        rest = [p for p in self.parameters if all(p is not layer.weight for layer in layers)]
        self.optimizer = Muon(rest, layers, self.recipe)


class Muon(AdamW):
    """AdamW, and beside it steps of the layers' matrices along orthogonalized momenta, masked.

    torch.optim.Muon orthogonalizes in bfloat16, which not every processor has, and knows no masks.
    """

    def __init__(self, rest: list[nn.Parameter], layers: list[BlockLinear], recipe: Recipe) -> None:
        super().__init__(
            rest, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.layers = layers
        self.momenta = [torch.zeros_like(layer.weight) for layer in layers]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients."""
        super().zero_grad(set_to_none)
        for layer in self.layers:
            layer.weight.grad = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Takes a step."""
        super().step(closure)
        rate = self.param_groups[0]["lr"]
        for layer, momentum in zip(self.layers, self.momenta, strict=True):
            if layer.weight.grad is not None:
                momentum.mul_(MOMENTUM).add_(layer.weight.grad)
                update = orthogonal(layer.weight.grad + MOMENTUM * momentum)
                size = 0.2 * max(update.shape) ** 0.5  # entries as large as AdamW's usually are
                layer.weight.add_(update.mul_(layer.mask), alpha=-rate * size)


def orthogonal(matrix: Tensor) -> Tensor:
    """Returns about the nearest matrix whose singular values are one, by Newton–Schulz steps."""
    if matrix.shape[0] > matrix.shape[1]:
        return orthogonal(matrix.t()).t()
    x: Tensor = matrix / matrix.norm().clamp_min(1e-7)
    for _ in range(5):
        square = x @ x.t()
        x = 3.4445 * x + (2.0315 * square @ square - 4.775 * square) @ x
    return x


class Growing(Loop):
    """A batch that grows as the budget is used up, the recipe's size in the middle."""

    read, size, begun = 0, 0, 0

    def advance(self, progress: float) -> None:
        """Takes one step with as many rows as there are to be now."""
        self.size = int(self.batch * GROWTH ** (progress - 0.5))
        super().advance(progress)

    def _next_batch(self) -> Any:
        if not len(self.order) or self.begun + self.size > len(self.order):
            self.order, self.begun = (
                shuffled(len(self.train), self.seed, self.read // len(self.train)),
                0,
            )
        index = self.order[self.begun : self.begun + self.size]
        self.begun, self.read = self.begun + self.size, self.read + self.size
        return self.train.take(index, self.model.like)

    def evaluate(self, seconds: float) -> None:
        """Counts the rows that were read."""
        super().evaluate(seconds)
        self.history.epoch[-1] = self.read / len(self.train)


VARIANTS: dict[str, type[Loop]] = {  # by what the settings call the optimizer
    "muon": WithMuon,
    "adamw, growing batch": Growing,
}


def fit(
    variant: str, model: NITS, data: tuple[Rows, Rows], recipe: Recipe, minutes: float, seed: int
) -> History:
    """Trains as `nits.fit` does by the clock, on training and validation rows; without checkpoints."""
    train, held_out = (within(model, checked(model, TrainingRows(rows))) for rows in data)
    with Bar() as reporter, memory.kept(), subnormal.flushed():
        loop = VARIANTS[variant](model, train, held_out, recipe, Budget(max_minutes=minutes), seed)
        loop.prepare(None, None)
        loop.run(reporter, None, math.inf)
        loop.finish()
    return loop.history


def within(model: NITS, rows: TrainingRows) -> TrainingRows:
    """Leaves out the rows outside the support."""
    possible = inside(model, rows)
    return rows if possible.all() else rows.subset(possible.nonzero().flatten())
