"""A column that conditions come after, or that has one itself: weighted draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.tables.columns import Column
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame, Values
from nits.tables.questions import likelihood
from nits.tables.questions.cloud import Cloud, mean_ratio
from nits.tables.questions.conditions import Range
from nits.tables.questions.marginals import weighted
from nits.tables.questions.particles import systematic
from nits.tables.questions.results import Estimate, Found
from nits.tables.questions.single import (
    Numbers,
    OneColumn,
    as_values,
    half,
    in_seconds,
    missing_only,
    refuse_no_mean,
)

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

ATOM = 0.02
"""Weight of equal draws of a density from which they are an atom, and the mode."""


DRAWN = 256
"""Draws by which the entropy of a density is found."""


class Behind(OneColumn):
    """A column that was drawn before the last condition was met."""

    def __init__(self, answer: Answer, column: Column, cloud: Cloud, i: int) -> None:
        super().__init__(answer, column, cloud)
        with torch.no_grad():
            drawn = cloud.column(i)
        self.numbers = drawn.numbers[0].flatten().double().numpy()
        self.tails = drawn.tails[0].flatten().double().numpy()
        self.batch = np.arange(drawn.numbers.shape[1]).repeat(drawn.numbers.shape[2])
        low, high = (float(np.float32(end)) for end in column.within)
        known = (self.numbers > low) & (self.numbers <= high)
        self.weights = np.where(known, weighted(cloud)[0], 0.0)
        if not self.weights.sum():
            raise missing_only(column)
        self.weights /= self.weights.sum()

    def _sorted(self) -> NDArray[np.int64]:
        """Returns the order of the draws by value: tails lie beyond the numbers."""
        side = np.where(np.isnan(self.tails), 0.0, np.sign(self.tails))
        return np.lexsort((np.nan_to_num(self.tails), self.numbers, side))

    def quantiles(self, levels: Numbers) -> Found:
        """Returns values of the draws; errors are those of their shares, as values."""
        found = self._values(self._at(levels))
        if self.unordered:
            return Found.of(found, np.zeros(len(levels)), self.ess)
        spread = np.sqrt(levels * (1 - levels) / max(self.ess, 1.0))
        ends = [self._values(self._at(np.clip(levels + s * spread, 0, 1))) for s in (-1, 1)]
        return Found.of(found, half(*ends), self.ess)

    def _at(self, levels: Numbers) -> NDArray[np.int64]:
        order = self._sorted()
        reach = np.cumsum(self.weights[order])
        at = np.minimum(np.searchsorted(reach, levels * reach[-1]), len(order) - 1)
        found: NDArray[np.int64] = order[at]
        return found

    def _values(self, which: NDArray[np.int64]) -> NDArray[Any]:
        made = self.column.decode(self.numbers[which], np.random.default_rng(0))
        for side in (LOWER, UPPER):
            at = side * self.tails[which] > 0
            if at.any():
                beyond = self.column.drawn_beyond(side, np.abs(self.tails[which][at]))
                made = made.replaced(at, beyond)
        return made.array

    def mean(self) -> Estimate:
        """Returns the weighted mean of the draws, with an error by batches."""
        refuse_no_mean(self.column)
        sums = [self._by_batch(part) for part in (self.weights * self._amounts(), self.weights)]
        found, error = mean_ratio(*sums)
        mean = as_values(self.column, found.numpy())[0]
        return Estimate(mean, in_seconds(self.column, float(error)), self.ess)

    def _by_batch(self, part: Numbers) -> Tensor:
        """Returns the sum over each batch, shape (1, B)."""
        return torch.from_numpy(np.bincount(self.batch, part)).unsqueeze(0)

    def _amounts(self) -> Numbers:
        """Returns the draws as numbers, less the base."""
        column = self.column
        if not isinstance(column, Numeric):
            return np.asarray(self._values(np.arange(len(self.numbers))), np.float64)
        holes = self.weights == 0
        x = column.amount(np.where(holes, column.ends()[0], self.numbers))
        for side in (LOWER, UPPER):
            at = side * self.tails > 0
            if at.any():
                x[at] = column.amount_beyond(side, np.abs(self.tails[at]))
        return x

    def masses(self, numbers: Numbers) -> Tensor:
        """Returns the weights of the draws that have each number, in each batch."""
        own = np.where(np.isnan(self.tails), self.numbers, np.nan)
        parts = [self._by_batch(self.weights * (own == number)) for number in numbers]
        return torch.cat(parts)

    def densest(self) -> Any:
        """Returns the value of greatest weight, or the middle of the densest draws."""
        order = self._sorted()
        distinct, place = np.unique(self._values(order), return_inverse=True)
        sums = np.bincount(place, self.weights[order]).astype(np.float64)
        if self.column.kind != "continuous" or sums.max() > ATOM:
            return distinct[int(np.argmax(sums))]
        return distinct[_middle(sums)]

    def spread(self) -> Estimate:
        """Returns the mean of −log p over draws, by what other particles say of their density."""
        name, answer = self.column.name, self.answer
        if bool(answer.query.given[0, answer.estimator.schema_.names.index(name)]):
            certain = -math.inf if self.column.kind == "continuous" else 0.0
            return Estimate(certain, 0.0, math.inf)
        with np.errstate(divide="ignore"):
            chosen = systematic(torch.from_numpy(np.log(self.weights)), _source(), DRAWN).numpy()
        made, place = np.unique(self._values(chosen), return_inverse=True)  # equal ones once
        facts = self.column.facts
        none = np.zeros(len(made), bool)
        values = Values(made, none, facts.dtype, facts.levels, facts.ordered)
        frame = Frame({name: values}, answer.estimator.schema_.form)
        logs = likelihood.log_prob(answer, frame, [name])
        known = float(answer.probability({name: Range()}).estimate)
        spread = np.asarray(logs)[place]
        spread = spread[np.isfinite(spread)]
        error = float(spread.std()) / math.sqrt(len(spread))
        return Estimate(float(math.log(known) - spread.mean()), error, float(np.min(logs.ess)))


def _source() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _middle(weights: Numbers) -> int:
    """Returns the middle of the shortest stretch, over and over, that has half of the weight."""
    low, high = 0, len(weights)
    while high - low > 8:
        reach = np.concatenate([[0.0], np.cumsum(weights[low:high])])
        stop = np.searchsorted(reach, reach[:-1] + reach[-1] / 2)
        fits = stop < len(reach)
        length = np.where(fits, stop - np.arange(len(stop)), len(reach))
        start = int(np.argmin(length))
        if length[start] >= high - low:
            break
        low, high = low + start, low + int(stop[start])
    return (low + high) // 2
