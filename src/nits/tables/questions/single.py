"""One column of an answer: what its quantiles, mean, mode and probabilities have in common.

They are of known values: holes are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.tables.columns import Categories, Column, plainly
from nits.tables.columns.first import First, Levels
from nits.tables.columns.listed import Listed
from nits.tables.columns.numeric import Numeric
from nits.tables.questions.cloud import Cloud, mean_ratio
from nits.tables.questions.conditions import Range, up_to
from nits.tables.questions.results import Estimate, Found, Probabilities

if TYPE_CHECKING:
    from nits.tables.questions.answer import Answer

Numbers = NDArray[np.float64]


class OneColumn(ABC):
    """A column's known values under the conditions of an answer.

    cloud: Particles that have come to the column, or passed it.
    """

    def __init__(self, answer: Answer, column: Column, cloud: Cloud) -> None:
        self.answer, self.column, self.cloud = answer, column, cloud
        self.ess = float(cloud.ess()[0])

    @abstractmethod
    def quantiles(self, levels: Numbers) -> Found:
        """Returns values at probabilities."""

    @abstractmethod
    def mean(self) -> Estimate:
        """Returns the mean."""

    @abstractmethod
    def masses(self, numbers: Numbers) -> Tensor:
        """Returns the masses of discrete numbers in each batch, not normalized, shape (M, B)."""

    @abstractmethod
    def densest(self) -> Any:
        """Returns the value of greatest density."""

    @abstractmethod
    def spread(self) -> Estimate:
        """Returns the entropy of numbers."""

    def cdf(self, value: Any) -> Estimate:
        """Returns the probability of a known value at most as large."""
        name = self.column.name
        part = self.answer.probability({name: up_to(name, value)})
        whole = self.answer.probability({name: Range()})
        if not whole.estimate:
            raise missing_only(self.column)
        share = part.estimate / whole.estimate
        return Estimate(min(share, 1.0), part.error / whole.estimate, part.ess)

    def proba(self) -> Probabilities:
        """Returns the probability of each category."""
        levels, numbers, shares = listed(self.column)
        each = self.masses(numbers) * torch.from_numpy(shares).unsqueeze(1)
        found, error = mean_ratio(each, each.sum(0).expand(each.shape))
        return Probabilities(levels, found.numpy(), error.numpy(), self.ess)

    def mode(self) -> Any:
        """Returns the category or number of greatest probability or density."""
        if not self.by_level:
            return self.densest()
        proba = self.proba()
        return max(proba, key=lambda level: proba[level])

    def entropy(self) -> Estimate:
        """Returns −E log p in nats; its error is that of the batches' own entropies."""
        if not self.by_level:
            return self.spread()
        _, numbers, shares = listed(self.column)
        each = self.masses(numbers) * torch.from_numpy(shares).unsqueeze(1)
        whole, by_batch = (torch.special.entr(p / p.sum(0)).sum(0) for p in (each.sum(1), each))
        count = max(len(by_batch), 2)
        error = 0.0 if self.cloud.exact else float(by_batch.std()) / count**0.5
        return Estimate(float(whole), error, self.ess)

    @property
    def unordered(self) -> bool:
        """Whether the values are no amounts."""
        return no_amounts(self.column)

    @property
    def by_level(self) -> bool:
        """Whether the values are few enough to be listed."""
        return self.unordered or isinstance(self.column, Listed)


def no_amounts(column: Column) -> bool:
    """Returns whether the values of a column are no amounts."""
    return (
        not isinstance(column, Numeric | First)
        or isinstance(column, Levels)
        or column.facts.ordered
    )


def refuse_no_mean(column: Column) -> None:
    """Refuses categories."""
    if no_amounts(column):
        raise ValueError(f"column {column.name!r} is categorical, so it has no mean.")


def refuse_no_quantiles(column: Column, instead: str = "proba or mode") -> None:
    """Refuses categories that have no order, and says what to ask for instead."""
    levels = getattr(column, "levels", ())
    if column.facts.ordered or not levels or not isinstance(levels[0], str | bool):
        return
    raise ValueError(
        f"column {column.name!r} has categories without an order, so it has no quantiles; ask for "
        f"{instead}."
    )


def missing_only(column: Column) -> ValueError:
    """Returns the error that a column has no known values here."""
    return ValueError(f"column {column.name!r} must not be missing for this, but is given so.")


def listed(column: Column) -> tuple[list[Any], Numbers, Numbers]:
    """Returns a column's categories, their numbers, and the share of each in its number."""
    if isinstance(column, Categories | Levels):
        every = [*column.levels, *column.pooled]
        own = len(column.levels)
        numbers = np.minimum(np.arange(len(every)), own).astype(np.float64)
        shares = np.array([1.0] * own + list(column.shares))
        unit = getattr(column, "unit", None)
        levels = every if unit is None else list(np.array(every, np.int64).view(unit))
        return levels, numbers, shares
    if isinstance(column, Listed) or (isinstance(column, Numeric) and column.facts.ordered):
        low, high = column.ends()
        numbers = np.arange(low, high + 1)
        found = column.decode(numbers, np.random.default_rng(0)).array
        levels = list(found) if found.dtype.kind in "mM" else found.tolist()
        return levels, numbers, np.ones(len(numbers))
    raise ValueError(
        f"column {column.name!r} is {column.kind}, so it has no categories; ask for quantiles, "
        "or for the probability of a range."
    )


def half(low: NDArray[Any], high: NDArray[Any]) -> Numbers:
    """Returns half of the distance between values; of times, in seconds."""
    if low.dtype.kind in "mM":
        return np.asarray((high - low) / np.timedelta64(1, "s") / 2, np.float64)
    return np.asarray((high.astype(np.float64) - low.astype(np.float64)) / 2)


def as_values(column: Column, found: Numbers) -> NDArray[Any]:
    """Returns means, less the base, as values of the column."""
    if not isinstance(column, Numeric):
        return found
    if column.unit is None:
        return found + column.ruler.base
    ticks = np.rint(found).astype(np.int64) + column.ruler.base
    return plainly.values(ticks, np.zeros(len(found), bool), column.facts, column.unit).array


def in_seconds(column: Column, error: float) -> float:
    """Returns an error in the column's units; of times, in seconds."""
    unit = getattr(column, "unit", None)
    return error if unit is None else error / plainly.per_second(unit)
