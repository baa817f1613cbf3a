"""The PNN: an increasing network of one variable, and every quantity that is a difference of it.

Pure tensor functions. Weights and units come first, the batch last: theta has shape (P, *), a layer
of h units (h, *), a matrix (out, in, *), a point x (*). `docs/maths.md` derives the numbered
formulas. The idea: a unit σ(z) on a support with ends A and B is used only through the share of its
rise below or above a point,

    f = (σ(z) − σ(z_A)) / (σ(z_B) − σ(z_A)),    f̄ = 1 − f,                                (9)

so each layer maps shares in [0, 1] to shares in [0, 1] and the whole network is normalized by
construction. Both f and f̄ are carried, each to full relative precision, and nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from nits.pnn.logistic import kappa, log_kappa, positive, straight, tail

Theta = Tensor | Sequence[Tensor]  # whole, or in the parts that `sizes` counts

LOG_WEIGHT_BOUND = 20.0  # weights W stay in (e⁻²⁰, e²⁰), which float32 carries


class Units(NamedTuple):
    """A layer of units σ(z) over the support: where z starts and ends, shapes (h, *)."""

    low: Tensor  # z at the lower end A
    high: Tensor  # z at the upper end B
    width: Tensor  # D = z_B − z_A
    shrink: Tensor  # κ(D)
    tail_low: Tensor  # log(1 + e^−|z|) at A
    tail_high: Tensor  # and at B


class First(NamedTuple):
    """The layer that reads x: z = W (x − b), shapes (h, *)."""

    weight: Tensor
    centre: Tensor
    units: Units


class Deep(NamedTuple):
    """A layer that reads units: z = W (a − b), as a mixture of the shares of the units below."""

    weight: Tensor  # W, shape (out, in, *)
    log_rise: Tensor  # log of the rise of the units below, the largest set to 0, shape (in, *)
    mixed: Tensor  # W e^(log rise), shape (out, *)
    scale: Tensor  # D over it, so that z − z_A is scale · W (e^(log rise) f)
    units: Units


class Frame(NamedTuple):
    """A PNN laid over its support [low, high]: what remains is to name a point."""

    low: Tensor
    high: Tensor
    first: First
    deep: tuple[Deep, ...]
    log_share: Tensor  # share of the last hidden units in the total rise, shape (h, *); sums to one


class Point(NamedTuple):
    """What every unit of a layer says of a point x, shapes (h, *)."""

    below: Tensor  # f, the share of the unit's rise below x
    above: Tensor  # f̄, the share above x
    log_fall: Tensor  # log σ(z) − log σ(z_B)
    log_climb: Tensor  # log σ(−z) − log σ(−z_A)


def parameters(hidden: Sequence[int]) -> int:
    """Returns P, the number of weights of a PNN with these hidden layers: 320 for (16, 16)."""
    return sum(sizes(hidden))


def sizes(hidden: Sequence[int]) -> list[int]:
    """Returns how many weights each part of θ has: matrix and centres of each layer, and the last matrix."""
    return [size for fan_in, h in pairwise((1, *hidden)) for size in (fan_in * h, h)] + [hidden[-1]]


def unpack(theta: Theta, hidden: Sequence[int]) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Splits θ into (A, b) of each hidden layer, A as (h, *) or (out, in, *), and the last A."""
    *parts, last = theta.split(sizes(hidden)) if isinstance(theta, Tensor) else theta
    layers = list(zip(parts[::2], parts[1::2], strict=True))
    deep = [(A.unflatten(0, (b.shape[0], -1)), b) for A, b in layers[1:]]
    return [layers[0], *deep], last


def log_weights(A: Tensor) -> Tensor:
    """Returns log W = −A / √(1 + (A/20)²), equation (1): within ±20, and −A to 1 % up to |A| = 2.8."""
    return -A * torch.rsqrt(1 + (A * (1 / LOG_WEIGHT_BOUND)) ** 2)


def frame(theta: Theta, low: Tensor, high: Tensor, hidden: Sequence[int]) -> Frame:
    """Lays the PNN with weights theta, shape (P, *), over the support [low, high], shapes (*)."""
    (top, *rest), last = unpack(theta, hidden)
    first = _first(*top, low, high)
    units, log_rise = first.units, _log_rise(first.units, torch.log(first.units.shrink))
    deep = []
    for A, b in rest:
        layer, log_width = _deep(A, b, units, log_rise)
        deep.append(layer)
        units, log_rise = layer.units, _log_rise(layer.units, log_kappa(log_width))
    return Frame(low, high, first, tuple(deep), torch.log_softmax(last + log_rise, 0))


