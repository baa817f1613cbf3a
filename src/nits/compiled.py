"""Log-probabilities through compiled kernels that return the value and its gradient in one sweep.

The gradient of a log-probability with respect to θ is as large as θ itself and costs about as much as the
value, so one kernel computes both, block by block while the block is in cache; the backward pass is then a
single product. Blocks have one shape whatever the batch, so that each kind of head is compiled once.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from nits import pnn
from nits.heads import Head

BLOCKS = (128, 1024)
"""PNNs per call, for small and for large batches."""

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
        wanted = ctx.needs_input_grad[0]
        value = torch.empty_like(points[0])
        grad = torch.empty_like(theta) if wanted else None
        columns = theta.unflatten(0, (len(low), -1))
        for i, column in enumerate(columns):
            slope = None if grad is None else grad.unflatten(0, (len(low), -1))[i]
            _column(head, column, tuple(p[i] for p in points), (low[i], high[i]), (value[i], slope))
        ctx.save_for_backward(grad)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        (outer,) = grads
        # Scaled in place: nothing else reads the buffer, and a second backward would be wrong either way.
        return (
            grad.unflatten(0, (len(outer), -1)).mul_(outer.unsqueeze(1)).flatten(0, 1),
            None,
            None,
            None,
            None,
        )


def _column(
    head: Head,
    theta: Tensor,
    points: tuple[Tensor, ...],
    ends: tuple[Tensor, Tensor],
    out: tuple[Tensor, Tensor | None],
) -> None:
    """Fills out = (value (N,), gradient (P, N) or None) block by block."""
    value, grad = out
    n = len(value)
    size = BLOCKS[0] if n < BLOCKS[1] // 2 else BLOCKS[1]
    run = _kernel(head, grad is not None)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        count = rows.stop - rows.start
        block = _block(theta[:, rows], size)
        result = run(block, tuple(_block(p[rows], size) for p in points), *ends)
        if grad is None:
            value[rows] = result[:count]
        else:
            grad[:, rows], value[rows] = result[0][:, :count], result[1][:count]


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

    return value


def _value_and_grad(head: Head) -> Kernel:
    value = _value(head)

    def total(theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        result = value(theta, points, low, high)
        return result.sum(), result

    return torch.func.grad(total, has_aux=True)
