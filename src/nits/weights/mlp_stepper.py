"""NITS-MLP fed one column at a time, as sampling does, at the cost of one forward pass in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from nits.weights.masked_mlp import MaskedMLP


class MLPStepper:
    """Computes each hidden unit once, as soon as the columns that it may read are known.

    The column at position p completes what units of rank p + 1 read, in every layer.
    """

    def __init__(self, model: MaskedMLP, n: int, context: Tensor | None) -> None:
        self.model, self.position = model, 0
        like, units = model.last.bias, len(model.ranks)
        # The first unit of each rank, and the first feature and the first weight of each column.
        self.starts = torch.searchsorted(model.ranks, torch.arange(len(model.inputs) + 1)).tolist()
        self.read = [0, *torch.tensor(model.inputs).cumsum(0).tolist()]
        self.written = [0, *torch.tensor(model.outputs).cumsum(0).tolist()]
        self.features = like.new_empty(sum(model.inputs), n)
        # a(h) before each inner layer and before the last one
        self.active = [like.new_empty(units, n) for _ in range(len(model.inner) + 1)]
        self.context = None if context is None else model.context_weight @ context
        self._compute_rank()

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        start, stop = self.written[self.position : self.position + 2]
        return self.model.last.rows(start, stop, self.active[-1])

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        self.features[self.read[self.position] : self.read[self.position + 1]] = features
        self.position += 1
        if self.position < len(self.model.inputs):
            self._compute_rank()

    def _known(self) -> int:
        """Returns how many hidden units have a rank up to the position."""
        return int(self.starts[self.position + 1])

    def _compute_rank(self) -> None:
        """Computes the units whose rank is the position."""
        rows = slice(int(self.starts[self.position]), self._known())
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

    def _product(self, layer: nn.Module, rows: slice, known: int, x: Tensor) -> Tensor:
        """Returns rows of a layer's output, which read only the first `known` of its inputs."""
        weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
        return torch.addmm(bias[rows].unsqueeze(1), weight[rows, :known], x[:known])
