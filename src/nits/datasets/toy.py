"""Eight toy densities, two to eight columns, with exact samples and an exact log-density.

A trained model is compared with them: on new rows its mean log-density approaches the true one, as
in `density("ring").log_prob(rows).mean()`, and exceeds it only by chance.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Generator, Tensor, float32, float64
from torch.nn.functional import logsigmoid

from nits.datasets.normal import (
    exponential_score,
    fresh_generator,
    log_det,
    log_normal,
    markov_factor,
    normal,
    uniform,
    whiten,
)


class Density(ABC):
    """A density on `dimension` columns, zero outside the box [low, high].

    low, high: Ends of the support of every column, float64, shape (D,); infinite unless the
        subclass has others.
    """

    def __init__(self, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension
        self.low = torch.full((dimension,), -math.inf, dtype=float64)
        self.high = -self.low

    def sample(
        self, n: int, generator: Generator | None = None, *, dtype: torch.dtype = float32
    ) -> Tensor:
        """Returns n independent rows, shape (n, D).

        The rows are drawn in float64 and rounded to `dtype`. Without a generator a private one with
        a fresh seed is used; torch's global generator is neither read nor moved.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, but is {n}.")
        return self._draw(n, fresh_generator() if generator is None else generator).to(dtype)

    def log_prob(self, x: Tensor) -> Tensor:
        """Returns log p(x), −inf outside the support and NaN for a row with a NaN.

        x: Rows, shape (n, D). The computation is in float64; the result has the precision of x.
        """
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise ValueError(
                f"x must have shape (n, {self.dimension}) for {self.name!r}, "
                f"but has {tuple(x.shape)}."
            )
        outside = ((x < self.low) | (x > self.high) | x.isinf()).any(1)
        log_p = self._log_density(x.double()).masked_fill(outside, -math.inf)
        return log_p.to(torch.promote_types(x.dtype, float32))

    @abstractmethod
    def _draw(self, n: int, generator: Generator) -> Tensor: ...

    @abstractmethod
    def _log_density(self, x: Tensor) -> Tensor: ...


class GaussianMixture(Density):
    """Gaussian mixture p(x) = Σ_k w_k N(x; μ_k, L_k L_kᵀ).

    weights: w, shape (K,).
    means: μ, shape (K, D).
    factors: L, lower triangular, shape (K, D, D).
    """

    def __init__(self, name: str, weights: Tensor, means: Tensor, factors: Tensor) -> None:
        super().__init__(name, means.shape[1])
        self.weights = weights
        self.means = means
        self.factors = factors

    def _draw(self, n: int, generator: Generator) -> Tensor:
        k = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        z = normal(n, self.dimension, generator)
        return self.means[k] + torch.einsum("nij,nj->ni", self.factors[k], z)

    def _log_density(self, x: Tensor) -> Tensor:
        centred = x[:, None] - self.means  # (n, K, D)
        z = torch.einsum("kij,nkj->nki", torch.linalg.inv(self.factors), centred)
        log_components = log_normal(z).sum(2) - log_det(self.factors)
        return torch.logsumexp(self.weights.log() + log_components, 1)


class Checkerboard(Density):
    """Checkerboard with soft edges on the unit square.

        p(x, y) = 1 + a s(x) s(y),   s(t) = tanh(c sin(2πkt)) / tanh(c)

    s is odd under a shift by half a period, s(t + 1/2k) = −s(t), so both margins are uniform.
    """

    contrast, sharpness, periods = 0.98, 3.0, 2

    def __init__(self, name: str) -> None:
        super().__init__(name, 2)
        self.low = torch.zeros_like(self.low)
        self.high = torch.ones_like(self.high)

    def _draw(self, n: int, generator: Generator) -> Tensor:
        # p(x, y) + p(x, y + 1/2k) = 2: keep a uniform point with probability p / 2, or shift it.
        x, y, u = uniform(n, 3, generator).unbind(1)
        shifted = (y + 0.5 / self.periods) % 1.0
        keep = 2 * u < self._density(x, y)
        return torch.stack([x, torch.where(keep, y, shifted)], 1)

    def _log_density(self, x: Tensor) -> Tensor:
        return self._density(x[:, 0], x[:, 1]).log()

    def _density(self, x: Tensor, y: Tensor) -> Tensor:
        return 1 + self.contrast * self._wave(x) * self._wave(y)

    def _wave(self, t: Tensor) -> Tensor:
        sine = torch.sin(2 * math.pi * self.periods * t)
        return torch.tanh(self.sharpness * sine) / math.tanh(self.sharpness)


