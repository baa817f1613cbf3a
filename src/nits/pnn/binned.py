"""PNNs seen through intervals that tile the support: exact pmfs on bins, integers and cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.pnn import bins, sums
from nits.pnn.cells import Edges
from nits.pnn.distributions import PNN, Size
from nits.pnn.integers import Integers
from nits.pnn.random import uniform
from nits.pnn.support import restricted


class BinnedPNN(Distribution):
    """Integers k with the probabilities that a PNN gives to intervals, one for each k.

    Values may be integer tensors as well as floats. Samples are of the dtype of theta.
    """

    arg_constraints: ClassVar = {"theta": constraints.real_vector}

    def __init__(self, base: PNN, least: float, greatest: float) -> None:
        self.base, self.theta = base, base.theta
        self.least, self.greatest = least, greatest
        super().__init__(base.batch_shape, validate_args=False)

    @abstractmethod
    def possible(self, k: Tensor) -> Tensor:
        """Returns whether k is an integer from least to greatest."""

    @abstractmethod
    def edges(self, k: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the ends of k's interval; any other's where k is impossible, NaN for NaN."""

    @abstractmethod
    def reach(self, k: Tensor) -> Tensor:
        """Returns how far the intervals up to ⌊k⌋ reach, for any number k."""

    @abstractmethod
    def containing(self, x: Tensor) -> Tensor:
        """Returns the integer whose interval x falls into."""

    @property
    def support(self) -> Any:
        """The integers from least to greatest, as a constraint."""
        return constraints.integer_interval(self.least, self.greatest)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log P(k), equation (6): −inf for all but integers of the support, NaN for NaN."""
        k = self._number(value)
        return restricted(self.base.log_mass(*self.edges(k)), k, self.possible(k))

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(K ≤ k)."""
        return self.base.cdf(self.reach(self._number(value)))

    def survival(self, value: Tensor) -> Tensor:
        """Returns P(K > k) to full relative precision."""
        return self.base.survival(self.reach(self._number(value)))

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the least k with P(K ≤ k) ≥ u."""
        u = checks.probability(checks.real("u", value, self.theta))
        with torch.no_grad():
            k = self.containing(self.base.icdf(u))
            # Rounding may have put x one interval off: the pmf's own cdf decides.
            k = torch.where((k > self.least) & (self.cdf(k - 1) >= u), k - 1, k)
            return torch.where((k < self.greatest) & (self.cdf(k) < u), k + 1, k)

    def sample(self, sample_shape: Size = (), generator: torch.Generator | None = None) -> Tensor:
        """Draws integers, as a tensor of the dtype of theta."""
        shape = self._extended_shape(torch.Size(sample_shape))
        return self.icdf(uniform(shape, self.theta, generator))

    @property
    def logits(self) -> Tensor:
        """The log-pmf of all integers of a finite support, shape (*, count)."""
        if math.isinf(self.greatest - self.least):
            raise AttributeError(
                "logits and probs are for finitely many integers, but these are "
                f"{self.least:g} … {self.greatest:g}; ask for log_prob."
            )
        k = torch.arange(self.least, self.greatest + 1).to(self.theta)
        return self.log_prob(
            k.reshape(-1, *(1 for _ in self.batch_shape)).expand(-1, *self.batch_shape)
        ).movedim(0, -1)

    @property
    def probs(self) -> Tensor:
        """The pmf of all integers of a finite support, shape (*, count)."""
        return self.logits.exp()

    def _number(self, value: Tensor) -> Tensor:
        return checks.number("k", value).to(self.theta.dtype)


class QuantizedPNN(BinnedPNN):
    """A PNN seen through equal bins that tile [low, high]: an exact pmf on 0 … bins − 1.

    theta: Weights, shape (*, P).
    low, high: Finite ends of the support.
    bins: How many bins.
    hidden: Widths of the hidden layers.

    >>> import nits, torch
    >>> theta = torch.randn(nits.pnn_parameters((8,)))
    >>> grey = nits.QuantizedPNN(theta, 0.0, 1.0, bins=256, hidden=(8,))
    >>> round(grey.log_prob(torch.arange(256)).exp().sum().item(), 4)  # the mass of all bins
    1.0
    """

    def __init__(
        self,
        theta: Tensor,
        low: Tensor | float,
        high: Tensor | float,
        bins: int,
        hidden: Sequence[int] = (16, 16),
    ) -> None:
        base = PNN(theta, low, high, hidden)
        checks.finite_support(base.low, base.high)
        self.bins = checks.bins(bins)
        super().__init__(base, 0, self.bins - 1)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> QuantizedPNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        base = self.base.expand(batch_shape)
        return QuantizedPNN(base.theta, base.low, base.high, self.bins, base.hidden)

    def possible(self, k: Tensor) -> Tensor:
        """Returns whether k is an integer in 0 … bins − 1."""
        return bins.possible(k, self.bins)

    def edges(self, k: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both edges of bin k; the first starts exactly at low, the last ends at high."""
        return bins.edges(k, self.base.low, self.base.high, self.bins)

    def reach(self, k: Tensor) -> Tensor:
        """Returns how far the bins up to ⌊k⌋ reach, for any number k."""
        return bins.reach(k, self.base.low, self.base.high, self.bins)

    def containing(self, x: Tensor) -> Tensor:
        """Returns the bin that x falls into."""
        return bins.containing(x, self.base.low, self.base.high, self.bins)

    @property
    def mean(self) -> Tensor:
        """The mean of the pmf."""
        return (self.probs * self._values).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The variance of the pmf."""
        return (self.probs * (self._values - self.mean.unsqueeze(-1)) ** 2).sum(-1)

    @property
    def mode(self) -> Tensor:
        """The bin of greatest probability; of several, the first."""
        log_prob, k = self.logits.max(-1)
        return k.to(self.theta).masked_fill(torch.isnan(log_prob), torch.nan)

    def entropy(self) -> Tensor:
        """Returns −E log P(K) in nats."""
        return sums.information(self.logits).sum(-1)

    @property
    def _values(self) -> Tensor:
        return torch.arange(self.bins).to(self.theta)


class SummedPNN(BinnedPNN):
    """A PNN seen through integers or cells, too many to list: moments are sums over some of them.

    base: The PNN.
    intervals: Which k there are, and where their intervals lie on the scale of the PNN.
    """

    def __init__(self, base: PNN, intervals: Integers | Edges) -> None:
        self.intervals = intervals
        super().__init__(base, intervals.least, intervals.greatest)

    def possible(self, k: Tensor) -> Tensor:
        """Returns whether k is an integer from least to greatest."""
        return self.intervals.possible(k)

    def edges(self, k: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the ends of k's interval; the least starts at low, the greatest ends at high."""
        return self.intervals.edges(k, self.base.low, self.base.high)

    def reach(self, k: Tensor) -> Tensor:
        """Returns how far the intervals up to ⌊k⌋ reach, for any number k."""
        return self.intervals.reach(k, self.base.low, self.base.high)

    def containing(self, x: Tensor) -> Tensor:
        """Returns the integer whose interval x falls into."""
        return self.intervals.containing(x)

    @property
    def mean(self) -> Tensor:
        """The mean: see `nits.pnn.sums`."""
        return self.base.each(lambda part: sums.mean_and_variance(part, self.intervals)[0])

    @property
    def variance(self) -> Tensor:
        """The variance: see `nits.pnn.sums`."""
        return self.base.each(lambda part: sums.mean_and_variance(part, self.intervals)[1])

    @property
    def mode(self) -> Tensor:
        """The integer of greatest probability: see `nits.pnn.sums`."""
        return self.base.each(lambda part: sums.mode(part, self.intervals))

    def entropy(self) -> Tensor:
        """Returns −E log P(K) in nats: see `nits.pnn.sums`."""
        return self.base.each(lambda part: sums.entropy(part, self.intervals))


