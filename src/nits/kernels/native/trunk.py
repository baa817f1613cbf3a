"""Layers of causal convolutional networks in C++, with gradients.

The features of a pixel lie side by side. Convolutions take fewer than half of the products that
plain ones take (`causal.h`), and the other layers read and write each number once.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nits.kernels.native import NAMES, library


class _Pixels(ctypes.Structure):
    """`nits::Pixels` of trunk.h."""

    _fields_ = tuple((name, ctypes.c_int64) for name in ("count", "features", "threads"))


class _Convolution(ctypes.Structure):
    """`nits::Convolution` of causal.h."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("count", "height", "width", "inputs", "outputs", "taps", "dilation", "threads"),
        )
    )


class _Placing(ctypes.Structure):
    """`nits::Placing` of trunk.h."""

    _fields_ = tuple(
        (name, ctypes.c_int64) for name in ("images", "columns", "weights", "units", "threads")
    )


COMBINED: dict[int, tuple[tuple[float, ...], ...]] = {
    2: ((1, 0), (1 / 2, 1 / 2), (1 / 2, -1 / 2), (0, 1)),
    3: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
}
"""The combinations of taps that inputs are multiplied with (`causal.h`)."""


def signs(x: Tensor) -> Tensor:
    """Returns elu(x) and elu(−x) side by side, shape (…, 2F), of x, shape (…, F)."""
    found: Tensor = _Signs.apply(x)  # type: ignore[no-untyped-call]
    return found


def gate(x: Tensor, both: Tensor) -> Tensor:
    """Returns x + a σ(b), where both, shape (…, 2F), is a and b side by side."""
    _refuse((*x.shape[:-1], 2 * x.shape[-1]) != both.shape, x, both)
    found: Tensor = _Gate.apply(x, both)  # type: ignore[no-untyped-call]
    return found


def pointwise(x: Tensor, weight: Tensor, plus: Tensor | None = None) -> Tensor:
    """Returns x Wᵀ for x, shape (…, inputs), and W, shape (outputs, inputs).

    plus: Something that it is added to, in place.
    """
    _refuse(x.shape[-1] != weight.shape[1], x, weight)
    found: Tensor = _Pointwise.apply(x, weight, plus)  # type: ignore[no-untyped-call]
    return found


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor, dilation: int, plus: Tensor | None = None
) -> Tensor:
    """Returns the causal convolution of images, shape (N, H, W, inputs), plus something.

    weight: As that of `torch.nn.functional.conv2d`, shape (outputs, inputs, 2, 3) or (…, 2, 2).
    """
    _refuse(x.dim() != 4 or x.shape[-1] != weight.shape[1], x, weight)
    down, along = (weight.new_tensor(COMBINED[weight.shape[k]]) for k in (2, 3))
    combined = torch.einsum("pk,ock->pco", torch.kron(down, along), weight.flatten(2))
    place = weight.shape[3], dilation
    found: Tensor = _Convolution2d.apply(x, combined, bias, place, plus)  # type: ignore[no-untyped-call]
    return found


def place(raw: Tensor, bias: Tensor, guess: Tensor | None, units: int) -> Tensor:
    """Returns weights θ, shape (D, P, N), whose centres are offsets from a guess, equation (20).

    raw: What the network returns, shape (N, D, P): of each PNN's first layer the A of its units,
        then their offsets in widths, then other weights.
    bias: Added to it, shape (D, P).
    guess: Shape (N, D); None if there are no units.
    """
    found: Tensor = _Place.apply(raw, bias, guess, units)  # type: ignore[no-untyped-call]
    return found


def _refuse(wrong: bool, x: Tensor, other: Tensor) -> None:
    if wrong:
        raise ValueError(
            f"features and weights must fit, but have shapes {tuple(x.shape)} and "
            f"{tuple(other.shape)}."
        )


class _Signs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        both = x.new_empty(*x.shape[:-1], 2 * x.shape[-1])
        _call("signs", x, _pixels(x), x, both)
        ctx.save_for_backward(both)
        return both

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (both,) = ctx.saved_tensors
        dx: Tensor = both.new_empty(*both.shape[:-1], both.shape[-1] // 2)
        _call("signs_backward", both, _pixels(dx), both, grads[0].contiguous(), dx)
        return dx


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, both: Tensor) -> Tensor:
        x, both = x.contiguous(), both.contiguous()
        y = torch.empty_like(x)
        _call("gate", x, _pixels(x), x, both, y)
        ctx.save_for_backward(both)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (both,) = ctx.saved_tensors
        dy, found = grads[0].contiguous(), torch.empty_like(both)
        _call("gate_backward", dy, _pixels(dy), both, dy, found)
        return dy, found


