"""The exact recursion: what `nits.pnn.plain` computes, without losing a digit to a difference.

Pure tensor functions. Weights and units come first, the batch last: θ has shape (P, *), a layer of
h units (h, *), a matrix (out, in, *), a point x (*). docs/maths.md derives the numbered formulas.
The idea: a unit σ(z) on a support with ends A and B enters only through the share of its rise that
lies below or above a point,

    f = (σ(z) − σ(z_A)) / (σ(z_B) − σ(z_A)),    f̄ = 1 − f,                                (9)

so each layer maps shares in [0, 1] to shares in [0, 1] and the network is normalized by
construction. Both f and f̄ are carried, each to full relative precision, and nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nits.pnn import intervals
from nits.pnn.logistic import kappa, log_kappa, positive, straight, tail
from nits.pnn.plain import Theta, log_weights, unpack


class Units(NamedTuple):
    """A layer of units σ(z) on the support [A, B], shapes (h, *)."""

    low: Tensor  # z_A, z at the lower end
    high: Tensor  # z_B, z at the upper end
    width: Tensor  # D = z_B − z_A
    shrink: Tensor  # κ(D)
    tail_low: Tensor  # log(1 + e^−|z_A|)
    tail_high: Tensor  # log(1 + e^−|z_B|)


class First(NamedTuple):
    """The layer that reads x: z = W (x − b), shapes (h, *)."""

    weight: Tensor  # W
    centre: Tensor  # b
    units: Units


class Deep(NamedTuple):
    """A layer that reads units: z − z_A is a weighted sum of the shares f of the units below."""

    weight: Tensor  # W, shape (out, in, *)
    log_rise: Tensor  # log ρ, the rises of the units below over the largest of them, shape (in, *)
    mixed: Tensor  # Σ_i W_ji ρ_i, shape (out, *)
    scale: Tensor  # D / mixed, so that z_j − z_A,j = scale_j Σ_i W_ji ρ_i f_i
    units: Units


class Normalized(NamedTuple):
    """A PNN normalized on its support [low, high]: all that does not depend on the point."""

    low: Tensor
    high: Tensor
    first: First
    deep: tuple[Deep, ...]
    log_share: Tensor  # log q, the last units' shares of the total rise, shape (h, *); Σ q = 1


class Point(NamedTuple):
    """The units of a layer at a point x, shapes (h, *)."""

    below: Tensor  # f, the share of the unit's rise that lies below x
    above: Tensor  # f̄, the share above x
    log_fall: Tensor  # log σ(z) − log σ(z_B)
    log_climb: Tensor  # log σ(−z) − log σ(−z_A)


def normalized(theta: Theta, low: Tensor, high: Tensor, hidden: Sequence[int]) -> Normalized:
    """Returns the PNN with weights theta, shape (P, *), on the support [low, high], shapes (*)."""
    ((A, b), *rest), last = unpack(theta, hidden)
    first = _first(A, b, low, high)
    units = first.units
    log_rise = _log_rise(units, torch.log(units.shrink))
    deep = []
    for A, b in rest:
        layer, log_width = _deep(A, b, units, log_rise)
        deep.append(layer)
        units = layer.units
        log_rise = _log_rise(units, log_kappa(log_width))
    return Normalized(low, high, first, tuple(deep), torch.log_softmax(last + log_rise, 0))


def cdf(pnn: Normalized, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns N(x) and 1 − N(x), equation (4), each to full relative precision."""
    return _cdf(pnn, _trace(pnn, x)[-1])


def log_density(pnn: Normalized, x: Tensor) -> Tensor:
    """Returns log ν(x), equation (5), for x in the support."""
    points = _trace(pnn, x)
    log_slope = _log_slope(pnn.first.units, points[0], torch.log(pnn.first.weight))
    for layer, point in zip(pnn.deep, points[1:], strict=True):
        log_dz = torch.log(layer.units.width) + _log_mix(layer, log_slope)
        log_slope = _log_slope(layer.units, point, log_dz)
    return torch.logsumexp(pnn.log_share + log_slope, 0)


