"""Mean, variance, entropy and mode of integers that a PNN gives probabilities, by sums over them.

The sums are exact where there are at most `MOST` integers, or where that many lie between the
outermost of the quantiles that `moments.levels` takes, of probability 10⁻¹². Of a wider range all
integers that are such quantiles are summed, and of those between two neighbours, which hold 0.002
of the mass at most, a Gauss rule takes three: sums over smooth probabilities are right to 10⁻⁶ of
the standard deviation, or 10⁻⁶ nats, and single integers that stand out are met if they have 0.002
of the mass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nits.pnn import moments
from nits.pnn.cells import Edges
from nits.pnn.integers import Integers

if TYPE_CHECKING:
    from nits.pnn.distributions import PNN

BETWEEN = 3
"""How many points at most are taken between two neighbouring quantiles."""

MOST = moments.LEVELS * (1 + BETWEEN)
"""How many integers are summed one by one."""


def information(log_p: Tensor) -> Tensor:
    """Returns −p log p, the share of a value in the entropy: 0 where p is."""
    p = torch.exp(log_p)
    return -p * log_p.masked_fill(p == 0, 0.0)


def mean_and_variance(pnn: PNN, integers: Integers | Edges) -> tuple[Tensor, Tensor]:
    """Returns E K and Var K of integers under PNNs with batch shape (n,).

    By parts about an integer c in their middle, as in (14):

        E K − c = Σ_{k≥c} P(K > k) − Σ_{k<c} P(K ≤ k)
        E (K − c)² = Σ_{k≥c} (2 (k − c) + 1) P(K > k) + Σ_{k<c} (2 (c − k) − 1) P(K ≤ k)
    """
    k, weights, middle = _nodes(pnn, integers)
    edge = integers.upper_edge(k, pnn.low, pnn.high)
    right = k >= middle
    tails = weights * torch.where(right, pnn.survival(edge), pnn.cdf(edge))
    shift = torch.where(right, tails, -tails).sum(0)
    square = ((2 * (k - middle) + 1).abs() * tails).sum(0)
    return middle + shift, square - shift**2


def entropy(pnn: PNN, integers: Integers | Edges) -> Tensor:
    """Returns −Σ P(k) log P(k) in nats under PNNs with batch shape (n,)."""
    k, weights, _ = _nodes(pnn, integers)
    upper, lower = (integers.upper_edge(edge, pnn.low, pnn.high) for edge in (k, k - 1))
    return (weights * information(pnn.log_mass(lower, upper))).sum(0)


def mode(pnn: PNN, integers: Integers | Edges) -> Tensor:
    """Returns the integer of greatest probability under PNNs with batch shape (n,).

    Of more than `MOST` it is found as `moments.mode` is.
    """

    def log_prob(k: Tensor) -> Tensor:
        log_mass = pnn.log_mass(*integers.edges(k, pnn.low, pnn.high))
        return log_mass.masked_fill(torch.isinf(k), -torch.inf)

    if integers.count <= MOST:
        score, best = log_prob(_all(pnn, integers)).max(0)
        return (integers.least + best.to(score)).masked_fill(torch.isnan(score), torch.nan)
    return moments.search(pnn, integers.containing, log_prob)


def _all(pnn: PNN, integers: Integers | Edges) -> Tensor:
    """Returns every integer, shape (count, n)."""
    k = torch.arange(integers.least, integers.greatest + 1).to(pnn.theta)
    return k.unsqueeze(1).expand(-1, *pnn.batch_shape)


def _nodes(pnn: PNN, integers: Integers | Edges) -> tuple[Tensor, Tensor, Tensor]:
    """Returns points k and weights for sums over integers, shapes (S, n), and a middle integer.

    The points may lie between integers, where they stand for several.
    """
    below, above, _ = moments.levels(pnn)
    with torch.no_grad():
        knots = integers.containing(pnn.quantile(below, above))
    middle = knots[moments.LEVELS // 2]
    if integers.count <= MOST:
        k = _all(pnn, integers)
        return k, torch.ones_like(k), middle
    new = torch.cat([torch.ones_like(knots[:1]), knots.diff(dim=0).clamp(max=1)])
    between, weights = _between(knots)
    return torch.cat([knots, between]), torch.cat([new, weights]), middle


def _between(knots: Tensor) -> tuple[Tensor, Tensor]:
    """Returns points and weights for the integers strictly between neighbouring knots."""
    count = (knots.diff(dim=0) - 1).clamp(min=0)
    nodes, shares = (torch.as_tensor(a).to(knots).view(-1, 1, 1) for a in moments.gauss(BETWEEN))
    place = torch.arange(BETWEEN).to(knots).view(-1, 1, 1)
    few = count <= BETWEEN
    ahead = torch.where(few, place + 1, 0.5 + count * nodes)
    weights = torch.where(few, (place < count).to(knots), count * shares)
    return (knots[:-1] + ahead).flatten(0, 1), weights.flatten(0, 1)
