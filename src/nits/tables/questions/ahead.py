"""A column that comes after all conditions: the mean of the particles' conditionals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.tables.columns import Column
from nits.tables.conditional import Conditional
from nits.tables.questions.behind import Behind
from nits.tables.questions.cloud import Cloud, mean_ratio
from nits.tables.questions.marginals import Marginal, Pooled
from nits.tables.questions.results import Estimate, Found
from nits.tables.questions.single import Numbers, OneColumn, half, refuse_no_mean

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

CANDIDATES = 257
"""Draws among which the mode is sought, and by which the entropy is found."""


class Ahead(OneColumn):
    """A column that is not drawn: its law is exact given the particles."""

    def __init__(self, answer: Answer, column: Column, cloud: Cloud, i: int) -> None:
        super().__init__(answer, column, cloud)
        self.i = i
        self.marginal = Marginal(cloud, i)
        self.law = Pooled(self.marginal)
        evidence = self.marginal.evidence
        self.batches = (evidence - evidence.amax()).exp()  # (1, B)

    def quantiles(self, levels: Numbers) -> Found:
        """Returns quantiles of the mean distribution; errors are those of its levels, as values."""
        with torch.no_grad():
            found = Conditional(self.column, self.law).quantiles(levels)[0]
        if self.cloud.exact or self.unordered:
            return Found.of(found, np.zeros(len(levels)), self.ess)
        # The cdf at the quantiles in each batch tells how uncertain their levels are.
        numbers = self._numbers(levels).repeat_interleave(self.marginal.batches, 1)
        each = self.marginal.cdf(numbers).double() * self.batches
        spread = mean_ratio(each, self.batches.expand(each.shape))[1].numpy()
        ends = [self._decoded(np.clip(levels + s * spread, 0, 1)) for s in (-1, 1)]
        return Found.of(found, half(*ends), self.ess)

    def _numbers(self, levels: Numbers) -> Tensor:
        u = torch.from_numpy(levels).to(self.answer.estimator.model_.like).unsqueeze(1)
        with torch.no_grad():
            return self.law.icdf(u.clamp(1e-6, 1 - 1e-6))

    def _decoded(self, levels: Numbers) -> NDArray[Any]:
        x = self.law._of_draws(torch.from_numpy(levels).unsqueeze(1))[:, 0]
        return self.column.decode(x.double().numpy(), np.random.default_rng(0)).array

    def mean(self) -> Estimate:
        """Returns the mean: a quadrature where it is exact, else that of the particles' draws."""
        refuse_no_mean(self.column)
        if self.cloud.exact:
            return Estimate(Conditional(self.column, self.law).mean()[0], 0.0, self.ess)
        return Behind(self.answer, self.column, self.cloud, self.i).mean()

    def masses(self, numbers: Numbers) -> Tensor:
        """Returns the mean of the conditionals' probabilities in each batch."""
        x = torch.from_numpy(numbers).to(self.answer.estimator.model_.like)
        with torch.no_grad():
            return self.marginal.masses(x) * self.batches

    def densest(self) -> Any:
        """Returns the draw of greatest density."""
        values, log_prob = self._candidates()
        return values[int(np.argmax(log_prob))]

    def spread(self) -> Estimate:
        """Returns the mean of −log p over draws."""
        _, log_prob = self._candidates()
        error = 0.0 if self.cloud.exact else float(log_prob.std()) / math.sqrt(len(log_prob))
        return Estimate(float(-log_prob.mean()), error, self.ess)

    def _candidates(self) -> tuple[NDArray[Any], Numbers]:
        """Returns draws, evenly spread, and their log-probabilities in the table's units."""
        with torch.no_grad():
            x = self._even() if self.cloud.exact else self.marginal.drawn(CANDIDATES)
        low, high = (float(np.float32(end)) for end in self.column.within)
        x = x[(x > low) & (x <= high)]
        values = self.column.decode(x.double().numpy(), np.random.default_rng(0))
        code = self.column.encode(values)
        with torch.no_grad(), np.errstate(divide="ignore"):
            density = self.marginal.prob(torch.from_numpy(code.numbers).to(x)).numpy()
            log_prob = np.log(density) + code.log_prob
        return values.array, np.where(code.fixed, code.log_prob, log_prob)

    def _even(self) -> Tensor:
        return self._numbers((np.arange(CANDIDATES) + 0.5) / CANDIDATES)[:, 0]
