"""Eight generated tables whose density is known: rows to learn from, test rows and their truth."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from nits.datasets.normal import log_det, log_normal, markov_factor, normal, whiten
from nits.datasets.toy import Density, Funnel, LogisticChain, StudentT, round_mixture

TEST_ROWS = 20_000


class Generated(NamedTuple):
    """Rows to learn from, test rows, and the true log-density of these, shape (N,)."""

    train: Any
    test: Any
    truth: NDArray[np.float64]


class Linear(Density):
    """Gaussian columns x = L z, each a straight line of those before and noise.

    factor: L, lower triangular, shape (D, D).
    """

    def __init__(self, name: str, factor: Tensor) -> None:
        super().__init__(name, len(factor))
        self.factor = factor

    def _draw(self, n: int, generator: Generator) -> Tensor:
        return normal(n, self.dimension, generator) @ self.factor.T

    def _log_density(self, x: Tensor) -> Tensor:
        return log_normal(whiten(x, self.factor)).sum(1) - log_det(self.factor)


class SteepFunnel(Funnel):
    """Neal's funnel with v = x_1 ~ N(0, 1.5²), and x_i | v ~ N(0, exp v) for i > 1.

    The mean of log p is −(5/2) log 2πe − log 1.5 = −7.500 with five columns.
    """

    width = 1.5

    def _draw(self, n: int, generator: Generator) -> Tensor:
        z = normal(n, self.dimension, generator)
        v = self.width * z[:, :1]
        return torch.cat([v, z[:, 1:] * torch.exp(v / 2)], 1)

    def _log_density(self, x: Tensor) -> Tensor:
        v = x[:, :1]
        log_v = log_normal(v / self.width) - math.log(self.width) - log_normal(v)
        return super()._log_density(x) + log_v.sum(1)


class HeavyTails(StudentT):
    """Student's t with three degrees of freedom: finite variances, infinite fourth moments."""

    freedom = 3


def random_walk(columns: int = 300, step: float = 0.1) -> Density:
    """Returns sums of independent steps N(0, 0.1²).

    The mean of log p is log 10 − ½ log 2πe = 0.8836 a column, 265.1 of 300.
    """
    factor = step * torch.ones(columns, columns, dtype=torch.float64).tril()
    return Linear("wide", factor)


