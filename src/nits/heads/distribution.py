"""Distributions of columns that are more or less than a PNN: categories, numbers with atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.heads.head import Given, Head
from nits.pnn import sums
from nits.pnn.distributions import PNN, Size
from nits.pnn.random import uniform
from nits.pnn.support import restricted

if TYPE_CHECKING:
    from nits.heads.atoms import Atoms


class Possible(constraints.Constraint):
    """The values that a head says are possible, as a constraint.

    ends: low and high, on the scale of the PNN.
    bounds: The least and the greatest value.
    """

    def __init__(
        self, head: Head, ends: tuple[Tensor, Tensor], bounds: tuple[Tensor | float, Tensor | float]
    ) -> None:
        self.head = head
        self.is_discrete = head.discrete
        self.ends = ends
        self.lower_bound, self.upper_bound = bounds
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """Returns which values are possible."""
        x, low, high = (t.unsqueeze(-1) for t in (value, *self.ends))
        return self.head.possible(x, low, high).squeeze(-1)


class ColumnDistribution(Distribution):
    """The distribution of a column with weights theta, shape (*, P), as its head computes it."""

    arg_constraints: ClassVar = {"theta": constraints.real_vector}

    def __init__(
        self, head: Head, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> None:
        self.head = head
        self.theta = checks.real("theta", theta)
        self.low, self.high = checks.support(low, high, theta)
        super().__init__(theta.shape[:-1], validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the log-probability or log-density of x: −inf if impossible, NaN for NaN."""
        x, given = self._given(self._value(value))
        possible = self.head.possible(x, given.low, given.high)
        found = restricted(self.head.log_prob_inside(given, x), x, possible)
        return found.reshape(self._shape(value))

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(X ≤ x)."""
        x, given = self._given(self._value(value))
        return self.head.cdf(given, x).reshape(self._shape(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the least x with P(X ≤ x) ≥ u."""
        u, given = self._given(checks.probability(checks.real("u", value, self.theta)))
        return self.head.from_uniform(given, u).reshape(self._shape(value))

    def sample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws values, of the dtype of theta."""
        shape = self._extended_shape(torch.Size(sample_shape))
        with torch.no_grad():
            return self.icdf(uniform(shape, self.theta, generator))

    def _value(self, value: Tensor) -> Tensor:
        return checks.real("x", value, self.theta)

    def _given(self, x: Tensor) -> tuple[Tensor, Given]:
        """Returns values, shape (S, B), and weights, shape (S, P, B), for S samples of B PNNs."""
        count = self.batch_shape.numel()
        samples = self._shape(x).numel() // max(count, 1)
        theta = self.theta.reshape(count, -1).t().expand(samples, -1, -1)
        ends = (end.reshape(1, count).expand(samples, -1) for end in (self.low, self.high))
        return x.expand(self._shape(x)).reshape(samples, count), Given(theta, *ends)

    def _shape(self, x: Tensor) -> torch.Size:
        shape: torch.Size = torch.broadcast_shapes(x.shape, self.batch_shape)
        return shape


class CategoricalColumn(ColumnDistribution):
    """Levels 0 … K − 1 without an order, with logits theta, shape (*, K).

    Values may be tensors of integers or floats. Mean and variance are NaN, as those of torch's
    Categorical are; cdf and icdf take the levels in the order of their numbers.
    """

    @property
    def support(self) -> Any:
        """The integers 0 … K − 1, as a constraint."""
        return constraints.integer_interval(0, self.theta.shape[-1] - 1)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> CategoricalColumn:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        ends = (self.low.expand(shape), self.high.expand(shape))
        return CategoricalColumn(self.head, self.theta.expand(*shape, -1), *ends)

    @property
    def logits(self) -> Tensor:
        """The log-probability of every level, shape (*, K)."""
        return self.theta.log_softmax(-1)

    @property
    def probs(self) -> Tensor:
        """The probability of every level, shape (*, K)."""
        return self.theta.softmax(-1)

    @property
    def mean(self) -> Tensor:
        """NaN: levels have no order."""
        return torch.full_like(self.low, torch.nan)

    @property
    def variance(self) -> Tensor:
        """NaN: levels have no order."""
        return torch.full_like(self.low, torch.nan)

    @property
    def mode(self) -> Tensor:
        """The level of greatest probability; of several, the first."""
        log_prob, level = self.logits.max(-1)
        return level.to(self.theta).masked_fill(torch.isnan(log_prob), torch.nan)

    def entropy(self) -> Tensor:
        """Returns −E log P(X) in nats."""
        return sums.information(self.logits).sum(-1)

    def _value(self, value: Tensor) -> Tensor:
        return checks.number("x", value).to(self.theta.dtype)


class AtomsColumn(ColumnDistribution):
    """Atoms with probabilities of their own, else a PNN's density on [low, high], equation (17).

    log_prob, mode and entropy are with respect to the base measure of (17): a unit of mass at each
    atom, and length elsewhere. So mode and entropy depend on the unit of the column, as log_prob
    does: the mode compares an atom's mass with the density of the other values.
    """

    head: Atoms
    has_rsample = True

    def __init__(
        self, head: Atoms, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> None:
        super().__init__(head, theta, low, high)
        logits, rest = self.theta.split([len(head.values) + 1, head.rest.weights], -1)
        self.logits: Tensor = logits.log_softmax(-1)  # of the atoms and the rest, shape (*, K + 1)
        self.rest: PNN = head.rest.distribution(rest, self.low, self.high)
        self.values = torch.tensor(head.values, dtype=theta.dtype, device=theta.device)

    @property
    def support(self) -> Any:
        """The interval [low, high] and the atoms, as a constraint."""
        if not self.head.outside:
            return constraints.interval(self.low, self.high)
        bounds = (
            self.low.clamp(max=self.head.values[0]),
            self.high.clamp(min=self.head.values[-1]),
        )
        return Possible(self.head, (self.low, self.high), bounds)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> AtomsColumn:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        ends = (self.low.expand(shape), self.high.expand(shape))
        return AtomsColumn(self.head, self.theta.expand(*shape, -1), *ends)

    def rsample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws samples: atoms carry no gradient, other values carry one to all of theta."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.theta, generator))

    @property
    def mean(self) -> Tensor:
        """The mean, as precise as that of the PNN."""
        return (self.logits.exp() * self._places).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The variance, as precise as that of the PNN."""
        places = self._places
        share = self.logits.exp()
        mean = (share * places).sum(-1, keepdim=True)
        return (share * (places - mean) ** 2).sum(-1) + share[..., -1] * self.rest.variance

    @property
    def mode(self) -> Tensor:
        """The value of greatest log_prob."""
        inner = self.rest.mode
        log_density = self.logits[..., -1] + self.rest.log_prob(inner)
        log_mass, k = self.logits[..., :-1].max(-1)
        return torch.where(log_mass >= log_density, self.values[k], inner)

    def entropy(self) -> Tensor:
        """Returns −E log P(X) in nats, with respect to the base measure of (17)."""
        shares = sums.information(self.logits).sum(-1)
        return shares + self.logits[..., -1].exp() * self.rest.entropy()

    @property
    def _places(self) -> Tensor:
        """The atoms and the mean of the rest, shape (*, K + 1)."""
        atoms = self.values.expand(*self.batch_shape, -1)
        return torch.cat([atoms, self.rest.mean.unsqueeze(-1)], -1)
