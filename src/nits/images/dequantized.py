"""Densities of 8-bit pixels with uniform noise: the continuous NITS-CONV, and the bound it gives.

A pixel k of 0 … 255 becomes y = k + ε with ε uniform on [0, 1). A density of y never sees an
integer, and bounds the probability of an image x of D pixels, the better the more draws K:

    log P(x) ≥ E log ( (1/K) Σ_k ν(y_k) )                                                   (19)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from nits import checks
from nits.heads import Continuous
from nits.model.density import Density
from nits.model.steps import Steps
from nits.model.wrapped import Wrapped
from nits.pnn.affine import Affine
from nits.pnn.random import private_generator

LEVELS = 256


class Dequantized(Wrapped):
    """The density of pixels with noise, y on [0, 256), made of one of z = y / 256.

    Entries that are whole numbers get fresh noise at every call, from a generator of the model's
    own: the log-density of a row of pixels is then an estimate of the bound (19) with K = 1.
    Entries that are not whole have noise already and are taken as they are.

    density: Of z: real columns on [0, 1] that are never missing.
    seed: Of the noise; fresh by default.

    >>> import nits, torch
    >>> inside = nits.NITS.independent([nits.heads.Continuous(0, 1)] * 4)
    >>> model = nits.Dequantized(inside, seed=0)
    >>> model.log_prob(torch.tensor([[0.0, 17.0, 128.0, 255.0]])).shape
    torch.Size([1])
    """

    kind = "dequantized"

    def __init__(self, density: Density, seed: int | None = None) -> None:
        super().__init__(density)
        for head in density.heads:
            unit = isinstance(head, Continuous) and (head.low, head.high) == (0, 1)
            if not unit or head.optional:
                raise ValueError(
                    "dequantized columns must be real ones on [0, 1] without missing values, "
                    f"but one is {head}; make them with nits.heads.Continuous(0, 1)."
                )
        self.generator = private_generator(seed, torch.device("cpu"))

    def noisy(self, x: Tensor) -> Tensor:
        """Returns rows x, shape (N, D), with noise added to the entries that are whole numbers."""
        noise = torch.rand(x.shape, generator=self.generator, dtype=x.dtype).to(x.device)
        return torch.where(x == x.floor(), x + noise, x)

    def _z(self, x: Tensor) -> Tensor:
        """Returns z; what is no pixel, noise or not, becomes −1, which is impossible."""
        outside = (x < 0) | (x >= LEVELS)
        return (self.noisy(x) / LEVELS).masked_fill(outside, -1.0)

    def supports(self) -> list[Any]:
        """Returns the interval [0, 256] for each column."""
        return [constraints.interval(0.0, float(LEVELS)) for _ in self.heads]

    def is_real(self, column: int) -> bool:
        """Returns that a constant pixel is no harm: noise makes it vary."""
        return False

    def reseed(self, seed: int | None) -> None:
        """Starts the noise and dropout anew, so that a step of training can be repeated."""
        if seed is not None:
            self.generator.manual_seed(seed)
        super().reseed(seed)

    def bound(self, x: Tensor, context: Tensor | None = None, draws: int = 8) -> Tensor:
        """Returns the bound (19) on log P(x) in nats for rows x, shape (N, D), with K = draws."""
        checks.positive("draws", draws)
        found = torch.stack([self.log_prob(x, context) for _ in range(draws)])
        return torch.logsumexp(found, 0) - math.log(draws)

    def log_prob_per_column(
        self, x: Tensor, context: Tensor | None = None, withheld: Tensor | None = None
    ) -> Tensor:
        """Returns each column's share of log ν(y), shape (N, D), for one draw of the noise."""
        x, context = self._checked(x, context)
        return self.density.log_prob_per_column(self._z(x), context) - math.log(LEVELS)

    def conditionals(self, x: Tensor, context: Tensor | None = None) -> list[Distribution]:
        """Returns the distribution of every column's y given the columns before it, N rows each."""
        x, context = self._checked(x, context)
        loc, scale = x.new_tensor(0.0), x.new_tensor(float(LEVELS))
        return [Affine(base, loc, scale) for base in self.density.conditionals(self._z(x), context)]

    def to_uniform(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns the Rosenblatt transform of y, shape (N, D)."""
        x, context = self._checked(x, context)
        return self.density.to_uniform(self._z(x), context)

    def steps(self, n: int, context: Tensor | None = None) -> Steps:
        """Starts to go through n rows column by column."""
        return DequantizedSteps(self, n, context)

    def possible(self, x: Tensor) -> Tensor:
        """Returns which rows x, shape (N, D), lie in the support, shape (N,)."""
        return self.density.possible(self._z(x))

    def start_from(self, x: Tensor, context: Tensor | None = None) -> None:
        """Sets the weights to where training on rows like x starts."""
        self.density.start_from(self._z(x), context)


class DequantizedSteps(Steps):
    """Columns of y = 256 z."""

    def __init__(self, model: Dequantized, n: int, context: Tensor | None) -> None:
        self.model = model
        self.inner = model.density.steps(n, context)

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns log ν(z) − log 256."""
        return self.inner.log_prob(self.model._z(x)) - math.log(LEVELS)

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(Z ≤ z)."""
        return self.inner.cdf(x / LEVELS)

    def quantile(self, u: Tensor) -> Tensor:
        """Returns 256 times the quantile of z."""
        return self.inner.quantile(u) * LEVELS

    def has_mass(self, x: Tensor) -> Tensor:
        """Returns that none has: pixels with noise are real numbers."""
        return torch.zeros_like(x, dtype=torch.bool)

    def feed(self, x: Tensor) -> None:
        """Takes the values of the column."""
        self.inner.feed(self.model._z(x))
