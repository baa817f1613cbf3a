"""The distribution of integers of which some have a probability of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits import checks
from nits.heads.distribution import ColumnDistribution, Possible
from nits.pnn import sums
from nits.pnn.binned import SummedPNN
from nits.pnn.distributions import Size

if TYPE_CHECKING:
    from nits.heads.inflated import Inflated


class InflatedColumn(ColumnDistribution):
    """Integers with the probabilities of (27). Values may be tensors of integers or floats."""

    head: Inflated

    def __init__(
        self, head: Inflated, theta: Tensor, low: Tensor | float, high: Tensor | float
    ) -> None:
        super().__init__(head, theta, low, high)
        logits, rest = self.theta.split([len(head.values) + 1, head.rest.weights], -1)
        self.logits: Tensor = logits.log_softmax(-1)  # of the values and the rest, shape (*, K + 1)
        self.rest: SummedPNN = head.rest.distribution(rest, self.low, self.high)
        self.values = torch.tensor(head.values, dtype=theta.dtype, device=theta.device)

    @property
    def support(self) -> Any:
        """The integers of the rest and the values, as a constraint."""
        least = min(self.rest.least, self.head.values[0])
        greatest = max(self.rest.greatest, self.head.values[-1])
        return Possible(self.head, (self.low, self.high), (least, greatest))

    def expand(self, batch_shape: Size, _instance: Distribution | None = None) -> InflatedColumn:
        """Returns this distribution with its parameters expanded to a batch shape."""
        shape = torch.Size(batch_shape)
        ends = (self.low.expand(shape), self.high.expand(shape))
        return InflatedColumn(self.head, self.theta.expand(*shape, -1), *ends)

    @property
    def mean(self) -> Tensor:
        """The mean, as precise as that of the rest."""
        return (self.logits.exp() * self._places).sum(-1)

    @property
    def variance(self) -> Tensor:
        """The variance, as precise as that of the rest."""
        places, share = self._places, self.logits.exp()
        mean = (share * places).sum(-1, keepdim=True)
        return (share * (places - mean) ** 2).sum(-1) + share[..., -1] * self.rest.variance

    @property
    def mode(self) -> Tensor:
        """The integer of greatest probability: one of the values, or the mode of the rest."""
        candidates = torch.cat([self._values, self.rest.mode.unsqueeze(-1)], -1)
        log_prob, best = self.log_prob(candidates.movedim(-1, 0)).max(0)
        found = candidates.gather(-1, best.unsqueeze(-1)).squeeze(-1)
        return found.masked_fill(torch.isnan(log_prob), torch.nan)

    def entropy(self) -> Tensor:
        """Returns −E log P(X) in nats.

        All integers of the rest have −Σ p q log p q together; at the values P takes the place of
        p q.
        """
        log_rest = self.logits[..., -1]
        whole = log_rest.exp() * (self.rest.entropy() - log_rest)
        values = self._values.movedim(-1, 0)
        apart = sums.information(log_rest + self.rest.log_prob(values))
        return whole + (sums.information(self.log_prob(values)) - apart).sum(0)

    @property
    def _values(self) -> Tensor:
        return self.values.expand(*self.batch_shape, -1)

    @property
    def _places(self) -> Tensor:
        """The values and the mean of the rest, shape (*, K + 1)."""
        return torch.cat([self._values, self.rest.mean.unsqueeze(-1)], -1)

    def _value(self, value: Tensor) -> Tensor:
        return checks.number("x", value).to(self.theta.dtype)
