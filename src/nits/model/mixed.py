"""Mixtures of one-dimensional distributions, with quantiles by bisection over the floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks
from nits.model.steps import Steps
from nits.model.teams import Teams
from nits.pnn.random import uniform

Function = Callable[[Tensor], Tensor]
LEVELS = 512
"""Quantiles of each member by which mode and entropy are found."""

NEAR_THE_END = 1e-7
"""Where the search for the mode starts and ends: quantiles of 0 and 1 may be infinite."""

PASSES, FINER = 6, 17
"""How often that search narrows its interval, and into how many points it cuts it."""

INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}


class MixedSteps(Steps):
    """The next column of a mixture, equation (26).

    members: The steps of the K members.
    log_weights: log w_k of the rows, shape (K, N).
    """

    def __init__(self, members: Teams, log_weights: Tensor) -> None:
        self.members = members
        self.log_weights = log_weights

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns the logarithm of (26)."""
        return log_sum(self._joint(x))

    def cdf(self, x: Tensor) -> Tensor:
        """Returns the weighted mean of the members' distribution functions."""
        return (self.log_weights.exp() * self.members.each("cdf", x)).sum(0)

    def quantile(self, u: Tensor) -> Tensor:
        """Returns the least x with cdf(x) ≥ u, which lies between the members' quantiles."""
        with torch.no_grad():
            ends = self.members.each("quantile", u)
            x = least(self.cdf, u, ends.amin(0), ends.amax(0))
        return self._with_gradient(x, u) if torch.is_grad_enabled() else x

    def draw(self, u: Tensor) -> Tensor:
        """Returns values of members that u chooses, each at what is left of u, uniform again."""
        shares = self.log_weights.exp()
        reach = shares.cumsum(0)
        here = u * reach[-1]
        chosen = (here > reach[:-1]).sum(0, keepdim=True)
        inner = (here - (reach - shares).gather(0, chosen)) / shares.gather(0, chosen)
        eps = torch.finfo(u.dtype).eps
        return self.members.quantiles(chosen[0], inner.clamp(eps / 4, 1 - eps)[0])

    def _with_gradient(self, x: Tensor, u: Tensor) -> Tensor:
        """Returns x with the implicit gradient of cdf(x) = u, which is zero where the cdf jumps."""
        residual = self.cdf(x) - u
        density = self.log_prob(x).detach().exp().clamp_min(torch.finfo(x.dtype).tiny ** 0.5)
        moved = x - (residual - residual.detach()) / density
        return torch.where(self.has_mass(x), x, moved)

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns which values have a probability under some member."""
        return self.members.each("has_mass", x).any(0)

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column, which change the members' weights by Bayes' rule."""
        joint = self._joint(x)
        told = torch.where((joint == -torch.inf).all(0), self.log_weights, joint)
        self.log_weights = told.log_softmax(0)
        self.members.feed(x)

    def _joint(self, x: Tensor) -> Tensor:
        return self.log_weights + self.members.each("log_prob", x)


