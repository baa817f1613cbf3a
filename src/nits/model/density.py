"""What every joint density does: score rows, sample them, and map them to uniform numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from nits import checks
from nits.chunks import slices
from nits.heads import Continuous, Head
from nits.model.steps import Steps
from nits.pnn.random import another, private_generator, quasi_uniform, uniform
from nits.weights import WeightModel
from nits.weights.allowance import Allowance

if TYPE_CHECKING:
    from nits.model.distribution import JointDistribution


class Density(nn.Module, ABC):
    """An exact density of rows of D columns, which may be given a context of C features.

    Columns are modelled one after another, each given those before it.

    heads: What each column is.
    """

    heads: tuple[Head, ...]

    @property
    def columns(self) -> int:
        """D, the number of columns."""
        return len(self.heads)

    @property
    @abstractmethod
    def context_features(self) -> int:
        """C, the number of features of the context; 0 if there is none."""

    @property
    @abstractmethod
    def order(self) -> Tensor:
        """The columns in the order in which they are modelled, shape (D,)."""

    @property
    @abstractmethod
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of inputs and outputs."""

    @property
    @abstractmethod
    def weights_per_row(self) -> int:
        """Number of PNN weights evaluated for a row: the cost of scoring it."""

    @property
    @abstractmethod
    def stepped_at_once(self) -> int:
        """Most rows that `steps` has memory for; `sample` draws more in turns."""

    @property
    def optional(self) -> Tensor:
        """Which columns may have missing values, NaN, shape (D,)."""
        return torch.tensor([head.optional for head in self.heads], device=self.like.device)

    def supports(self) -> list[Any]:
        """Returns the support of each column as a constraint of torch.distributions."""
        kinds = (h.distribution(self.like.new_zeros(h.weights), h.low, h.high) for h in self.heads)
        return [kind.support for kind in kinds]

    def is_real(self, column: int) -> bool:
        """Returns whether a column has a density everywhere, unbounded if it is constant."""
        return isinstance(self.heads[column], Continuous)

    @abstractmethod
    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term of log ν(x), shape (N, D), columns as in x; 0 if missing."""

    @abstractmethod
    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""

    @abstractmethod
    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""

    @abstractmethod
    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts n rows, whose columns are then scored or drawn one by one in modelling order."""

    @abstractmethod
    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,), for any weights."""

    @abstractmethod
    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the weights from which training on rows like x, shape (N, D), starts."""

    def reseed(self, seed: int | None) -> None:
        """Seeds what is random when rows are scored or trained on: dropout, and noise if any.

        Dropout then draws from private generators; None returns to torch's global one.
        """
        for k, part in enumerate(self.modules()):
            if isinstance(part, WeightModel):
                part.reseed(None if seed is None else another(seed, k))

    def take_part(self, start: int, total: int | None) -> None:
        """Has what is random in training be that of rows from `start` on in a batch of `total`.

        None for rows that are a batch of their own.
        """
        for part in self.modules():
            if isinstance(part, WeightModel):
                part.part = None if total is None else (start, total)

    def log_prob(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns log ν(x) in nats for rows x, shape (N, D): −inf outside the support, NaN for NaN.

        A value of an optional column may be missing, NaN: the density is then that of the others.

        withheld: Entries of optional columns, shape (N, D), that later columns read as missing.
        """
        return self.log_prob_per_column(x, context, withheld).sum(-1)

    def forward(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns `log_prob`, so that hooks, data-parallel training and torch.compile work."""
        return self.log_prob(x, context, withheld)

    def from_uniform(self, u: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns x with to_uniform(x) = u. Gradients with respect to u cost D evaluations."""
        u, context = self._checked(checks.probability(checks.real("u", u)), context)
        with torch.set_grad_enabled(u.requires_grad and torch.is_grad_enabled()):
            return self._inverse(u, context, torch.full_like(u, torch.nan))

    def sample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows, shape (n, D).

        context: None, one row shape (C,) for all, or one row per sample, shape (n, C).
        generator: A torch.Generator or a seed; fresh randomness by default.
        quasi: Whether to use a scrambled Sobol sequence, which covers the distribution evenly.
        given: Values to keep, shape (D,) or (n, D), NaN where they are to be drawn. They must come
            first in the order of the columns; the rest follows its exact conditional distribution.
        """
        with torch.no_grad():
            return self.rsample(n, context, generator, quasi=quasi, given=given)

    def rsample(
        self,
        n: int,
        context: Tensor | None = None,
        generator: torch.Generator | int | None = None,
        *,
        quasi: bool = False,
        given: Tensor | None = None,
    ) -> Tensor:
        """Draws n rows that carry gradients to the weights, at D evaluations; see `sample`."""
        u, context = self._uniform(n, context, generator, quasi=quasi)
        return self._inverse(u, context, checks.given(given, u, self.order, self.like))

    def _uniform(
        self,
        n: int,
        context: Tensor | None,
        generator: torch.Generator | int | None,
        *,
        quasi: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns numbers to draw n rows by, shape (n, D), and the context of each."""
        checks.positive("n", n)
        draw = quasi_uniform if quasi else uniform
        source = private_generator(generator, self.like.device)
        drawn = draw(torch.Size((n, self.columns)), self.like, source)
        return self._checked(drawn, checks.one_for_all(context, n))

    def filled(
        self,
        u: Tensor,
        given: Tensor,
        context: Tensor | None = None,
        within: Sequence[tuple[float, float]] | None = None,
    ) -> Tensor:
        """Returns rows at probabilities u, shape (N, D), in which some values are set.

        given: The values to set, NaN where there are none, shape (N, D). They may stand anywhere:
            columns modelled later read them, earlier ones take no notice.
        within: For each column (low, high): the values that are not set are drawn given that they
            lie in (low, high].
        """
        u, context = self._checked(checks.probability(checks.real("u", u)), context)
        return self._inverse(u, context, given, within)

    def distribution(self, context: Tensor | None = None) -> JointDistribution:
        """Returns a torch distribution of rows: batch shape from the context, event shape (D,)."""
        from nits.model.distribution import JointDistribution

        return JointDistribution(self, context)

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Returns what `described` builds the density from, without its weights, ready for JSON."""

    @classmethod
    @abstractmethod
    def described(cls, about: dict[str, Any], allowance: Allowance) -> Self:
        """Returns a density like the one whose `description` this is, if it is allowed so much."""

    def save(self, path: str | Path, *, half: bool = False) -> None:
        """Writes one file, which `nits.load` reads; `half` keeps the weights in float16."""
        from nits.model import persistence

        persistence.save(self, path, half=half)

    def _checked(self, x: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
        whole = all(head.discrete for head in self.heads)
        x = checks.rows("x", x, self.columns, self.like, whole=whole)
        return x, checks.context(context, len(x), self.context_features, self.like)

    def _inverse(
        self,
        u: Tensor,
        context: Tensor | None,
        given: Tensor,
        within: Sequence[tuple[float, float]] | None = None,
    ) -> Tensor:
        """Returns rows at probabilities u, except for the given values, those that are not NaN."""
        size = len(u) if torch.is_grad_enabled() else self.stepped_at_once
        parts = [u.new_empty(0, self.columns)]
        for some in slices(len(u), max(size, 1)):
            steps = self.steps(len(u[some]), None if context is None else context[some])
            parts.append(steps.rows(self.order, u[some], given[some], within))
        return torch.cat(parts)
