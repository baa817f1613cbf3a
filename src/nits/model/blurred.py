"""What training sees of a density of blurred rows, equation (39)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Distribution

from nits.model.density import Density
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.random import another

DRAWING = -3 % 2**32
"""The part of a step's randomness that the noise is drawn from."""


class Blurred(Wrapped):
    """A density that learns from rows whose entries are blurred, afresh at every step.

    Real numbers get normal noise. Categories are, with some probability, those of another row.

        y_i = x_i + w_i ε_i,  ε_i ~ N(0, 1),   or   y_i = x′_i with probability w_i           (39)

    Once `reseed` was called with a seed, rows are blurred when they are scored, in the same way
    after the same seed; without a seed they are scored as they are.

    density: Of the blurred rows.
    widths: w, one for each column.
    """

    kind = "blurred"

    def __init__(self, density: Density, widths: Sequence[float]) -> None:
        super().__init__(density)
        if len(widths) != density.columns:
            raise ValueError(
                f"widths must be {density.columns}, one for each column, but are {len(widths)}."
            )
        self.widths = tuple(widths)
        self.source: torch.Generator | None = None

    def reseed(self, seed: int | None) -> None:
        """Seeds the noise and dropout; None for no noise."""
        generator = torch.Generator()
        self.source = None if seed is None else generator.manual_seed(another(seed, DRAWING))
        super().reseed(seed)

    def noisy(self, x: Tensor) -> Tensor:
        """Returns rows x, shape (N, D), blurred if there is a seed."""
        if self.source is None:
            return x
        discrete = torch.tensor([head.discrete for head in self.heads])
        width = torch.tensor(self.widths, dtype=x.dtype)
        noise = torch.randn(x.shape, generator=self.source, dtype=x.dtype)
        chance = torch.rand(x.shape, generator=self.source, dtype=x.dtype)
        other = x[torch.randperm(len(x), generator=self.source)]
        anew = discrete & (chance < width)
        return torch.where(anew.to(x.device), other, x + (noise * width * ~discrete).to(x))

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's term, shape (N, D); 0 if it is missing."""
        x, context = self._checked(x, context)
        return self.density.log_prob_per_column(self.noisy(x), context, withheld)

    def forward(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns the sum of the terms without checking the rows, for training."""
        found: Tensor = self.density(self.noisy(x), context, withheld)
        return found

    def is_real(self, column: int) -> bool:
        """Returns that a constant column is no harm: noise makes it vary."""
        return False

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of each column given those modelled before it, for N rows."""
        return self.density.conditionals(x, context)

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform u, shape (N, D): u_i = P(X_i ≤ x_i | columns before)."""
        return self.density.to_uniform(x, context)

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts n rows."""
        return self.density.steps(n, context)

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        return self.density.possible(x)

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the weights to where training on rows like x starts."""
        self.density.start_from(self.noisy(x), context)