def straight_lines(columns: int = 10) -> Density:
    """Returns columns of noise ½ … 2, each with seeded weights N(0, 1) / √D of those before."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.logspace(-1, 1, columns, base=2.0, dtype=torch.float64).flip(0)
    weights = (normal(columns, columns, generator) / math.sqrt(columns)).tril(-1)
    # x = W x + s z, so x = (1 − W)⁻¹ s z.
    factor = torch.linalg.inv(torch.eye(columns, dtype=torch.float64) - weights) * noise
    return Linear("linear", factor)


def ring() -> Density:
    """Returns a circle of radius 1, a smooth band of 128 Gaussians of deviation 0.1."""
    t = 2 * math.pi * torch.arange(128, dtype=torch.float64) / 128
    return round_mixture("ring", torch.stack([t.cos(), t.sin()], 1), 0.1)


def spiral() -> Density:
    """Returns two turns of r = t / 2π from ¼ on, a smooth band of 512 Gaussians of deviation 0.05.

    They are equally many per length, so that the band is equally dense.
    """
    turns = (
        0.25**2 + (2.25**2 - 0.25**2) * (torch.arange(512, dtype=torch.float64) + 0.5) / 512
    ).sqrt()
    t = 2 * math.pi * turns
    return round_mixture("spiral", turns[:, None] * torch.stack([t.cos(), t.sin()], 1), 0.05)


SIZES: dict[str, int] = {
    "wide": 3000,
    "tiny": 100,
    "linear": 2000,
    "funnel": 16_000,
    "spiral": 5000,
    "ring": 5000,
    "heavy_tails": 5000,
    "mixed": 5000,
}
"""The tables, and how many rows each has to learn from."""

DENSITIES: dict[str, Density] = {
    "wide": random_walk(),
    "tiny": LogisticChain("tiny", 5),
    "linear": straight_lines(),
    "funnel": SteepFunnel("funnel", 5),
    "spiral": spiral(),
    "ring": ring(),
    "heavy_tails": HeavyTails("heavy_tails", markov_factor(0.7, 4)),
}


class Mixed:
    """A category, an integer, and three reals, one of which is often missing.

    group   a, b, c or d
    count   Poisson, its rate by the group
    size    N(√count + the group's shift, ½²)
    weight  missing with a probability by the group; else log weight ~ N(sin size, ½²)
    value   N(½ log weight, 0.3²), or N(1 + size / 10, 0.3²) where weight is missing
    """

    shares = np.array([0.4, 0.3, 0.2, 0.1])
    rates = np.array([2.0, 5.0, 10.0, 20.0])
    shifts = np.array([0.0, 1.0, -1.0, -3.0])
    holes = np.array([0.1, 0.2, 0.3, 0.4])
    names = np.array(["a", "b", "c", "d"])

    def sample(self, n: int, seed: int) -> Any:
        """Returns n rows."""
        rng = np.random.default_rng(seed)
        g = rng.choice(4, n, p=self.shares)
        count = rng.poisson(self.rates[g])
        size = np.sqrt(count) + self.shifts[g] + rng.normal(size=n) / 2
        log_weight = np.sin(size) + rng.normal(size=n) / 2
        hole = rng.random(n) < self.holes[g]
        centre = np.where(hole, 1 + size / 10, log_weight / 2)
        columns = {
            "group": self.names[g],
            "count": count,
            "size": size,
            "weight": np.where(hole, np.nan, np.exp(log_weight)),
            "value": centre + 0.3 * rng.normal(size=n),
        }
        return pandas.DataFrame(columns)

    def log_prob(self, rows: Any) -> NDArray[np.float64]:
        """Returns log p of rows: probabilities of group, count and holes, densities of the rest."""
        g = np.searchsorted(self.names, rows["group"].to_numpy(str))
        count, size, weight, value = (
            rows[name].to_numpy(np.float64) for name in ("count", "size", "weight", "value")
        )
        hole = np.isnan(weight)
        log_weight = np.log(np.where(hole, 1.0, weight))
        factorial = torch.lgamma(torch.from_numpy(count + 1)).numpy()
        log_count = count * np.log(self.rates[g]) - self.rates[g] - factorial
        log_size = _log_normal(size, np.sqrt(count) + self.shifts[g], 0.5)
        known = np.log1p(-self.holes[g]) + _log_normal(log_weight, np.sin(size), 0.5) - log_weight
        centre = np.where(hole, 1 + size / 10, log_weight / 2)
        whether = np.where(hole, np.log(self.holes[g]), known)
        log_value = _log_normal(value, centre, 0.3)
        total: NDArray[np.float64] = (
            np.log(self.shares[g]) + log_count + log_size + whether + log_value
        )
        return total


def _log_normal(x: NDArray[Any], centre: NDArray[Any], width: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = log_normal(torch.from_numpy((x - centre) / width)).numpy()
    return found - math.log(width)


def generated(name: str, test_rows: int = TEST_ROWS) -> Generated:
    """Returns the table of a name: seed 0 for the rows to learn from, 1 for the test rows."""
    if name == "mixed":
        train, test = (Mixed().sample(n, seed) for seed, n in enumerate((SIZES[name], test_rows)))
        return Generated(train, test, Mixed().log_prob(test))
    density = DENSITIES[name]
    rows, rest = (
        density.sample(n, torch.Generator().manual_seed(seed), dtype=torch.float64)
        for seed, n in enumerate((SIZES[name], test_rows))
    )
    names = [f"x{i}" for i in range(1, density.dimension + 1)]
    train, test = (pandas.DataFrame(part.numpy(), columns=names) for part in (rows, rest))
    return Generated(train, test, density.log_prob(rest).numpy())
