"""Log-probabilities through compiled kernels that return the value and its gradient in one sweep.

The gradient of a log-probability with respect to θ is as large as θ itself and costs about as much as the
value, so one kernel computes both, block by block while the block is in cache; the backward pass is then a
single product. Blocks have one shape whatever the batch, so that each kind of head is compiled once.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nits import pnn
from nits.heads import Head

BLOCKS = (128, 1024)
"""Rows per call, for small and for large batches."""

COLUMNS = 2
"""Columns per call."""

Kernel = Callable[..., Any]


@cache
def available() -> bool:
    """Returns whether a C++ compiler is installed; says so once if not."""
    if any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl")):
        return True
    warnings.warn(
        "no C++ compiler was found, so nits runs uncompiled, which is slower; install g++.", stacklevel=3
    )
    return False


def log_prob(head: Head, theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor) -> Tensor:
    """Returns the log-probabilities of g columns of one kind, shape (g, N); differentiable in theta only.

    theta: Weights, shape (g P, N). points: Each of shape (g, N). low, high: Shapes (g, 1).
    """
    return _Columns.apply(theta, head, points, low, high)  # type: ignore[no-untyped-call, no-any-return]


class _Columns(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, theta: Tensor, head: Head, points: tuple[Tensor, ...], low: Tensor, high: Tensor
    ) -> Tensor:
        value, columns = torch.empty_like(points[0]), theta.unflatten(0, (len(low), -1))
        grad = torch.empty_like(columns) if ctx.needs_input_grad[0] else None
        for group in _groups(len(low)):
            slope = None if grad is None else grad[group]
            inputs = Inputs(columns[group], tuple(p[group] for p in points), low[group], high[group])
            _fill(head, inputs, value[group], slope)
        ctx.save_for_backward(grad)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        (outer,) = grads
        # Scaled in place: nothing else reads the buffer, and a second backward would be wrong either way.
        return grad.mul_(outer.unsqueeze(1)).flatten(0, 1), None, None, None, None


class Inputs(NamedTuple):
    """What a kernel reads: C columns and N rows of θ, points, and the ends of the supports."""

    theta: Tensor  # (C, P, N)
    points: tuple[Tensor, ...]  # (C, N) each
    low: Tensor  # (C, 1)
    high: Tensor

    def block(self, rows: slice, size: int) -> Inputs:
        """Returns some of the rows, padded to a block of the given size."""
        points = tuple(_block(p[:, rows], size) for p in self.points)
        return Inputs(_block(self.theta[..., rows], size), points, self.low, self.high)


def _groups(columns: int) -> Iterator[slice]:
    """Yields the columns two by two, one for each of two cores; the last two may overlap."""
    for start in range(0, columns, COLUMNS):
        start = max(0, min(start, columns - COLUMNS))
        yield slice(start, start + COLUMNS)


def _fill(head: Head, inputs: Inputs, value: Tensor, grad: Tensor | None) -> None:
    """Fills value (C, N) and gradient (C, P, N) block by block."""
    n = value.shape[-1]
    size = BLOCKS[0] if n < BLOCKS[1] // 2 else BLOCKS[1]
    run = _kernel(head, grad is not None)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        whole = rows.stop - rows.start == size
        outputs = [t[..., rows] for t in (value, grad) if t is not None]
        block = outputs if whole else [t.new_empty(*t.shape[:-1], size) for t in outputs]
        parts = (part for t in block[1:] for part in t.split(pnn.sizes(head.hidden), 1))
        run(*inputs.block(rows, size), block[0], *parts)
        if not whole:
            for out, t in zip(outputs, block, strict=True):
                out.copy_(t[..., : out.shape[-1]])


def _block(x: Tensor, size: int) -> Tensor:
    """Returns x with its last dimension padded to the block's size, by repeating the last entry."""
    short = size - x.shape[-1]
    if short:
        x = torch.cat([x, x[..., -1:].expand(*x.shape[:-1], short)], -1)
    return x.contiguous()


@cache
def _kernel(head: Head, with_gradient: bool) -> Kernel:
    return _kind_kernel(head.kind, type(head), with_gradient, head)


_kernels: dict[tuple[object, ...], Kernel] = {}


def _kind_kernel(kind: tuple[object, ...], cls: type, with_gradient: bool, head: Head) -> Kernel:
    key = (*kind, with_gradient)
    if key not in _kernels:
        _kernels[key] = torch.compile(_value_and_grad(head) if with_gradient else _value(head), dynamic=False)
    return _kernels[key]


def _value(head: Head) -> Kernel:
    def value(theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor) -> Tensor:
        return head.log_prob(pnn.frame(theta, low, high, head.hidden), points)

    def fill(theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, out: Tensor) -> None:
        out.copy_(torch.func.vmap(value)(theta, points, low, high))

    return fill


def _value_and_grad(head: Head) -> Kernel:
    def total(
        parts: tuple[Tensor, ...], points: tuple[Tensor, ...], low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor]:
        result = head.log_prob(pnn.frame(parts, low, high, head.hidden), points)
        return result.sum(), result

    def fill(
        theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, out: Tensor, *grad: Tensor
    ) -> None:
        parts = theta.split([part.shape[1] for part in grad], 1)
        slopes, value = torch.func.vmap(torch.func.grad(total, has_aux=True))(parts, points, low, high)
        for part, slope in zip(grad, slopes, strict=True):
            part.copy_(slope)
        out.copy_(value)

    return fill
