"""torch.distributions faces of the PNN: a density, and the exact pmf of its quantized version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.pnn import moments, network, roots
from nits.pnn.random import uniform

Size = torch.Size | Sequence[int]


class PNN(Distribution):
    """The density of a PNN on [low, high], either end of which may be infinite.

    theta: Weights, shape (*, P) with P = pnn_parameters(hidden); the batch shape is
        theta.shape[:-1].
    low, high: Ends of the support, numbers or tensors that broadcast to the batch shape.
    hidden: Widths of the hidden layers.
    """

    arg_constraints: ClassVar = {"theta": constraints.real_vector}
    has_rsample = True

    def __init__(
        self,
        theta: Tensor,
        low: Tensor | float,
        high: Tensor | float,
        hidden: Sequence[int] = (16, 16),
    ) -> None:
        self.hidden = checks.hidden(hidden)
        self.theta = checks.theta(theta, network.parameters(self.hidden), self.hidden)
        self.low, self.high = checks.support(low, high, self.theta)
        self._frame: network.Frame | None = None
        super().__init__(self.theta.shape[:-1], validate_args=False)

    @property
    def support(self) -> Any:
        """The interval [low, high], as a constraint."""
        return constraints.interval(self.low, self.high)

    @property
    def frame(self) -> network.Frame:
        """The network over its support, with a last dimension for points: shapes (…, *batch, 1)."""
        if self._frame is None:
            theta = self.theta.movedim(-1, 0).unsqueeze(-1)
            self._frame = network.frame(
                theta, self.low.unsqueeze(-1), self.high.unsqueeze(-1), self.hidden
            )
        return self._frame

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> PNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        theta = self.theta.expand(*shape, self.theta.shape[-1])
        return type(self)(theta, self.low.expand(shape), self.high.expand(shape), self.hidden)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log ν(x), equation (5): −inf outside the support, NaN for NaN."""
        x, shape = self._points(checks.real("x", value, self.theta))
        outside = (x < self.frame.low) | (x > self.frame.high) | torch.isinf(x)
        log_density = network.log_density(
            self.frame, self._inside(x).masked_fill(torch.isinf(x), 0.0)
        )
        return self._restore(log_density.masked_fill(outside, -torch.inf), shape)

    def cdf(self, value: Tensor) -> Tensor:
        """Returns N(x), equation (4): 0 below the support, 1 above it."""
        x, shape = self._points(checks.real("x", value, self.theta))
        return self._restore(network.cdf(self.frame, self._inside(x))[0], shape)

    def survival(self, value: Tensor) -> Tensor:
        """Returns 1 − N(x) to full relative precision."""
        x, shape = self._points(checks.real("x", value, self.theta))
        return self._restore(network.cdf(self.frame, self._inside(x))[1], shape)

    def log_mass(self, s: Tensor, t: Tensor) -> Tensor:
        """Returns log P(s < X ≤ t), equation (6), to full relative precision; −inf where s ≥ t."""
        s, t = torch.broadcast_tensors(
            checks.real("s", s, self.theta), checks.real("t", t, self.theta)
        )
        (s, shape), (t, _) = self._points(s), self._points(t)
        return self._restore(network.log_mass(self.frame, self._inside(s), self._inside(t)), shape)

    def icdf(self, value: Tensor) -> Tensor:
        """Returns x with N(x) = u; differentiable in u, θ and finite ends."""
        u, shape = self._points(checks.probability(checks.real("u", value, self.theta)))
        return self._restore(roots.quantile(self.frame, u, 1 - u), shape)

    def rsample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws samples that carry gradients to θ and finite ends."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.theta, generator))

    def sample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws samples by the inverse transform method."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)

    @property
    def mean(self) -> Tensor:
        """The mean, by quadrature: see `nits.moments`."""
        return moments.mean_and_variance(self.frame)[0].squeeze(-1)

    @property
    def variance(self) -> Tensor:
        """The variance, by quadrature: see `nits.moments`."""
        return moments.mean_and_variance(self.frame)[1].squeeze(-1)

    def _points(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        """Moves the sample dimensions of x behind the batch: (*sample, *batch) becomes (*batch, S)."""
        shape = torch.broadcast_shapes(x.shape, self.batch_shape)
        x = x.expand(shape).reshape(-1, *self.batch_shape).movedim(0, -1)
        return x, shape

    def _restore(self, x: Tensor, shape: torch.Size) -> Tensor:
        return x.movedim(-1, 0).reshape(shape)

    def _inside(self, x: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(x, self.frame.low), self.frame.high)


class QuantizedPNN(Distribution):
    """A PNN seen through equal bins that tile [low, high]: an exact pmf on 0 … bins − 1.

    theta: Weights, shape (*, P).
    low, high: Finite ends of the support.
    bins: How many bins.
    hidden: Widths of the hidden layers.
    """

    arg_constraints: ClassVar = {"theta": constraints.real_vector}

    def __init__(
        self,
        theta: Tensor,
        low: Tensor | float,
        high: Tensor | float,
        bins: int,
        hidden: Sequence[int] = (16, 16),
    ) -> None:
        self.base = PNN(theta, low, high, hidden)
        checks.finite_support(self.base.low, self.base.high)
        self.bins = checks.bins(bins)
        super().__init__(self.base.batch_shape, validate_args=False)

    @property
    def support(self) -> Any:
        """The integers 0 … bins − 1, as a constraint."""
        return constraints.integer_interval(0, self.bins - 1)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> QuantizedPNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        base = self.base.expand(batch_shape)
        return type(self)(base.theta, base.low, base.high, self.bins, base.hidden)

    def edge(self, k: Tensor) -> Tensor:
        """Returns the lower edge of bin k: of bin 0 exactly low, of the bin after the last exactly high."""
        share = k / self.bins
        edge = self.base.low + (self.base.high - self.base.low) * share
        return torch.where(k >= self.bins, self.base.high, edge)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log P(k), equation (6); −inf for anything that is not an integer in 0 … bins − 1."""
        k = checks.number("k", value).to(self.base.theta.dtype)
        possible = (k >= 0) & (k < self.bins) & (k == k.floor())
        inside = torch.where(possible | torch.isnan(k), k, torch.zeros_like(k))
        log_mass = self.base.log_mass(self.edge(inside), self.edge(inside + 1))
        return log_mass.masked_fill(~possible & ~torch.isnan(k), -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(K ≤ k)."""
        k = checks.number("k", value).to(self.base.theta.dtype)
        return self.base.cdf(self.edge((k.floor() + 1).clamp(0, self.bins)))

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the least k with P(K ≤ k) ≥ u."""
        u = checks.probability(checks.real("u", value, self.base.theta))
        with torch.no_grad():
            x = self.base.icdf(u)
            share = (x - self.base.low) / (self.base.high - self.base.low)
            k = (share * self.bins).floor().clamp(0, self.bins - 1)
            # Rounding may have put x one bin off: the pmf's own cdf decides.
            k = torch.where((k > 0) & (self.cdf(k - 1) >= u), k - 1, k)
            return torch.where((k < self.bins - 1) & (self.cdf(k) < u), k + 1, k)

    def sample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws integers, as a tensor of the dtype of theta."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.base.theta, generator))

    @property
    def logits(self) -> Tensor:
        """The log-pmf of every bin, shape (*, bins)."""
        k = torch.arange(self.bins, device=self.base.theta.device)
        return self.log_prob(
            k.reshape(-1, *(1 for _ in self.batch_shape)).expand(-1, *self.batch_shape)
        ).movedim(0, -1)

    @property
    def probs(self) -> Tensor:
        """The pmf of every bin, shape (*, bins)."""
        return self.logits.exp()

    @property
    def mean(self) -> Tensor:
        """The mean of the pmf."""
        return (self.probs * torch.arange(self.bins, device=self.base.theta.device)).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The variance of the pmf."""
        k = torch.arange(self.bins, device=self.base.theta.device)
        return (self.probs * (k - self.mean.unsqueeze(-1)) ** 2).sum(-1)
