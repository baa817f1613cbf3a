"""The gradient of a model as one flat vector, which ranks exchange: not what masks keep at zero."""

from __future__ import annotations

from types import EllipsisType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nits.weights.block_linear import BlockLinear


class Piece(NamedTuple):
    """A part of a parameter whose gradient need not be zero."""

    parameter: nn.Parameter
    at: tuple[slice, slice] | EllipsisType

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.parameter[self.at].numel()


def pieces(model: nn.Module) -> list[Piece]:
    """Returns the parts of all parameters, in their order; of masked matrices their blocks."""
    blocks = {id(m.weight): m.blocks for m in model.modules() if isinstance(m, BlockLinear)}
    found: list[Piece] = []
    for p in model.parameters():
        if id(p) in blocks:
            found += [Piece(p, (slice(b.start, b.stop), slice(0, b.seen))) for b in blocks[id(p)]]
        else:
            found.append(Piece(p, ...))
    return found


class Gradient:
    """The gradient of a model, and some numbers beside it, as a vector.

    extras: How many numbers are beside it.
    """

    def __init__(self, model: nn.Module, extras: int = 0) -> None:
        self.pieces = pieces(model)
        self.sizes = [piece.size for piece in self.pieces]
        self.count = sum(self.sizes)
        self.flat = next(model.parameters()).detach().new_empty(self.count + extras)

    def _parts(self) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = self.flat[: self.count].split(self.sizes)
        return parts

    def collect(self, extras: Tensor) -> None:
        """Copies the parameters' gradient, zero where there is none, and the numbers beside it."""
        for part, (p, at) in zip(self._parts(), self.pieces, strict=True):
            if p.grad is None:
                part.zero_()
            else:
                own = p.grad[at]
                part.view(own.shape).copy_(own)
        self.flat[self.count :] = extras

    def put_back(self, divided_by: float) -> None:
        """Makes this, divided, the parameters' gradient."""
        if divided_by != 1:
            self.flat[: self.count] /= divided_by
        for part, (p, at) in zip(self._parts(), self.pieces, strict=True):
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            own = p.grad[at]
            own.copy_(part.view(own.shape))