class _Pointwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, plus: Tensor | None) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, weight)
        if plus is not None:
            ctx.mark_dirty(plus)
        return _product(x, weight.t(), plus)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dy = grads[0].contiguous()
        dx = _product(dy, weight, None) if ctx.needs_input_grad[0] else None
        dw = None
        if ctx.needs_input_grad[1]:
            wide = _whole(dy)
            dw = x.new_zeros(x.shape[-1], wide.shape[-1])
            outputs = ctypes.c_int64(dy.shape[-1])
            _call("pointwise_backward", x, _pixels(x), outputs, x, wide, dw)
            dw = dw[:, : dy.shape[-1]].t()
        return dx, dw, dy if ctx.needs_input_grad[2] else None


def _product(x: Tensor, weight: Tensor, plus: Tensor | None) -> Tensor:
    """Returns x W for W of shape (inputs, outputs), added to something in place."""
    whole, outputs = _whole(weight), weight.shape[1]
    y = x.new_empty(*x.shape[:-1], outputs) if plus is None else plus
    add = ctypes.c_int64(plus is not None)
    _call("pointwise", x, _pixels(x), ctypes.c_int64(outputs), x, whole, y, add)
    return y


class _Convolution2d(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        combined: Tensor,
        bias: Tensor,
        place: tuple[int, int],
        plus: Tensor | None,
    ) -> Tensor:
        x, bias = x.contiguous(), bias.contiguous()
        plus = None if plus is None else plus.contiguous()
        ctx.save_for_backward(x, combined)
        ctx.size = _Convolution(*x.shape, combined.shape[2], *place, torch.get_num_threads())
        y = x.new_empty(*x.shape[:-1], combined.shape[2])
        _call("convolution", x, ctx.size, x, _whole(combined), bias, plus, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, combined = ctx.saved_tensors
        dy = grads[0].contiguous()
        needs_x, needs_weight, needs_bias, _, needs_plus = ctx.needs_input_grad
        dx = torch.empty_like(x) if needs_x else None
        du = torch.zeros_like(_whole(combined)) if needs_weight else None
        exchanged = _whole(combined.transpose(1, 2))
        _call("convolution_backward", x, ctx.size, x, dy, exchanged, dx, du)
        du = None if du is None else du[..., : combined.shape[2]]
        return dx, du, dy.sum((0, 1, 2)) if needs_bias else None, None, dy if needs_plus else None


class _Place(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, raw: Tensor, bias: Tensor, guess: Tensor | None, units: int) -> Tensor:
        raw, bias = raw.contiguous(), bias.contiguous()
        guess = None if guess is None else guess.contiguous()
        ctx.save_for_backward(raw, bias)
        ctx.size = _Placing(*raw.shape, units, torch.get_num_threads())
        theta = raw.new_empty(*raw.shape[1:], len(raw))
        _call("place", raw, ctx.size, raw, bias, guess, theta)
        return theta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        raw, bias = ctx.saved_tensors
        draw, dbias = torch.empty_like(raw), torch.empty_like(bias)
        dguess = raw.new_empty(raw.shape[:2]) if ctx.needs_input_grad[2] else None
        gradient = grads[0].contiguous()
        _call("place_backward", raw, ctx.size, raw, bias, gradient, draw, dbias, dguess)
        return draw, dbias, dguess, None


def _whole(x: Tensor) -> Tensor:
    """Returns x with zeros after the last column, so that it has whole vectors of them."""
    lanes: int = getattr(library.loaded(), f"lanes_{NAMES[x.dtype]}")()
    missing = -x.shape[-1] % lanes
    return (torch.nn.functional.pad(x, (0, missing)) if missing else x).contiguous()


def _pixels(x: Tensor) -> _Pixels:
    return _Pixels(x.numel() // x.shape[-1], x.shape[-1], torch.get_num_threads())


def _call(name: str, like: Tensor, size: Any, *arguments: Any) -> None:
    """Calls a kernel for numbers of one type, with arrays of the sizes that it expects."""
    for each in arguments:
        if isinstance(each, Tensor) and (each.dtype != like.dtype or each.device != like.device):
            raise TypeError(
                f"all numbers of a network must be {like.dtype} on {like.device}, but some are "
                f"{each.dtype} on {each.device}; move the model or the images."
            )
    pointers = [
        ctypes.c_void_p(each.data_ptr()) if isinstance(each, Tensor) else each for each in arguments
    ]
    getattr(library.loaded(), f"{name}_{NAMES[like.dtype]}")(ctypes.byref(size), *pointers)
