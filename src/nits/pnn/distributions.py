"""The torch.distributions face of the PNN; `binned` has those of its discrete versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.pnn import moments, network, roots
from nits.pnn.plain import parameters
from nits.pnn.random import uniform
from nits.pnn.support import restricted

Size = torch.Size | Sequence[int]

PNNS_AT_ONCE = 32
"""Of how many PNNs moments are computed side by side: each is evaluated at thousands of points."""


class PNN(Distribution):
    """The density of a PNN on [low, high], either end of which may be infinite.

    theta: Weights, shape (*, P) with P = pnn_parameters(hidden); the batch shape is
        theta.shape[:-1].
    low, high: Ends of the support, numbers or tensors that broadcast to the batch shape.
    hidden: Widths of the hidden layers.

    >>> import nits, torch
    >>> theta = torch.randn(5, nits.pnn_parameters((16, 16)))  # five PNNs
    >>> p = nits.PNN(theta, low=0.0, high=float("inf"))
    >>> p.log_prob(p.sample((1000,))).shape
    torch.Size([1000, 5])
    >>> bool((p.cdf(p.icdf(torch.full((5,), 0.95))) - 0.95).abs().max() < 1e-5)
    True
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
        self.theta = checks.theta(theta, parameters(self.hidden), self.hidden)
        self.low, self.high = checks.support(low, high, self.theta)
        self._frame: network.Normalized | None = None
        super().__init__(self.theta.shape[:-1], validate_args=False)

    @property
    def support(self) -> Any:
        """The interval [low, high], as a constraint."""
        return constraints.interval(self.low, self.high)

    @property
    def frame(self) -> network.Normalized:
        """The network over its support, with a last dimension for points: shapes (…, *batch, 1)."""
        if self._frame is None:
            # It is kept, so that it must carry gradients also if it is first needed without.
            with torch.enable_grad():
                theta = self.theta.movedim(-1, 0).unsqueeze(-1)
                ends = (self.low.unsqueeze(-1), self.high.unsqueeze(-1))
                self._frame = network.normalized(theta, *ends, self.hidden)
        return self._frame

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> PNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        theta = self.theta.expand(*shape, self.theta.shape[-1])
        return type(self)(theta, self.low.expand(shape), self.high.expand(shape), self.hidden)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log ν(x), equation (5): −inf outside the support, NaN for NaN."""
        x, shape = self._points(checks.real("x", value, self.theta))
        finite = self._inside(x).masked_fill(torch.isinf(x), 0.0)
        possible = (x >= self.frame.low) & (x <= self.frame.high) & ~torch.isinf(x)
        log_density = network.log_density(self.frame, finite)
        return self._restore(restricted(log_density, x, possible), shape)

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
        u = checks.probability(checks.real("u", value, self.theta))
        return self.quantile(u, 1 - u)

    def quantile(self, below: Tensor, above: Tensor) -> Tensor:
        """Returns x with N(x) = below and 1 − N(x) = above, of which the smaller decides."""
        (u, shape), (u_above, _) = self._points(below), self._points(above)
        x = roots.quantile(self.frame, u, u_above) if u.numel() else u
        return self._restore(x, shape)

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
        """The mean, by quadrature: see `nits.pnn.moments`."""
        return self.each(lambda part: moments.mean_and_variance(part)[0])

    @property
    def variance(self) -> Tensor:
        """The variance, by quadrature: see `nits.pnn.moments`."""
        return self.each(lambda part: moments.mean_and_variance(part)[1])

    @property
    def mode(self) -> Tensor:
        """The point of greatest density, which carries no gradient: see `nits.pnn.moments`."""
        return self.each(moments.mode)

    def entropy(self) -> Tensor:
        """Returns −E log ν(X) in nats, by quadrature: see `nits.pnn.moments`."""
        return self.each(moments.entropy)

    def each(self, quantity: Callable[[PNN], Tensor]) -> Tensor:
        """Returns a quantity of each PNN, shape (*batch), computed for a few PNNs at a time."""
        weights = self.theta.reshape(-1, self.theta.shape[-1])
        flat = (weights, self.low.flatten(), self.high.flatten())
        parts = zip(*(t.split(PNNS_AT_ONCE) for t in flat), strict=True)
        found = [quantity(PNN(theta, low, high, self.hidden)) for theta, low, high in parts]
        return torch.cat(found).reshape(self.batch_shape)

    def _points(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        """Moves samples behind the batch: x of shape (*sample, *batch) becomes (*batch, S)."""
        shape = torch.broadcast_shapes(x.shape, self.batch_shape)
        samples = shape[: len(shape) - len(self.batch_shape)].numel()
        x = x.expand(shape).reshape(samples, *self.batch_shape).movedim(0, -1)
        return x, shape

    def _restore(self, x: Tensor, shape: torch.Size) -> Tensor:
        return x.movedim(-1, 0).reshape(shape)

    def _inside(self, x: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(x, self.frame.low), self.frame.high)
