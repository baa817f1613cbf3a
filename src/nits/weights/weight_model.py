"""What every weight model does: it maps features of the columns to PNN weights of each column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from nits.heads.head import Head

Read = Callable[[Tensor], Tensor]


class Stepper(Protocol):
    """A weight model that gets one column at a time, as sampling needs."""

    def theta(self) -> Tensor:
        """Returns the weights of the next column, shape (P, N)."""

    def feed(self, features: Tensor) -> None:
        """Takes the features of that column, shape (inputs, N), now that its value is known."""


@runtime_checkable
class Branching(Stepper, Protocol):
    """A stepper that can go on with some of its rows, as resampled particles need."""

    def take(self, index: Tensor) -> None:
        """Goes on with some of the rows, of which one may be there several times."""


class WeightModel(nn.Module, ABC):
    """A network whose output for each column depends only on the columns before it.

    inputs: Number of features of each column, in the order in which the columns are modelled.
    outputs: Number of PNN weights of each column, P.
    context: Number of features that are given, and not modelled.
    sampled_at_once: Rows that one stepper has memory for; more are drawn one batch after another.
    generator: What dropout draws from; None, torch's global generator, unless `reseed` was called.
    lowers: Whether inner layers follow `torch.autocast`, and θ keeps the precision of the weights.
    part: Where the rows begin in a batch that several processes share, and how many that has.
    """

    sampled_at_once = 8192
    lowers = False
    generator: torch.Generator | None = None
    part: tuple[int, int] | None = None

    def __init__(self, inputs: Sequence[int], outputs: Sequence[int], context: int = 0) -> None:
        super().__init__()
        self.inputs, self.outputs, self.context = tuple(inputs), tuple(outputs), context

    @abstractmethod
    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N)."""

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the result of `forward` cut into parts of these sizes."""
        whole: Tensor = self(features, context)
        if len(sizes) == 1:
            return (whole,)  # split would copy the gradient
        parts: tuple[Tensor, ...] = whole.split(list(sizes))
        return parts

    def reseed(self, seed: int | None) -> None:
        """Makes dropout draw from a private generator with this seed, None from the global one."""
        device = next(self.parameters()).device
        self.generator = None if seed is None else torch.Generator(device).manual_seed(seed)

    @abstractmethod
    def stepper(self, n: int, context: Tensor | None = None) -> Stepper:
        """Starts the evaluation of n rows column by column; nothing is recorded for gradients."""

    @abstractmethod
    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta, shape (Σ outputs,), whatever the input."""

    def start_from(
        self, heads: Sequence[Head], columns: Tensor, read: Read, context: Tensor | None = None
    ) -> None:
        """Starts as the independent model: each column follows its own distribution in the data.

        columns: Training values in the order of modelling, shape (D, N).
        read: Maps such values to the features that the network reads, shape (Σ inputs, N).
        context: That of the rows, shape (C, N).
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
