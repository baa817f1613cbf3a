"""A weight model with a norm before every layer, which the recipe's search tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nits import NITS
from nits.weights import MaskedMLP
from nits.weights.dropout import dropout
from nits.weights.mlp_stepper import MLPStepper

NORMALIZED = "relu, normalized"
"""What the settings call it."""

SMALLEST = 1e-6
"""Added to the mean square."""


class NormalizedMLP(MaskedMLP):
    """A `MaskedMLP` in which each unit is divided by the root mean square of the units that it may see.

    A layer norm would take all units of a layer together, and a column would see those after it.
    """

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        hidden: int,
        blocks: int,
        dropout: float,
    ) -> None:
        super().__init__(inputs, outputs, hidden=hidden, blocks=blocks, dropout=dropout)
        ranks, index = self.ranks.unique(return_inverse=True)
        seen = (self.ranks.unsqueeze(0) <= ranks.unsqueeze(1)).float()
        self.index = index
        self.register_buffer("shares", seen / seen.sum(1, keepdim=True), persistent=False)
        self.gains = nn.ParameterList(torch.ones(hidden, 1) for _ in range(blocks + 1))

    def norm(self, h: Tensor, gain: Tensor) -> Tensor:
        """Returns gain · h / √(mean of h² over the units of the same rank and below)."""
        means = cast(Tensor, self.shares) @ h.square() + SMALLEST
        return h * (gain * means.rsqrt()[self.index])

    def _active(self, features: Tensor, context: Tensor | None) -> Tensor:
        h = self.first(features)
        *gains, last = self.gains
        for narrow, wide, gain in zip(self.inner[::2], self.inner[1::2], gains, strict=True):
            active = narrow(self.norm(h, gain).relu()).relu()
            h = wide(dropout(active, self.dropout, self.training)) + h
        return self.norm(h, last).relu()

    def stepper(self, n: int, context: Tensor | None = None) -> MLPStepper:
        """Refuses: column by column the norms are not written, and without them samples would be wrong."""
        raise NotImplementedError("a model with norms can be trained and scored, not sampled from.")


def normalized(model: NITS) -> NITS:
    """Returns the model with norms in its weight model; it can be trained and scored, not sampled from."""
    old = cast(MaskedMLP, model.weights)
    size = {"hidden": len(old.ranks), "blocks": len(old.inner) // 2}
    model.weights = NormalizedMLP(old.inputs, old.outputs, **size, dropout=old.dropout)
    return model
