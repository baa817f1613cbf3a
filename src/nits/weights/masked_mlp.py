"""NITS-MLP's weight model: a masked residual MLP (ResMADE) with its units sorted by rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn import functional

from nits.weights import masks
from nits.weights.activations import Activation
from nits.weights.block_linear import BlockLinear, relu_gain
from nits.weights.dropout import dropout
from nits.weights.weight_model import WeightModel

BLOCKS_OF_ROWS = 4
"""Blocks per triangular matrix: more would skip more zeros, but in products too small to be fast."""

BLOCKS_OF_OUTPUTS = 8
"""And in the last one, which has many more rows."""


class MaskedMLP(WeightModel):
    """Residual blocks h ← h + W₂ a(W₁ a(h)), masked so that each column sees those before it.

    inputs, outputs, context: See `WeightModel`.
    hidden: Units of each hidden layer.
    blocks: Residual blocks.
    dropout: Probability of dropping a unit inside a block.
    activation: The function a, elementwise: `torch.nn.functional.relu`, silu, gelu or any other. One
        that mixes units would let a column see those after it.
    """

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
    ) -> None:
        super().__init__(inputs, outputs, context)
        least = max(len(self.inputs) - (context == 0), 1)
        if hidden < least:
            raise ValueError(
                f"hidden must be at least {least} for every column to be read, but is {hidden}; widen it."
            )
        if not callable(activation):
            raise TypeError(
                f"activation must be a function, but is {activation!r}; "
                "pass one such as torch.nn.functional.relu."
            )
        ranks = masks.hidden_ranks(hidden, len(self.inputs), context=context > 0)
        self.ranks = ranks
        self.dropout = dropout
        self.activation = activation
        self.first = BlockLinear(ranks, masks.input_ranks(self.inputs), BLOCKS_OF_ROWS)
        self.context_weight = nn.Parameter(
            torch.empty(hidden, context).normal_(std=max(context, 1) ** -0.5)
        )
        inner = [BlockLinear(ranks, ranks, BLOCKS_OF_ROWS) for _ in range(2 * blocks)]
        for index, layer in enumerate(inner):
            layer.reset(relu_gain() if index % 2 == 0 else relu_gain(0.5 / blocks**0.5))
        self.inner = nn.ModuleList(inner)
        self.last = BlockLinear(masks.output_ranks(self.outputs), ranks, BLOCKS_OF_OUTPUTS)
        self.last.reset(0.5)

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, shape (Σ outputs, N)."""
        theta: Tensor = self.last(self._active(features, context))
        return theta

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the weights in parts, each computed when it is asked for if no gradient is recorded."""
        if torch.is_grad_enabled():
            return super().parts(features, context, sizes)
        active = self._active(features, context)
        ends = zip(sizes, accumulate(sizes), strict=True)
        return (self.last.rows(stop - size, stop, active) for size, stop in ends)

    def _active(self, features: Tensor, context: Tensor | None) -> Tensor:
        """Returns what the last layer reads."""
        act = self.activation
        h = self.first(features)
        if context is not None:
            h = h + self.context_weight @ context
        for narrow, wide in zip(self.inner[::2], self.inner[1::2], strict=True):
            h = wide(dropout(act(narrow(act(h))), self.dropout, self.training)).add_(h)
        return act(h)

    def stepper(self, n: int, context: Tensor | None = None) -> MLPStepper:
        """Starts the evaluation of n rows column by column, at the cost of one forward pass in all."""
        return MLPStepper(self, n, context)

    def start_at(self, theta: Tensor) -> None:
        """Makes the last layer a constant; its weights are free to grow from zero."""
        with torch.no_grad():
            self.last.weight.zero_()
            self.last.bias.copy_(theta)


class MLPStepper:
    """The network fed one column at a time: each column wakes the units of one rank, in every layer."""

    def __init__(self, model: MaskedMLP, n: int, context: Tensor | None) -> None:
        self.model, self.position = model, 0
        like, units = model.last.bias, len(model.ranks)
        width = sum(model.inputs)
        self.starts = torch.searchsorted(model.ranks, torch.arange(len(model.inputs) + 1)).tolist()
        self.read = [0, *torch.tensor(model.inputs).cumsum(0).tolist()]
        self.written = [0, *torch.tensor(model.outputs).cumsum(0).tolist()]
        self.features = torch.empty(width, n, dtype=like.dtype, device=like.device)
        # a(h) before each inner layer and before the last one
        self.active = [
            torch.empty(units, n, dtype=like.dtype, device=like.device)
            for _ in range(len(model.inner) + 1)
        ]
        self.context = None if context is None else model.context_weight @ context
        self._wake()

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        rows = slice(self.written[self.position], self.written[self.position + 1])
        return self._product(self.model.last, rows, self._seen(), self.active[-1])

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        self.features[self.read[self.position] : self.read[self.position + 1]] = features
        self.position += 1
        if self.position < len(self.model.inputs):
            self._wake()

    def _seen(self) -> int:
        """How many hidden units are awake: those of rank up to the position."""
        return int(self.starts[self.position + 1])

    def _wake(self) -> None:
        """Computes the units whose rank is the position."""
        rows = slice(int(self.starts[self.position]), self._seen())
        if rows.start == rows.stop:
            return
        h = self._product(self.model.first, rows, self.read[self.position], self.features)
        if self.context is not None:
            h = h + self.context[rows]
        layers, act = list(self.model.inner), self.model.activation
        for index in range(0, len(layers), 2):
            self.active[index][rows] = act(h)
            inner = self._product(layers[index], rows, rows.stop, self.active[index])
            self.active[index + 1][rows] = act(inner)
            h = h + self._product(layers[index + 1], rows, rows.stop, self.active[index + 1])
        self.active[-1][rows] = act(h)

    def _product(self, layer: nn.Module, rows: slice, seen: int, x: Tensor) -> Tensor:
        """The rows of a layer, of which only the first `seen` inputs are known and needed."""
        weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
        return torch.addmm(bias[rows].unsqueeze(1), weight[rows, :seen], x[:seen])
