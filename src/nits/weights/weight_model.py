"""What every weight model does: features of the columns in, PNN weights of each column out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from nits.heads.head import Head

Read = Callable[[Tensor], Tensor]


class Stepper(Protocol):
    """A weight model that is fed one column at a time, as sampling does."""

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N), now that its value is known."""


class WeightModel(nn.Module, ABC):
    """A network whose output for the column at position i depends on the columns before it only.

    inputs: Features per column, in the order in which the columns are modelled.
    outputs: PNN weights per column, P each.
    context: Features that are always given.
    sampled_at_once: How many rows a stepper can hold the state of; more are drawn in turns.
    """

    sampled_at_once = 8192

    def __init__(self, inputs: Sequence[int], outputs: Sequence[int], context: int = 0) -> None:
        super().__init__()
        self.inputs, self.outputs, self.context = tuple(inputs), tuple(outputs), context

    @abstractmethod
    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, shape (Σ outputs, N)."""

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the weights in parts of so many rows, one after another: see `forward`."""
        whole: Tensor = self(features, context)
        return (
            whole.split(list(sizes)) if len(sizes) > 1 else (whole,)
        )  # whose gradient need not be copied

    @abstractmethod
    def stepper(self, n: int, context: Tensor | None = None) -> Stepper:
        """Starts the evaluation of n rows column by column; nothing is recorded for gradients."""

    @abstractmethod
    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta, shape (Σ outputs,), whatever the input: the independent model."""

    def start_from(self, heads: Sequence[Head], columns: Tensor, read: Read) -> None:
        """Starts where each column follows its own distribution and none depends on another.

        columns: Values that the heads describe, in modelling order, shape (D, N).
        read: Maps such values to what the network reads of them, shape (Σ inputs, N).
        """
        pairs = zip(heads, columns, strict=True)
        self.start_at(
            torch.cat([head.initial(column[~torch.isnan(column)]) for head, column in pairs])
        )


class Replay:
    """A stepper that autograd can follow: the whole network once per column, without dropout."""

    def __init__(self, model: WeightModel, n: int, context: Tensor | None) -> None:
        self.model, self.n, self.context = model, n, context
        self.fed: list[Tensor] = []

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""
        position = len(self.fed)
        like = next(self.model.parameters())
        unknown = like.new_zeros(sum(self.model.inputs[position:]), self.n)
        training = self.model.training
        self.model.eval()
        theta: Tensor = self.model(torch.cat([*self.fed, unknown]), self.context)
        self.model.train(training)
        part: Tensor = theta.split(self.model.outputs)[position]
        return part

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N)."""
        self.fed.append(features)
