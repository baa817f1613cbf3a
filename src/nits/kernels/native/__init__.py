"""Kernels in C++ that evaluate PNNs on the CPU, with the weights at work in the L1 cache of a core.

They compute what `nits.pnn.network` and `nits.pnn.roots` define. A vector of rows passes through
all layers before the next one starts, so that θ is read once and the gradient written once; code
that works layer by layer reads and writes them several times.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nits.kernels.native import library

NAMES = {torch.float32: "float32", torch.float64: "float64"}
KERNELS = {1: "log_density", 2: "log_mass"}


class _Columns(ctypes.Structure):
    """`nits::Columns` of kernels.cpp."""

    _fields_ = (
        ("theta", ctypes.c_void_p),
        ("column_stride", ctypes.c_int64),
        ("weight_stride", ctypes.c_int64),
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        ("columns", ctypes.c_int64),
        ("weights", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("hidden", ctypes.POINTER(ctypes.c_int64)),
        ("depth", ctypes.c_int64),
        ("threads", ctypes.c_int64),
    )


def usable(theta: Tensor) -> bool:
    """Returns whether the kernels can read θ; builds them the first time."""
    plain = type(theta) is Tensor and not torch._C._functorch.is_functorch_wrapped_tensor(theta)
    return (
        plain
        and theta.device.type == "cpu"
        and theta.dtype in NAMES
        and library.loaded() is not None
    )


def log_prob(
    theta: Tensor, points: tuple[Tensor, ...], low: Tensor, high: Tensor, hidden: Sequence[int]
) -> Tensor:
    """Returns log ν(x), equation (5), of one point, or log P(s < X ≤ t), equation (6), of two.

    The result has shape (g, N) and can be differentiated once, with respect to theta only.

    theta: Weights, shape (g, P, N).
    points: In the supports, shape (g, N) each; if two, both finite.
    low, high: Shapes (g, 1).
    """
    return _LogProb.apply(theta, points, low, high, hidden)  # type: ignore[no-untyped-call, no-any-return]


def quantile(
    theta: Tensor, u: Tensor, low: Tensor, high: Tensor, hidden: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Returns x with N(x) = u, and which were not found, for u between 0 and 1, shape (N,).

    theta: Weights, shape (P, N).
    """
    u = u.to(theta.dtype).contiguous()
    x = torch.empty_like(u)
    open_ = torch.empty_like(u)
    _call("quantile", theta.unsqueeze(0), low, high, hidden, u, x, open_)
    return x, open_ > 0


class _LogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        points: tuple[Tensor, ...],
        low: Tensor,
        high: Tensor,
        hidden: Sequence[int],
    ) -> Tensor:
        points = tuple(point.to(theta.dtype).contiguous() for point in points)
        value = torch.empty_like(points[0])
        slope = theta.new_empty(theta.shape) if ctx.needs_input_grad[0] else None
        _call(KERNELS[len(points)], theta, low, high, hidden, *points, value, slope)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return slope * grads[0].unsqueeze(1), None, None, None, None


def _call(
    name: str,
    theta: Tensor,
    low: Tensor,
    high: Tensor,
    hidden: Sequence[int],
    *arrays: Tensor | None,
) -> None:
    """Calls a kernel for θ, shape (g, P, N), with arrays of the sizes that it expects."""
    theta = theta if theta.stride(2) == 1 else theta.contiguous()
    low, high = (end.to(theta.dtype).contiguous() for end in (low, high))
    columns, weights, rows = theta.shape
    layers = (ctypes.c_int64 * len(hidden))(*hidden)
    place = _Columns(
        theta.data_ptr(),
        theta.stride(0),
        theta.stride(1),
        low.data_ptr(),
        high.data_ptr(),
        columns,
        weights,
        rows,
        layers,
        len(hidden),
        torch.get_num_threads(),
    )
    pointers = [None if array is None else ctypes.c_void_p(array.data_ptr()) for array in arrays]
    getattr(library.loaded(), f"{name}_{NAMES[theta.dtype]}")(ctypes.byref(place), *pointers)
