"""What is given, in the numbers of a model: one question for each of R rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from nits.model.steps import Steps
from nits.tables.columns import Column
from nits.tables.questions.events import Event
from nits.tables.questions.laws import Law


class Companion(Protocol):
    """A network that draws columns given any others: it proposes, and the model has the say."""

    @property
    def order(self) -> Tensor:
        """The columns in the order in which they are drawn, shape (D,)."""

    def steps(self, n: int, values: Tensor, given: Tensor, context: Tensor | None = None) -> Steps:
        """Starts n rows given values, shape (n, D), of some columns, marked by `given`."""


@dataclass(frozen=True)
class Query:
    """What is given, for each of R rows, in the columns' numbers.

    laws: The laws of the D columns.
    given: Which entries have a given value, shape (R, D).
    numbers: The numbers of those values, shape (R, D).
    log_prob: What is added to the model's log-probability of them, in float64, shape (R, D).
    fixed: Where it stands in its place, shape (R, D).
    side: Where the values lie beyond an end, which is then part of it; see `Coded`.
    events: Conditions by column, for the entries that have no given value.
    context: What the model reads of columns that it does not model, shape (R, C).
    companion: What proposes columns that come before a given one; by default the model does.
    """

    laws: tuple[Law, ...]
    given: Tensor
    numbers: Tensor
    log_prob: Tensor
    fixed: Tensor
    side: Tensor
    events: Mapping[int, Event]
    context: Tensor | None = None
    companion: Companion | None = None

    @classmethod
    def empty(cls, columns: Sequence[Column], rows: int, like: Tensor) -> Query:
        """Returns the question in which nothing is given."""
        shape = (rows, len(columns))
        return cls(
            tuple(Law(column) for column in columns),
            torch.zeros(shape, dtype=torch.bool),
            torch.full(shape, torch.nan, dtype=like.dtype),
            torch.zeros(shape, dtype=torch.float64),
            torch.zeros(shape, dtype=torch.bool),
            torch.zeros(shape, dtype=torch.int8),
            {},
        )

    @property
    def rows(self) -> int:
        """R, how many questions these are."""
        return len(self.given)

    def last(self, order: list[int]) -> int:
        """Returns how many columns of an order there are up to the last that has a condition."""
        told = self.given.any(0)
        ranks = [r for r, i in enumerate(order) if bool(told[i]) or i in self.events]
        return ranks[-1] + 1 if ranks else 0

    def told(self, order: list[int]) -> int:
        """Returns how many columns of an order there are up to the last with a given value."""
        told = self.given.any(0)
        return max((r + 1 for r, i in enumerate(order) if bool(told[i])), default=0)

    def leading(self, order: list[int]) -> int:
        """Returns how many columns of an order are given in all rows before the first that is not.

        Up to there nothing is drawn.
        """
        told = self.given.all(0)
        return next((r for r, i in enumerate(order) if not bool(told[i])), len(order))

    def take(self, rows: Tensor | slice) -> Query:
        """Returns the questions of some rows."""
        context = None if self.context is None else self.context[rows]
        return replace(
            self,
            given=self.given[rows],
            numbers=self.numbers[rows],
            log_prob=self.log_prob[rows],
            fixed=self.fixed[rows],
            side=self.side[rows],
            context=context,
        )
