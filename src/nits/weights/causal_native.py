"""NITS-CONV by our own kernels: `causal_conv` with the features of a pixel side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from nits.kernels.native import trunk
from nits.weights.block_linear import dropout
from nits.weights.causal_layers import Gated, at, gated

if TYPE_CHECKING:
    from nits.weights.causal_conv import CausalConv


def theta(model: CausalConv, x: Tensor, context: Tensor | None) -> Tensor:
    """Maps images, shape (N, H, W, C f + 1), and context, (N, S), to weights, (D P, N)."""
    channels, last = model.shape[0], model.theta
    mixed = trunk.pointwise(streams(model, x, context), last.mix.weight).chunk(channels, -1)
    near = _near(x)
    parts = []
    for c, h in enumerate(mixed):
        direct: Tensor = last.direct[c]
        if c:
            before: Any = last.before[c - 1]
            h = h + x[..., : c * model.inputs[0]] @ before.weight.t()
        seen = trunk.pointwise(near[..., : direct.shape[1]], direct)
        parts.append(trunk.pointwise(trunk.signs(h), last.weight[c], seen))
    raw = _columns(model, torch.stack(parts, 3))  # (N, D, P)
    guess = _columns(model, last.guesses(near)) if last.units else None
    found = trunk.place(raw, last.bias.flatten(0, 1), guess, last.units)
    return found.flatten(0, 1)


def _columns(model: CausalConv, x: Tensor) -> Tensor:
    """Returns (N, H, W, C, …) as (N, D, …), for the pixels that have columns."""
    pixels = x.flatten(1, 2)
    return (pixels if model.complete else pixels[:, model.present.flatten()]).flatten(1, 2)


def streams(model: CausalConv, x: Tensor, context: Tensor | None) -> Tensor:
    """Returns elu(±v), shape (N, H, W, 2F), of the second stream v."""
    u, above = _firsts(model, x)
    v = above + _right(trunk.convolution(x, model.first_left.weight, model.first_left.bias, 1))
    both_u, both_v = trunk.signs(u), trunk.signs(v)
    side = None if context is None else context[:, None, None].expand(*x.shape[:3], -1)
    us: list[Tensor] = []
    vs: list[Tensor] = []
    blocks = zip(gated(model.down), gated(model.across), model.shortcuts, strict=True)
    for down, across, earlier in blocks:
        u = _block(model, down, (u, both_u), _beside(down, [at(us, earlier)], side))
        both_u = trunk.signs(u)
        us.append(both_u)
        v = _block(model, across, (v, both_v), _beside(across, [both_u, at(vs, earlier)], side))
        both_v = trunk.signs(v)
        vs.append(both_v)
    return both_v


def _firsts(model: CausalConv, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what both streams read of the rows above: two convolutions as one."""
    layers = model.first_down, model.above
    weight, bias = (torch.cat([getattr(each, name) for each in layers]) for name in _LAYER)
    u, above = _down(trunk.convolution(x, weight, bias, 1)).chunk(2, -1)
    return u, above


_LAYER = ("weight", "bias")


def _block(
    model: CausalConv, block: Gated, given: tuple[Tensor, Tensor], plus: Tensor | None
) -> Tensor:
    """Maps x, shape (N, H, W, F), and elu(±x) to the block's output, with `plus` in between."""
    x, both = given
    first, second = block.first, block.second
    h = trunk.signs(trunk.convolution(both, first.weight, first.bias, first.dilation, plus))
    if block.training and model.dropout:
        # as it lies in memory there, so that the same numbers drop the same features
        planes = dropout(h.permute(0, 3, 1, 2), model.dropout, True, model.generator)
        h = planes.permute(0, 2, 3, 1)
    return trunk.gate(x, trunk.convolution(h, second.weight, second.bias, second.dilation))


def _beside(block: Gated, parts: list[Tensor | None], side: Tensor | None) -> Tensor | None:
    """Returns the linear map of the features beside a block, shape (N, H, W, F), if there are any.

    Its weights are those of the parts that are there and of the context, in this order.
    """
    found, start = None, 0
    for part in (*parts, side):
        if part is not None and block.side is not None:
            end = start + part.shape[-1]
            found = trunk.pointwise(part, block.side.weight[:, start:end], found)
            start = end
    return found


def _near(x: Tensor) -> Tensor:
    """Returns neighbours to the left, above left, above, above right, and a pixel's channels."""
    left, right = _right(x), functional.pad(x[:, :, 1:], (0, 0, 0, 1))
    return torch.cat([left, _down(left), _down(x), _down(right), x[..., :-1]], -1)


def _down(x: Tensor) -> Tensor:
    return functional.pad(x[:, :-1], (0, 0, 0, 0, 1, 0))


def _right(x: Tensor) -> Tensor:
    return functional.pad(x[:, :, :-1], (0, 0, 1, 0))