class MixedDistribution(Distribution):
    """A mixture of K distributions with one batch shape, as a distribution.

    parts: The distributions.
    log_weights: log w_k, shape (K, *batch).
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, parts: Sequence[Any], log_weights: Tensor) -> None:
        self.parts = list(parts)
        self.log_weights = log_weights
        super().__init__(self.parts[0].batch_shape, validate_args=False)

    @property
    def support(self) -> Any:
        """That of the first member: all describe the same column."""
        return self.parts[0].support

    def expand(self, batch_shape: Any, _instance: Distribution | None = None) -> MixedDistribution:
        """Returns this distribution with its parameters expanded to a batch shape."""
        weights = self.log_weights
        extra = len(batch_shape) - len(self.batch_shape)
        weights = weights.reshape(len(weights), *(1 for _ in range(extra)), *self.batch_shape)
        parts = [part.expand(batch_shape) for part in self.parts]
        return MixedDistribution(parts, weights.expand(-1, *batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log Σ_k w_k ν_k(x)."""
        parts = [
            part.log_prob(value) + w for part, w in zip(self.parts, self.log_weights, strict=True)
        ]
        return log_sum(torch.stack(parts))

    def cdf(self, value: Tensor) -> Tensor:
        """Returns Σ_k w_k P_k(X ≤ x)."""
        return self._mean([part.cdf(value) for part in self.parts])

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the least x with cdf(x) ≥ u."""
        u = checks.probability(value)
        shape = torch.broadcast_shapes(u.shape, self.batch_shape)
        with torch.no_grad():
            ends = torch.stack([part.icdf(u).expand(shape) for part in self.parts])
            return least(self.cdf, u.expand(shape), ends.amin(0), ends.amax(0))

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws values."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.log_weights, generator))

    @property
    def mean(self) -> Tensor:
        """Σ_k w_k E_k X."""
        return self._mean([part.mean for part in self.parts])

    @property
    def variance(self) -> Tensor:
        """Σ_k w_k (Var_k X + (E_k X − E X)²)."""
        mean = self.mean
        return self._mean([part.variance + (part.mean - mean) ** 2 for part in self.parts])

    @property
    def mode(self) -> Tensor:
        """The value of greatest log_prob among the members' quantiles and around the best."""
        with torch.no_grad():
            x = self._quantiles(torch.linspace(NEAR_THE_END, 1 - NEAR_THE_END, LEVELS))
            x = x.sort(0).values
            for _ in range(PASSES):
                best = self.log_prob(x).argmax(0, keepdim=True)
                left, right = (x.gather(0, (best + i).clamp(0, len(x) - 1)) for i in (-1, 1))
                found = x.gather(0, best)
                finer = (
                    torch.linspace(0, 1, FINER).to(x).reshape(-1, *(1 for _ in self.batch_shape))
                )
                between = left + (right - left) * finer
                between = between.round() if self.support.is_discrete else between
                x = torch.cat([found, between]).sort(0).values
        return found.squeeze(0)

    def entropy(self) -> Tensor:
        """Returns −E log P(X) in nats: exact for finitely many values, else by quantiles."""
        if all(hasattr(part, "probs") for part in self.parts):
            weights = self.log_weights.unsqueeze(-1)
            logits = log_sum(torch.stack([part.logits for part in self.parts]) + weights)
            finite = logits.masked_fill(logits == -torch.inf, 0.0)
            found: Tensor = -(logits.exp() * finite).sum(-1)
            return found
        middles = (torch.arange(LEVELS) + 0.5) / LEVELS
        each: Tensor = self.log_prob(self._quantiles(middles))
        log_prob: Tensor = each.unflatten(0, (len(self.parts), -1))
        return -(self.log_weights.exp() * log_prob.mean(1)).sum(0)

    def _quantiles(self, levels: Tensor) -> Tensor:
        """Returns quantiles of each member, shape (K · levels, *)."""
        u = levels.to(self.log_weights).reshape(-1, *(1 for _ in self.batch_shape))
        u = u.expand(-1, *self.batch_shape)
        return torch.cat([part.icdf(u) for part in self.parts])

    def _mean(self, parts: list[Tensor]) -> Tensor:
        pairs = zip(self.log_weights.exp(), parts, strict=True)
        return torch.stack([w * part for w, part in pairs]).sum(0)


def log_sum(parts: Tensor) -> Tensor:
    """Returns log Σ_k exp(parts), shape (K, *) to (*); if all are −inf, −inf with gradient 0."""
    none = (parts == -torch.inf).all(0)
    return parts.masked_fill(none, 0.0).logsumexp(0).masked_fill(none, -torch.inf)


def least(cdf: Function, u: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Returns the least float x in [low, high] with cdf(x) ≥ u, by bisection.

    Each step halves the number of floats that are left, so at most 32 steps, or 64 in float64,
    find x exactly, whether it is an integer, an atom or any other number.
    """
    kind = INTEGERS[u.dtype]
    left, right = ranked(low, kind) - 1, ranked(high, kind)
    for _ in range(torch.iinfo(kind).bits):
        middle = (left >> 1) + (right >> 1) + (left & right & 1)
        inside = middle > left
        if not bool(inside.any()):
            break
        reached = cdf(unranked(middle, u.dtype)) >= u
        right = torch.where(reached & inside, middle, right)
        left = torch.where(~reached & inside, middle, left)
    return torch.where(torch.isnan(u) | torch.isnan(low), torch.nan, unranked(right, u.dtype))


def ranked(x: Tensor, kind: torch.dtype) -> Tensor:
    """Returns integers in the order of floating-point numbers x, neighbours one apart."""
    bits = x.contiguous().view(kind)
    return torch.where(bits < 0, torch.iinfo(kind).min - bits, bits)


def unranked(rank: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns the floating-point numbers that `ranked` counted."""
    kind = INTEGERS[dtype]
    return torch.where(rank < 0, torch.iinfo(kind).min - rank, rank).view(dtype)
