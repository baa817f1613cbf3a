"""NITS-MLP's weight model: a masked residual MLP (ResMADE) with its units sorted by rank.

    θ_i = W(x_1 … x_{i−1}, context), of equation (15)

A hidden unit of rank r depends on the first r columns: it reads the features of those columns and
units of rank at most r. The weights θ of the column at position p, counted from 0, read units of
rank at most p. With units sorted by rank every mask is block lower-triangular, and `BlockLinear`
multiplies no block of zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.pnn.random import Seeded, seeded
from nits.weights import activations, masks
from nits.weights.activations import Activation
from nits.weights.block_linear import BlockLinear, dropout, relu_gain
from nits.weights.coded_linear import CodedLinear, last_layer
from nits.weights.mlp_stepper import MLPStepper
from nits.weights.weight_model import WeightModel


class MaskedMLP(WeightModel):
    """Residual blocks h ← h + W₂ a(W₁ a(h)), masked so that θ_i depends on x_1 … x_{i−1} only.

    inputs, outputs, context: See `WeightModel`.
    hidden: Units of each hidden layer.
    blocks: Residual blocks.
    dropout: Probability of dropping a unit inside a block.
    activation: The function a, elementwise: `torch.nn.functional.relu`, silu, gelu or any other.
        One that mixes units would let a column see those after it.
    codes: Numbers of each column from which its weights θ_i are linear, so that the last matrix is
        small for tables with many columns; by default θ_i is linear in the hidden units.
    generator: What initial weights are drawn from, or its seed; by default torch's global one.
    generators: What dropout draws from where the parameters are those of several networks.
    """

    generators: Sequence[torch.Generator] | None = None

    def __init__(  # noqa: PLR0913 - what the network has
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        context: int = 0,
        *,
        hidden: int = 512,
        blocks: int = 4,
        dropout: float = 0.0,
        activation: Activation = functional.relu,
        codes: int | None = None,
        generator: Seeded = None,
    ) -> None:
        super().__init__(inputs, outputs, context)
        source = seeded(generator)
        least = max(len(self.inputs) - (context == 0), 1)
        if hidden < least:
            raise ValueError(
                f"hidden must be at least {least} for every column to be read, but is {hidden}; "
                "widen it."
            )
        self.dropout, self.activation = dropout, activations.checked(activation)
        self.ranks = ranks = masks.hidden_ranks(hidden, len(self.inputs), context=context > 0)
        read = masks.input_ranks(self.inputs)
        self.first = BlockLinear(ranks, read, generator=source)
        self.context_weight = nn.Parameter(
            torch.empty(hidden, context).normal_(std=max(context, 1) ** -0.5, generator=source)
        )
        gains = [relu_gain(), relu_gain(0.5 / max(blocks, 1) ** 0.5)] * blocks
        self.inner = nn.ModuleList(
            BlockLinear(ranks, ranks, gain=gain, generator=source) for gain in gains
        )
        self.last = last_layer(self.outputs, ranks, codes, source)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N).

        All may have a first dimension more, if the parameters have: that of several networks.
        """
        theta: Tensor = self.last(self._active(features, context))
        return theta

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the weights in parts of these sizes.

        Without gradients each part is computed when it is asked for, so that all of θ need not be
        in memory at once.
        """
        active = self._active(features, context)
        if torch.is_grad_enabled():
            return self.last.parts(active, sizes)
        ends = zip(sizes, accumulate(sizes), strict=True)
        return (self.last.rows(stop - size, stop, active) for size, stop in ends)

    def _active(self, features: Tensor, context: Tensor | None) -> Tensor:
        """Returns a(h) after the residual blocks, which the last layer reads."""
        act, source = self.activation, self.generators or self.generator
        h = self.first(features)
        if context is not None:
            h = h + self.context_weight @ context
        for W1, W2 in zip(self.inner[::2], self.inner[1::2], strict=True):
            kept = dropout(act(W1(act(h))), self.dropout, self.training, source, self.part)
            h = W2(kept).add_(h)
        return act(h)

    def sizes(self) -> dict[str, Any]:
        """Returns what `MaskedMLP` takes besides inputs, outputs and context, for a file."""
        return {
            "hidden": len(self.ranks),
            "blocks": len(self.inner) // 2,
            "dropout": self.dropout,
            "activation": activations.name_of(self.activation),
            "codes": self.last.width if isinstance(self.last, CodedLinear) else None,
        }

    def stepper(self, n: int, context: Tensor | None = None) -> MLPStepper:
        """Starts the evaluation of n rows column by column; in all it costs one forward pass."""
        return MLPStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta whatever the input: the last matrices get zero weights."""
        with torch.no_grad():
            self.last.weight.zero_()
            self.last.bias.copy_(theta)