class StudentT(Density):
    """Multivariate Student t with ν = 5 degrees of freedom and scale matrix Σ = L Lᵀ.

    log p(x) = log Γ((ν+D)/2) − log Γ(ν/2) − (D/2) log νπ − log |L| − ((ν+D)/2) log(1 + |L⁻¹x|²/ν)
    """

    freedom = 5

    def __init__(self, name: str, factor: Tensor) -> None:
        super().__init__(name, len(factor))
        self.factor = factor

    def _draw(self, n: int, generator: Generator) -> Tensor:
        # χ² with ν degrees of freedom is a sum of ν squared normals.
        chi2 = normal(n, self.freedom, generator).square().sum(1, keepdim=True)
        return normal(n, self.dimension, generator) @ self.factor.T / (chi2 / self.freedom).sqrt()

    def _log_density(self, x: Tensor) -> Tensor:
        nu = self.freedom
        power = (nu + self.dimension) / 2
        log_constant = (
            math.lgamma(power) - math.lgamma(nu / 2) - self.dimension / 2 * math.log(nu * math.pi)
        )
        squared = whiten(x, self.factor).square().sum(1)
        return log_constant - log_det(self.factor) - power * torch.log1p(squared / nu)


class Funnel(Density):
    """Neal's funnel, less steep: v = x_1 ~ N(0, 1), and x_i | v ~ N(0, exp v) for i > 1."""

    def _draw(self, n: int, generator: Generator) -> Tensor:
        z = normal(n, self.dimension, generator)
        return torch.cat([z[:, :1], z[:, 1:] * torch.exp(z[:, :1] / 2)], 1)

    def _log_density(self, x: Tensor) -> Tensor:
        v, rest = x[:, :1], x[:, 1:]
        return log_normal(v).sum(1) + (log_normal(rest * torch.exp(-v / 2)) - v / 2).sum(1)


class LogisticChain(Density):
    """Nonlinear Markov chain whose steps are two-logistic mixtures; it starts from x_0 = 0.

    x_i | u  ~  σ(u) Logistic(1 + ½ sin 2u, s) + σ(−u) Logistic(−1 + ½ cos 2u, s)

    with u = x_{i−1} and s = 1/4.
    """

    scale = 0.25

    def _draw(self, n: int, generator: Generator) -> Tensor:
        columns = [torch.zeros(n, dtype=float64)]
        for _ in range(self.dimension):
            columns.append(self._step(columns[-1], generator))
        return torch.stack(columns[1:], 1)

    def _step(self, u: Tensor, generator: Generator) -> Tensor:
        choice, noise = uniform(len(u), 2, generator).unbind(1)
        upper, lower = self._centres(u)
        centre = torch.where(choice < torch.sigmoid(u), upper, lower)
        return centre + self.scale * torch.logit(noise)

    def _log_density(self, x: Tensor) -> Tensor:
        u = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        upper, lower = (self._log_logistic(x - centre) for centre in self._centres(u))
        return torch.logaddexp(logsigmoid(u) + upper, logsigmoid(-u) + lower).sum(1)

    def _centres(self, u: Tensor) -> tuple[Tensor, Tensor]:
        return 1 + torch.sin(2 * u) / 2, -1 + torch.cos(2 * u) / 2

    def _log_logistic(self, x: Tensor) -> Tensor:
        return logsigmoid(x / self.scale) + logsigmoid(-x / self.scale) - math.log(self.scale)


