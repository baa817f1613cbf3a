"""The independent model: PNN weights that depend on no column."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nits.pnn.random import Seeded, seeded
from nits.weights.weight_model import WeightModel


class Independent(WeightModel):
    """One PNN for each column, the paper's first multi-dimensional model: θ is a parameter.

    inputs, outputs, context: See `WeightModel`; neither columns nor a context are read.
    generator: What θ is drawn from, or its seed; torch's global generator by default.

    >>> import nits
    >>> head = nits.heads.Categorical(3)
    >>> weights = nits.weights.Independent([head.inputs] * 2, [head.weights] * 2)
    >>> nits.NITS([head, head], weights).sample(4).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        context: int = 0,
        *,
        generator: Seeded = None,
    ) -> None:
        super().__init__(inputs, outputs, context)
        theta = torch.empty(sum(self.outputs)).normal_(std=0.1, generator=seeded(generator))
        self.theta = nn.Parameter(theta)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns θ, shape (Σ outputs, 1), which broadcasts over the rows."""
        return self.theta.unsqueeze(1)

    def stepper(self, n: int, context: Tensor | None = None) -> IndependentStepper:
        """Starts the evaluation column by column."""
        return IndependentStepper(self)

    def start_at(self, theta: Tensor) -> None:
        """Sets θ."""
        with torch.no_grad():
            self.theta.copy_(theta)


class IndependentStepper:
    """Returns the weights of one column after another."""

    def __init__(self, model: Independent) -> None:
        self.parts = model.theta.detach().unsqueeze(1).split(model.outputs)
        self.position = 0

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, 1)."""
        theta: Tensor = self.parts[self.position]
        return theta

    def feed(self, features: Tensor) -> None:
        """Takes a column, which nothing depends on."""
        self.position += 1
