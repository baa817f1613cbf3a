"""Log-probabilities through compiled kernels that return the value and its gradient in one sweep.

The gradient of a log-probability with respect to θ is as large as θ itself and costs about as much
as the value, so one kernel computes both, while a block is in the cache; the backward
pass is then a single product. Blocks have one shape whatever the batch, so that each kind of head
is compiled once.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nits.pnn import network
from nits.pnn.plain import Theta, sizes

BLOCKS = ((32, 8), (8, 32), (2, 128), (2, 1024))
"""Columns and rows per call: for few rows, as with images, for small and for large batches."""

Kernel = Callable[..., Any]


@cache
def available() -> bool:
    """Returns whether a C++ compiler is installed; warns once if there is none."""
    if any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl")):
        return True
    warnings.warn(
        "no C++ compiler was found, so nits runs uncompiled, which is slower; install g++.",
        stacklevel=3,
    )
    return False


def log_prob(
    theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, hidden: tuple[int, ...]
) -> Tensor:
    """Returns the log-probabilities of g columns, shape (g, N); differentiable in theta only.

    theta: Weights, shape (g, P, N).
    points: One for a density, two for a mass, each of shape (g, N).
    low, high: Shapes (g, 1).
    """
    return _Columns.apply(theta, points, low, high, hidden)  # type: ignore[no-untyped-call, no-any-return]


class _Columns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        points: tuple[Tensor, ...],
        low: Tensor,
        high: Tensor,
        hidden: tuple[int, ...],
    ) -> Tensor:
        whole = Inputs(theta, points, low, high)
        value = torch.empty_like(points[0])
        slopes = []
        run = _kernel(hidden, len(points), ctx.needs_input_grad[0])
        ctx.places = list(_places(*value.shape))
        for columns, rows, size in ctx.places:
            result, slope = run(*whole.block(columns, rows, size))
            value[columns, rows] = result[:, : rows.stop - rows.start]
            slopes.append(slope)
        ctx.save_for_backward(*slopes)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = grads
        slopes = ctx.saved_tensors
        grad = outer.new_empty(outer.shape[0], slopes[0].shape[1], outer.shape[1])
        for (columns, rows, _), slope in zip(ctx.places, slopes, strict=True):
            part = slope[..., : rows.stop - rows.start]
            torch.mul(part, outer[columns, rows].unsqueeze(1), out=grad[columns, :, rows])
        return grad, None, None, None, None


class Inputs(NamedTuple):
    """What a kernel reads: C columns and N rows of θ, points, and the ends of the supports."""

    theta: Tensor  # (C, P, N)
    points: tuple[Tensor, ...]  # (C, N) each
    low: Tensor  # (C, 1)
    high: Tensor

    def block(self, columns: slice, rows: slice, size: int) -> Inputs:
        """Returns some of the columns and rows, the rows padded to a block of the given size."""
        theta, points, low, high = self
        parts = tuple(_block(p[columns, rows], size) for p in points)
        return Inputs(_block(theta[columns, :, rows], size), parts, low[columns], high[columns])


def _places(columns: int, n: int) -> Iterator[tuple[slice, slice, int]]:
    """Yields columns, rows and size of each block; the last columns may overlap the ones before."""
    *few, small, large = BLOCKS
    fitting = [block for block in few if n <= block[1]]
    width, size = fitting[0] if fitting else small if n < large[1] // 2 else large
    for start in range(0, columns, width):
        first = max(0, min(start, columns - width))
        for row in range(0, n, size):
            yield slice(first, min(first + width, columns)), slice(row, min(row + size, n)), size


def _block(x: Tensor, size: int) -> Tensor:
    """Returns x with its last dimension padded to the block's size, by repeating the last entry."""
    short = size - x.shape[-1]
    if short:
        x = torch.cat([x, x[..., -1:].expand(*x.shape[:-1], short)], -1)
    return x.contiguous()


@cache
def _kernel(hidden: tuple[int, ...], points: int, with_gradient: bool) -> Kernel:
    """Returns the kernel for PNNs with these hidden layers: of a density, or of a mass."""
    made = _value_and_grad(hidden, points) if with_gradient else _value(hidden, points)
    return torch.compile(made, dynamic=False)


def _value(hidden: tuple[int, ...], points: int) -> Kernel:
    def value(
        theta: Tensor, at: tuple[Tensor, ...], low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        return torch.func.vmap(_log_prob(hidden, points))(theta, at, low, high), None

    return value


def _value_and_grad(hidden: tuple[int, ...], points: int) -> Kernel:
    log_prob = _log_prob(hidden, points)

    def total(
        parts: tuple[Tensor, ...], at: tuple[Tensor, ...], low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor]:
        result = log_prob(parts, at, low, high)
        return result.sum(), result

    def value_and_grad(
        theta: Tensor, at: tuple[Tensor, ...], low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor]:
        parts = theta.split(sizes(hidden), 1)
        slopes, value = torch.func.vmap(torch.func.grad(total, has_aux=True))(parts, at, low, high)
        return value, torch.cat(slopes, 1)

    return value_and_grad


def _log_prob(hidden: tuple[int, ...], points: int) -> Callable[..., Tensor]:
    function = network.log_density if points == 1 else network.log_mass

    def log_prob(theta: Theta, at: tuple[Tensor, ...], low: Tensor, high: Tensor) -> Tensor:
        return function(network.normalized(theta, low, high, hidden), *at)

    return log_prob
