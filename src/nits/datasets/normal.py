"""Draws and formulas that the toy densities share: normal, uniform and exponential variables."""

import math

import torch
from torch import Generator, Tensor, float64

LOG_2PI = math.log(2 * math.pi)


def exponential_score(x: Tensor) -> Tensor:
    """Returns the normal score z of an exponential x, Φ(−z) = e^{−x}, from the smaller tail.

    Where e^{−x} would underflow, z² = 2x − log 2πz² is iterated twice; Mills's ratio is 1/z there.
    """
    far = 2 * x - torch.log(2 * math.pi * (2 * x - torch.log(4 * math.pi * x)))
    near = torch.where(
        x < 0.5, torch.special.ndtri(-torch.expm1(-x)), -torch.special.ndtri(torch.exp(-x))
    )
    return torch.where(x < 700, near, far.sqrt())


def fresh_generator() -> Generator:
    """Returns a generator seeded by the operating system."""
    generator = torch.Generator()
    generator.seed()
    return generator


def normal(n: int, columns: int, generator: Generator) -> Tensor:
    """Returns standard normal draws, shape (n, columns)."""
    return torch.randn(n, columns, generator=generator, dtype=float64)


def uniform(n: int, columns: int, generator: Generator) -> Tensor:
    """Returns uniform draws from [0, 1), shape (n, columns)."""
    return torch.rand(n, columns, generator=generator, dtype=float64)


def log_normal(z: Tensor) -> Tensor:
    """Returns log φ(z) = −(z² + log 2π) / 2, elementwise."""
    return -(z.square() + LOG_2PI) / 2


def whiten(x: Tensor, factor: Tensor) -> Tensor:
    """Returns L⁻¹x for every row x."""
    z: Tensor = torch.linalg.solve_triangular(factor, x.T, upper=False)
    return z.T


def log_det(factor: Tensor) -> Tensor:
    """Returns log |L| = Σ log L_ii of triangular matrices, shape (*, D, D) → (*)."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def markov_factor(rho: float, dimension: int) -> Tensor:
    """Returns the Cholesky factor L of the correlations Σ_ij = ρ^|i−j|."""
    i = torch.arange(dimension, dtype=float64)
    factor: Tensor = torch.linalg.cholesky(rho ** (i[:, None] - i).abs())
    return factor