class IntegerPNN(SummedPNN):
    """A PNN seen through integers k, each the interval of width 1/scale around (k − shift)/scale.

    theta: Weights, shape (*, P).
    integers: Which integers there are, and where they lie on the scale of the PNN.
    hidden: Widths of the hidden layers.
    """

    def __init__(self, theta: Tensor, integers: Integers, hidden: Sequence[int] = (16, 16)) -> None:
        checks.integers(integers.least, integers.greatest)
        checks.scale(integers.scale)
        self.integers = integers
        super().__init__(PNN(theta, integers.low, integers.high, hidden), integers)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> IntegerPNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        return IntegerPNN(self.base.expand(batch_shape).theta, self.integers, self.base.hidden)


class CellsPNN(SummedPNN):
    """A PNN seen through cells that tile a finite support: an exact pmf on 0 … K − 1.

    theta: Weights, shape (*, P).
    cells: The edges of the cells, on the scale of the PNN.
    hidden: Widths of the hidden layers.
    """

    def __init__(self, theta: Tensor, cells: Edges, hidden: Sequence[int] = (16, 16)) -> None:
        self.cells = cells
        super().__init__(PNN(theta, cells.low, cells.high, hidden), cells)

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> CellsPNN:
        """Returns this distribution with its parameters expanded to a batch shape."""
        return CellsPNN(self.base.expand(batch_shape).theta, self.cells, self.base.hidden)
