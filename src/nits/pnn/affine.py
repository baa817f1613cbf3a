"""The distribution of loc + scale · X, with every quantity that the distribution of X has."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.pnn.distributions import Size
from nits.pnn.random import uniform


class Affine(Distribution):
    """loc + scale · X for a real X with a density, such as a PNN's, and scale > 0.

    base: The distribution of X, whose icdf carries the gradients of rsample.
    loc, scale: Numbers or tensors that broadcast with the base's batch shape.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, base: Distribution, loc: Tensor | float, scale: Tensor | float) -> None:
        loc, scale = torch.as_tensor(loc), torch.as_tensor(scale)
        _check(base, scale)
        shape = torch.broadcast_shapes(base.batch_shape, loc.shape, scale.shape)
        self.base = base.expand(shape)
        self.loc, self.scale = loc.expand(shape), scale.expand(shape)
        super().__init__(shape, validate_args=False)

    @property
    def support(self) -> Any:
        """The support of X moved and scaled, as a constraint."""
        low, high = (
            self._moved(torch.as_tensor(getattr(self.base.support, name, end)))
            for name, end in (("lower_bound", -torch.inf), ("upper_bound", torch.inf))
        )
        return constraints.interval(low, high)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> Affine:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        return Affine(self.base.expand(shape), self.loc.expand(shape), self.scale.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log ν_X((y − loc) / scale) − log scale."""
        log_density: Tensor = self.base.log_prob(self._standard(value))
        return log_density - torch.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(loc + scale · X ≤ y)."""
        below: Tensor = self.base.cdf(self._standard(value))
        return below

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the quantile at probability u."""
        return self._moved(self.base.icdf(value))

    def rsample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws samples that carry gradients to loc, scale and the base's parameters."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.loc, generator))

    def sample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws samples by the inverse transform method."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)

    @property
    def mean(self) -> Tensor:
        """The mean: loc + scale · E X."""
        return self._moved(self.base.mean)

    @property
    def variance(self) -> Tensor:
        """The variance: scale² · Var X."""
        variance: Tensor = self.base.variance
        return self.scale**2 * variance

    @property
    def mode(self) -> Tensor:
        """The point of greatest density."""
        return self._moved(self.base.mode)

    def entropy(self) -> Tensor:
        """Returns the entropy in nats: that of X, and log scale."""
        entropy: Tensor = self.base.entropy()
        return entropy + torch.log(self.scale)

    def _moved(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _standard(self, value: Tensor) -> Tensor:
        return (checks.real("x", value, self.loc) - self.loc) / self.scale


def _check(base: Distribution, scale: Tensor) -> None:
    if base.support is not None and base.support.is_discrete:
        raise ValueError(
            "an affine map needs a distribution with a density, "
            f"but {type(base).__name__} is discrete; move its values instead."
        )
    if not torch.compiler.is_compiling() and not bool((scale > 0).all()):
        raise ValueError(
            f"scale must be positive, but its least value is {scale.min().item():g}; "
            "pass a scale above zero."
        )