def cdf(at: Frame, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns N(x) and 1 − N(x), equation (4), each to full relative precision."""
    return _cdf(at, _trace(at, x)[-1])


def log_density(at: Frame, x: Tensor) -> Tensor:
    """Returns log ν(x), equation (5), for x in the support."""
    return _log_density(at, _trace(at, x))


def cdf_and_density(at: Frame, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns N(x), 1 − N(x) and ν(x) for the price of one evaluation of F; ν(x) may underflow to zero."""
    points = _trace(at, x)
    slope = _slope(at.first.units, points[0], at.first.weight)
    for layer, point in zip(at.deep, points[1:], strict=True):
        dz = layer.scale * (layer.weight * (torch.exp(layer.log_rise) * slope)).sum(1)
        slope = _slope(layer.units, point, dz)
    return *_cdf(at, points[-1]), (torch.exp(at.log_share) * slope).sum(0)


def log_mass(at: Frame, s: Tensor, t: Tensor) -> Tensor:
    """Returns log P(s < X ≤ t), equations (6)–(8), for low ≤ s ≤ t ≤ high; −inf where s = t."""
    starts, ends = _trace(at, s), _trace(at, t)
    rise = _log_share_between(starts[0], ends[0], _first_log_shrink(at, s, t))
    for layer, start, end in zip(at.deep, starts[1:], ends[1:], strict=True):
        log_g = _log_mix(layer, rise)
        log_shrink = _log_shrink(layer.units, log_g, torch.log(layer.units.width) + log_g)
        rise = _telescoping(_log_share_between(start, end, log_shrink), layer.units, start, end)
    total = torch.logsumexp(at.log_share + rise, 0)
    return total.masked_fill(s >= t, -torch.inf)


def _first(A: Tensor, b: Tensor, low: Tensor, high: Tensor) -> First:
    """Layer one over the support; an infinite end is a constant, so that no gradient passes through it."""
    W = torch.exp(log_weights(A))
    open_low, open_high = torch.isinf(low), torch.isinf(high)
    a, c = _finite(low), _finite(high)
    z_low = torch.where(open_low, -torch.inf, W * (a - b))
    z_high = torch.where(open_high, torch.inf, W * (c - b))
    width = torch.where(open_low | open_high, torch.inf, W * (c - a))
    return First(W, b, _units(z_low, z_high, width))


def _deep(A: Tensor, b: Tensor, below: Units, log_rise: Tensor) -> tuple[Deep, Tensor]:
    """A deeper layer, and log D, which may lie far under what D itself can hold."""
    W = torch.exp(log_weights(A))
    top = log_rise.amax(0, keepdim=True).detach()
    mixed = (W * torch.exp(log_rise - top)).sum(1)
    log_width = top + torch.log(mixed)
    width = torch.exp(log_width)
    width = torch.where(width < straight(width.dtype), straight(width.dtype), width)
    z_low = (W * (torch.sigmoid(below.low) - b.unsqueeze(1))).sum(1)
    units = _units(z_low, z_low + width, width)
    return Deep(W, log_rise - top, mixed, width / mixed, units), log_width


def _units(low: Tensor, high: Tensor, width: Tensor) -> Units:
    return Units(low, high, width, kappa(width), tail(low), tail(high))


def _log_rise(units: Units, log_shrink: Tensor) -> Tensor:
    """Returns log(σ(z_B) − σ(z_A)), equation (7) over the whole support."""
    return (
        log_shrink - positive(-units.high) - units.tail_high - positive(units.low) - units.tail_low
    )


def _trace(at: Frame, x: Tensor) -> list[Point]:
    """Follows x through the network: what each layer's units say of it."""
    points = [_first_point(at, x)]
    for layer in at.deep:
        rise = torch.exp(layer.log_rise)
        lower = layer.scale * (layer.weight * (rise * points[-1].below)).sum(1)
        upper = layer.scale * (layer.weight * (rise * points[-1].above)).sum(1)
        z = torch.where(upper < lower, layer.units.high - upper, layer.units.low + lower)
        points.append(_point(layer.units, z, lower, upper))
    return points


def _first_point(at: Frame, x: Tensor) -> Point:
    """Layer one at x; at x = ±∞, which is then an end of the support, its shares are 0 and 1."""
    W, b, units = at.first
    start, end, inside = x == -torch.inf, x == torch.inf, _finite(x)
    lower = torch.where(torch.isinf(at.low), torch.inf, W * (inside - _finite(at.low)))
    upper = torch.where(torch.isinf(at.high), torch.inf, W * (_finite(at.high) - inside))
    point = _point(units, W * (inside - b), lower, upper)
    return Point(
        point.below.masked_fill(start, 0.0).masked_fill(end, 1.0),
        point.above.masked_fill(start, 1.0).masked_fill(end, 0.0),
        point.log_fall.masked_fill(end, 0.0),
        point.log_climb.masked_fill(start, 0.0),
    )


def _finite(x: Tensor) -> Tensor:
    """Returns x with 0 for ±∞: a stand-in where the true value is put in afterwards."""
    return x.masked_fill(torch.isinf(x), 0.0)


def _point(units: Units, z: Tensor, lower: Tensor, upper: Tensor) -> Point:
    """Equation (9) through identity (7), with lower = z − z_A and upper = z_B − z known precisely.

    f = (σ(z) / σ(z_B)) κ(z − z_A) / κ(D),    f̄ = (σ(−z) / σ(−z_A)) κ(z_B − z) / κ(D)

    and log(σ(z) / σ(z_B)) is the softplus gap (10) from −z_B to −z, log(σ(−z) / σ(−z_A)) that from
    z_A to z.
    """
    tail_z = tail(z)
    log_fall = units.tail_high - tail_z - torch.where(units.high > 0, positive(-z), upper)
    log_climb = units.tail_low - tail_z - torch.where(units.low < 0, positive(z), lower)
    below = torch.exp(log_fall) * (kappa(lower) / units.shrink)
    above = torch.exp(log_climb) * (kappa(upper) / units.shrink)
    return Point(below, above, log_fall, log_climb)


def _first_log_shrink(at: Frame, s: Tensor, t: Tensor) -> Tensor:
    """Returns log(κ(W (t − s)) / κ(D)); an empty interval gets any finite value."""
    W, units = at.first.weight, at.first.units
    infinite, open_support = torch.isinf(t - s), torch.isinf(at.high - at.low)
    width = torch.where((s >= t) | infinite, torch.ones_like(s), t - s)
    support = (at.high - at.low).masked_fill(open_support, 1.0)
    log_shrink = _log_shrink(units, torch.log(width / support), torch.log(W) + torch.log(width))
    return torch.where(infinite, -torch.log(units.shrink), log_shrink)


def _log_shrink(units: Units, log_g: Tensor, log_h: Tensor) -> Tensor:
    """Returns log(κ(h) / κ(D)), where h = D g is an interval's share g of the width D.

    With φ(h) = κ(h) / h it is also log g + log φ(h) − log φ(D), in which nothing large cancels for
    D < 1.
    """
    flat = units.width < 1
    h, width = torch.exp(log_h), torch.where(flat, units.width, torch.ones_like(units.width))
    small = ~flat | (h < straight(h.dtype))
    h = torch.where(small, torch.ones_like(h), h)
    log_phi = torch.where(small, torch.zeros_like(h), torch.log(kappa(h) / h))
    log_ratio = log_g + log_phi - torch.log(kappa(width) / width)
    return torch.where(flat, log_ratio, log_kappa(log_h) - torch.log(units.shrink))


def _log_share_between(start: Point, end: Point, log_shrink: Tensor) -> Tensor:
    """Returns log of the share of each unit's rise between two points: (7) over (7)."""
    return end.log_fall + start.log_climb + log_shrink


def _telescoping(log_share: Tensor, units: Units, start: Point, end: Point) -> Tensor:
    """Returns the log shares of a deep layer, those of steep units as plain differences, equation (11).

    A steep unit magnifies the rounding of its input by its width D, so that intervals which meet at
    a point would not agree about it. Where the share exceeds 1/D the difference of the shares below
    the two points is as accurate as they are, and telescopes; the smaller shares need (7).
    """
    upper = start.below > start.above
    difference = torch.where(upper, start.above - end.above, end.below - start.below)
    plain = torch.maximum(difference, torch.exp(log_share)) * units.width > 1
    plain = plain & (units.width > 1) & (difference > 0)
    return torch.where(plain, torch.log(torch.where(plain, difference, 1.0)), log_share)


def _cdf(at: Frame, point: Point) -> tuple[Tensor, Tensor]:
    """Mixes the last units' shares; divided by their sum, one but for rounding, neither can exceed one."""
    share = torch.exp(at.log_share)
    below, above = (share * point.below).sum(0), (share * point.above).sum(0)
    return below / (below + above), above / (below + above)


def _log_mix(layer: Deep, rise: Tensor) -> Tensor:
    """Returns log(W e^(log rise + rise) / W e^(log rise)): not all terms can underflow at once."""
    log_terms = layer.log_rise + rise
    top = log_terms.amax(0, keepdim=True).detach()
    # The logarithm of the quotient: each of the two alone may be 23, which float32 rounds at 1e-6.
    return top + torch.log((layer.weight * torch.exp(log_terms - top)).sum(1) / layer.mixed)


def _log_density(at: Frame, points: list[Point]) -> Tensor:
    """The slope is the recursion of the mass with Δz in place of κ(Δz)."""
    rise = _log_slope(at.first.units, points[0], torch.log(at.first.weight))
    for layer, point in zip(at.deep, points[1:], strict=True):
        rise = _log_slope(layer.units, point, torch.log(layer.units.width) + _log_mix(layer, rise))
    return torch.logsumexp(at.log_share + rise, 0)


def _slope(units: Units, point: Point, dz: Tensor) -> Tensor:
    """Returns f′ = σ′(z) z′ / (σ(z_B) − σ(z_A)), through (7)."""
    return torch.exp(point.log_fall + point.log_climb) * (dz / units.shrink)


def _log_slope(units: Units, point: Point, log_dz: Tensor) -> Tensor:
    """Returns log f′ = log σ′(z) + log z′ − log(σ(z_B) − σ(z_A)), through (7)."""
    return point.log_fall + point.log_climb + log_dz - torch.log(units.shrink)
