"""Where training starts: PNN weights that follow a column's quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from nits import places
from nits.pnn import network
from nits.pnn.plain import LOG_WEIGHT_BOUND, log_weights

SMOOTHING = 1.5
"""Width of a first-layer unit, in gaps between the centres."""


def from_quantiles(x: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns θ, shape (P,), of a PNN that follows the distribution of x, shape (N,).

    The centres of the first layer's h units are the quantiles (i + ½)/h, and each unit is about as
    wide as the gaps to its neighbours, so that their mean is a smooth version of the cdf. Every
    unit of a later layer reads the plain mean of the layer below and has its centre at (j + ½)/h:
    the mean of these steps over [0, 1] is close to the identity.
    """
    h = hidden[0]
    x = x if len(x) else x.new_zeros(1)
    levels = (torch.arange(h, dtype=x.dtype, device=x.device) + 0.5) / h
    centres = quantiles(x, levels)
    # A logistic of scale s has density 1 / (4 s) at its centre: that of the data if s = gap / 4.
    log_scale = torch.log(SMOOTHING * _gaps(centres, x) / 4)
    parts = [from_log_weights(-log_scale.clamp(-19.0, 19.0)), centres]
    for fan_in, width in pairwise(hidden):
        steepness = torch.full(
            (width * fan_in,), 4.0 * width / (SMOOTHING * fan_in), dtype=x.dtype, device=x.device
        )
        steps = (torch.arange(width, dtype=x.dtype, device=x.device) + 0.5) / width
        parts += [from_log_weights(torch.log(steepness)), steps]
    return torch.cat([*parts, x.new_zeros(hidden[-1])])


def quantiles(x: Tensor, levels: Tensor) -> Tensor:
    """Returns quantiles of x, shape (N,), by sorting: torch.quantile stops at 16 million values."""
    ordered = x.sort().values
    position = levels * (len(ordered) - 1)
    low = position.floor().long()
    high = (low + 1).clamp_max(len(ordered) - 1)
    return torch.lerp(ordered[low], ordered[high], position - low)


REACH = 1.5
"""How far beyond the middle 80 %, in widths of it, values count as they are for a normal law."""


class Line(NamedTuple):
    """Guesses of values, and how far to trust them.

    guess: A guess of each value, shape (N,).
    share: The probability that a value follows its guess.
    normal: Whether it then does so with a normal error, and not with one like those of the values.
    """

    guess: Tensor
    share: float
    normal: bool

    def of(self, some: Tensor) -> Line:
        """Returns the guesses of some of the values."""
        return self._replace(guess=self.guess[some])


def with_line(x: Tensor, line: Line, units: int) -> Tensor:
    """Returns θ, shape (P,), of a PNN with one layer, of which the first half follows a guess.

    The centres of that half are offsets from the guess. The other half follows x, shape (N,).
    """
    count = units // 2
    start = from_moments if line.normal else from_quantiles
    following = start(x - line.guess, (count,)).tensor_split(3)
    others = from_quantiles(x, (units - count,)).tensor_split(3)
    share = x.new_tensor([line.share, 1 - line.share]).log()
    logits = [
        part[2].log_softmax(0) + weight
        for part, weight in zip((following, others), share, strict=True)
    ]
    return torch.cat([following[0], others[0], following[1], others[1], *logits])


def from_moments(x: Tensor, hidden: Sequence[int]) -> Tensor:
    """Returns θ, shape (P,), of a PNN close to a normal law with mean and variance of x, (N,).

    Values far out, five standard deviations if they are normal, are moved to that limit before.
    """
    h = hidden[0]
    x = x if len(x) else x.new_zeros(1)
    low, high = quantiles(x, x.new_tensor([0.1, 0.9]))
    x = x.clamp(low - REACH * (high - low), high + REACH * (high - low))
    scale = x.std(correction=0).clamp_min(torch.finfo(x.dtype).tiny)
    slopes, centres, rest = standard_normal(tuple(hidden)).to(x).tensor_split([h, 2 * h])
    log_weight = (log_weights(slopes) - scale.log()).clamp(-19.0, 19.0)
    return torch.cat([from_log_weights(log_weight), x.mean() + scale * centres, rest])


@lru_cache
def standard_normal(hidden: tuple[int, ...]) -> Tensor:
    """Returns θ, shape (P,), of the PNN that is closest to a standard normal law, in float64."""
    x = torch.linspace(-6, 6, 601, dtype=torch.float64)
    share = torch.exp(-x.square() / 2)
    share /= share.sum()
    ends = x.new_tensor(-torch.inf), x.new_tensor(torch.inf)
    levels = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    theta = from_quantiles(torch.special.ndtri(levels), hidden).requires_grad_()
    places.ready_for_torch()
    search = torch.optim.LBFGS([theta], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        pnn = network.normalized(theta.unsqueeze(1), *ends, hidden)
        missed = -(share * network.log_density(pnn, x)).sum()
        missed.backward()
        return missed

    with torch.enable_grad():
        search.step(loss)
    return theta.detach()


def spread_out(k: Tensor) -> Tensor:
    """Returns integers k, shape (N,), spread evenly over [k, k + 1); NaN stays NaN."""
    # Multiples of the golden ratio fill each interval evenly, however many values it holds.
    jitter = (torch.arange(len(k), dtype=torch.float64, device=k.device) * 0.6180339887498949) % 1
    return k + torch.empty_like(k).index_put((k.argsort(stable=True),), jitter.to(k.dtype))


def _gaps(centres: Tensor, x: Tensor) -> Tensor:
    """Returns the mean gap beside each centre; for ties, a small part of the range, never zero."""
    if len(centres) == 1:
        return (x.std(correction=0) * 2.2).clamp_min(1e-3).reshape(1)
    gaps = centres.diff()
    around = torch.cat([gaps[:1], (gaps[1:] + gaps[:-1]) / 2, gaps[-1:]])
    span = (centres[-1] - centres[0]).clamp_min(1e-3)
    return around.clamp_min(1e-2 * span / len(centres))


def from_log_weights(log_weight: Tensor) -> Tensor:
    """Returns A with log W = log_weight, |log_weight| < 20: the inverse of `plain.log_weights`."""
    return -log_weight * torch.rsqrt(1 - (log_weight / LOG_WEIGHT_BOUND) ** 2)
