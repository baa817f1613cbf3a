"""NITS-MLP fed one column at a time, as sampling does, at the cost of one forward pass in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from nits.weights.masked_mlp import MaskedMLP


class Starts(NamedTuple):
    """Where units of each rank, features and weights of each column begin; and, last, the end."""

    units: list[int]
    features: list[int]
    weights: list[int]

    @classmethod
    def of(cls, model: MaskedMLP) -> Starts:
        """Returns those of a network."""
        units = torch.searchsorted(model.ranks, torch.arange(len(model.inputs) + 1))
        sums = (torch.tensor(sizes).cumsum(0).tolist() for sizes in (model.inputs, model.outputs))
        return cls(units.tolist(), *([0, *ends] for ends in sums))

    def rank(self, position: int) -> slice:
        """Returns the units whose rank is the position."""
        return slice(*self.units[position : position + 2])

    def read(self, position: int) -> slice:
        """Returns the features of a column."""
        return slice(*self.features[position : position + 2])

    def written(self, position: int) -> slice:
        """Returns the weights of a column."""
        return slice(*self.weights[position : position + 2])


class MLPStepper:
    """Computes each hidden unit once, as soon as the columns that it may read are known.

    The column at position p completes what units of rank p + 1 read, in every layer.
    """

    def __init__(self, model: MaskedMLP, n: int, context: Tensor | None) -> None:
        self.model, self.position = model, 0
        like, units = model.last.bias, len(model.ranks)
        self.starts = Starts.of(model)
        self.features = like.new_empty(sum(model.inputs), n)
        # a(h) before each inner layer and before the last one
        self.active = [like.new_empty(units, n) for _ in range(len(model.inner) + 1)]
        self.context = None if context is None else model.context_weight @ context
        self._compute_rank()

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        rows = self.starts.written(self.position)
        return self.model.last.rows(rows.start, rows.stop, self.active[-1])

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        self.features[self.starts.read(self.position)] = features
        self.position += 1
        if self.position < len(self.model.inputs):
            self._compute_rank()

    def _compute_rank(self) -> None:
        """Computes the units whose rank is the position."""
        rows = self.starts.rank(self.position)
        if rows.start == rows.stop:
            return
        known = self.starts.features[self.position]
        h = self._product(self.model.first, rows, known, self.features)
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