def cdf_and_density(pnn: Normalized, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns N(x), 1 − N(x) and ν(x), which may underflow to zero, from one evaluation of F."""
    points = _trace(pnn, x)
    slope = _slope(pnn.first.units, points[0], pnn.first.weight)
    for layer, point in zip(pnn.deep, points[1:], strict=True):
        dz = layer.scale * (layer.weight * (torch.exp(layer.log_rise) * slope)).sum(1)
        slope = _slope(layer.units, point, dz)
    return *_cdf(pnn, points[-1]), (torch.exp(pnn.log_share) * slope).sum(0)


def log_mass(pnn: Normalized, s: Tensor, t: Tensor) -> Tensor:
    """Returns log P(s < X ≤ t), equations (6)–(8), for low ≤ s ≤ t ≤ high; −inf where s = t.

    The recursion is that of `log_density`, with each unit's share of rise between the points in
    place of its slope.
    """
    starts, ends = _trace(pnn, s), _trace(pnn, t)
    log_share = intervals.first_log_share(pnn, (s, t), starts[0], ends[0])
    for layer, start, end in zip(pnn.deep, starts[1:], ends[1:], strict=True):
        log_g = _log_mix(layer, log_share)
        log_share = intervals.deep_log_share(layer.units, log_g, start, end)
    total = torch.logsumexp(pnn.log_share + log_share, 0)
    return total.masked_fill(s >= t, -torch.inf)


def _first(A: Tensor, b: Tensor, low: Tensor, high: Tensor) -> First:
    """Returns the first layer; an infinite end is a constant, through which no gradient passes."""
    W = torch.exp(log_weights(A))
    open_low, open_high = torch.isinf(low), torch.isinf(high)
    low, high = _finite(low), _finite(high)
    z_low = torch.where(open_low, -torch.inf, W * (low - b))
    z_high = torch.where(open_high, torch.inf, W * (high - b))
    width = torch.where(open_low | open_high, torch.inf, W * (high - low))
    return First(W, b, _units(z_low, z_high, width))


def _deep(A: Tensor, b: Tensor, below: Units, log_rise: Tensor) -> tuple[Deep, Tensor]:
    """Returns a deeper layer, and log D, which is exact where D itself would underflow."""
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
    """Returns log(σ(z_B) − σ(z_A)) = log κ(D) + log σ(z_B) + log σ(−z_A), equation (7)."""
    return (
        log_shrink - positive(-units.high) - units.tail_high - positive(units.low) - units.tail_low
    )


def _trace(pnn: Normalized, x: Tensor) -> list[Point]:
    """Follows x through the network; returns the units of each layer there."""
    points = [_first_point(pnn, x)]
    for layer in pnn.deep:
        rise = torch.exp(layer.log_rise)
        lower = layer.scale * (layer.weight * (rise * points[-1].below)).sum(1)
        upper = layer.scale * (layer.weight * (rise * points[-1].above)).sum(1)
        z = torch.where(upper < lower, layer.units.high - upper, layer.units.low + lower)
        points.append(_point(layer.units, z, lower, upper))
    return points


def _first_point(pnn: Normalized, x: Tensor) -> Point:
    """Returns the first layer at x; x = ±∞ is an end of the support, where shares are 0 and 1."""
    W, b, units = pnn.first
    start, end, inside = x == -torch.inf, x == torch.inf, _finite(x)
    lower = torch.where(torch.isinf(pnn.low), torch.inf, W * (inside - _finite(pnn.low)))
    upper = torch.where(torch.isinf(pnn.high), torch.inf, W * (_finite(pnn.high) - inside))
    point = _point(units, W * (inside - b), lower, upper)
    return Point(
        point.below.masked_fill(start, 0.0).masked_fill(end, 1.0),
        point.above.masked_fill(start, 1.0).masked_fill(end, 0.0),
        point.log_fall.masked_fill(end, 0.0),
        point.log_climb.masked_fill(start, 0.0),
    )


def _finite(x: Tensor) -> Tensor:
    """Returns x with 0 in place of ±∞; the caller puts the true value in afterwards."""
    return x.masked_fill(torch.isinf(x), 0.0)


def _point(units: Units, z: Tensor, lower: Tensor, upper: Tensor) -> Point:
    """Returns the units at z by equation (9), given exact lower = z − z_A and upper = z_B − z.

        f = (σ(z) / σ(z_B)) κ(z − z_A) / κ(D),    f̄ = (σ(−z) / σ(−z_A)) κ(z_B − z) / κ(D)

    The logarithms of both ratios of σ are differences of softplus, computed as in (10).
    """
    tail_z = tail(z)
    log_fall = units.tail_high - tail_z - torch.where(units.high > 0, positive(-z), upper)
    log_climb = units.tail_low - tail_z - torch.where(units.low < 0, positive(z), lower)
    below = torch.exp(log_fall) * (kappa(lower) / units.shrink)
    above = torch.exp(log_climb) * (kappa(upper) / units.shrink)
    return Point(below, above, log_fall, log_climb)


def _cdf(pnn: Normalized, point: Point) -> tuple[Tensor, Tensor]:
    """Returns Σ q f and Σ q f̄ over their sum, 1 up to rounding, so that neither exceeds 1."""
    share = torch.exp(pnn.log_share)
    below, above = (share * point.below).sum(0), (share * point.above).sum(0)
    return below / (below + above), above / (below + above)


def _log_mix(layer: Deep, log_f: Tensor) -> Tensor:
    """Returns log(Σ_i W_ji ρ_i f_i / Σ_i W_ji ρ_i), where the largest term cannot underflow."""
    log_terms = layer.log_rise + log_f
    top = log_terms.amax(0, keepdim=True).detach()
    # The logarithm of the quotient: each of the two alone may be 23, which float32 rounds at 1e-6.
    return top + torch.log((layer.weight * torch.exp(log_terms - top)).sum(1) / layer.mixed)


def _slope(units: Units, point: Point, dz: Tensor) -> Tensor:
    """Returns f′ = σ′(z) z′ / (σ(z_B) − σ(z_A)), through (7)."""
    return torch.exp(point.log_fall + point.log_climb) * (dz / units.shrink)


def _log_slope(units: Units, point: Point, log_dz: Tensor) -> Tensor:
    """Returns log f′ = log σ′(z) + log z′ − log(σ(z_B) − σ(z_A)), through (7)."""
    return point.log_fall + point.log_climb + log_dz - torch.log(units.shrink)