class GaussianCopula(Density):
    """Gaussian copula, z ~ N(0, L Lᵀ) with unit variances, and two kinds of margins in turn.

        x_1, x_3, … = −log Φ(−z)     exponential, on [0, ∞)
        x_2, x_4, … = σ(z)           logit-normal, on [0, 1]

    log p(x) = log N(z; 0, L Lᵀ) + Σ log |dz/dx|, which tends to −inf at the edges.
    """

    def __init__(self, name: str, factor: Tensor) -> None:
        super().__init__(name, len(factor))
        self.low = torch.zeros_like(self.low)
        self.high[1::2] = 1.0
        self.factor = factor

    def _draw(self, n: int, generator: Generator) -> Tensor:
        x = normal(n, self.dimension, generator) @ self.factor.T
        x[:, 0::2] = -torch.special.log_ndtr(-x[:, 0::2])
        x[:, 1::2] = torch.sigmoid(x[:, 1::2])
        return x

    def _log_density(self, x: Tensor) -> Tensor:
        half_line, bounded = x[:, 0::2], x[:, 1::2]
        z = torch.empty_like(x)
        z[:, 0::2] = exponential_score(half_line)
        z[:, 1::2] = torch.logit(bounded)
        log_joint = log_normal(whiten(z, self.factor)).sum(1) - log_det(self.factor)
        # dz/dx is e^{−x} / φ(z) for the exponential and 1 / (x (1 − x)) for the logit.
        log_slopes = -half_line - log_normal(z[:, 0::2]), -(bounded * (1 - bounded)).log()
        log_p = log_joint + torch.cat(log_slopes, 1).sum(1)
        return log_p.masked_fill(z.isinf().any(1), -math.inf)


def round_mixture(name: str, means: Tensor, width: float) -> GaussianMixture:
    """Returns the mixture of equally likely Gaussians at `means`, of standard deviation `width`."""
    k, d = means.shape
    weights = torch.full((k,), 1 / k, dtype=float64)
    return GaussianMixture(
        name, weights, means, width * torch.eye(d, dtype=float64).expand(k, d, d)
    )


def moons() -> Density:
    """Two interlocking half circles, each a smooth band of sixteen Gaussians that overlap."""
    t = math.pi * (torch.arange(16, dtype=float64) + 0.5) / 16
    upper = torch.stack([t.cos(), t.sin()], 1)
    lower = torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)
    return round_mixture("moons", torch.cat([upper, lower]), 0.12)


def ring() -> Density:
    """Eight Gaussians on a circle of radius two."""
    t = 2 * math.pi * torch.arange(8, dtype=float64) / 8
    return round_mixture("ring", 2 * torch.stack([t.cos(), t.sin()], 1), 0.25)


def mixture() -> Density:
    """Three unequal, differently correlated Gaussians in three dimensions."""
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=float64)
    means = torch.tensor([[-2.0, 0.0, 1.0], [1.0, 2.0, -1.0], [2.0, -1.5, 0.0]], dtype=float64)
    first = [[0.8, 0.0, 0.0], [0.6, 0.5, 0.0], [-0.3, 0.4, 0.6]]
    second = [[0.5, 0.0, 0.0], [-0.7, 0.6, 0.0], [0.2, 0.5, 0.4]]
    third = [[1.0, 0.0, 0.0], [0.0, 0.4, 0.0], [0.8, -0.3, 0.5]]
    return GaussianMixture(
        "mixture", weights, means, torch.tensor([first, second, third], dtype=float64)
    )


_EVERY: list[Density] = [
    moons(),
    ring(),
    Checkerboard("checkerboard"),
    mixture(),
    StudentT("student", markov_factor(-0.7, 4)),
    Funnel("funnel", 5),
    LogisticChain("chain", 6),
    GaussianCopula("copula", markov_factor(0.6, 8)),
]
DENSITIES: dict[str, Density] = {each.name: each for each in _EVERY}


def density(name: str) -> Density:
    """Returns the density called `name`."""
    if name not in DENSITIES:
        raise ValueError(
            f"There is no toy density {name!r}; the known ones are {', '.join(DENSITIES)}."
        )
    return DENSITIES[name]
