"""Uniform random numbers, independent or quasi-random, and private generators for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

Seeded = torch.Generator | int | None
"""A generator, the seed of one, or None for torch's global generator."""

Generators = torch.Generator | Sequence[torch.Generator] | None
"""A generator, one for each of several networks, or None for torch's global generator."""


def uniform(shape: torch.Size, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draws numbers in (0, 1): never 0, whose quantile on an infinite support is −∞."""
    u = torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)
    return u.clamp_min(torch.finfo(like.dtype).eps / 4)


def quasi_uniform(shape: torch.Size, like: Tensor, generator: torch.Generator) -> Tensor:
    """Draws a scrambled Sobol sequence in (0, 1), shape (n, D), which covers the cube evenly."""
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    points = torch.quasirandom.SobolEngine(shape[1], scramble=True, seed=seed).draw(
        shape[0], dtype=torch.float64
    )
    return points.clamp(2.0**-32, 1 - 2.0**-24).to(like)


def private_generator(
    generator: torch.Generator | int | None, device: torch.device
) -> torch.Generator:
    """Returns the generator, one with that seed, or one with a fresh seed; never the global one."""
    if isinstance(generator, torch.Generator):
        return generator
    private = torch.Generator(device)
    if generator is None:
        private.seed()
    else:
        private.manual_seed(generator)
    return private


def seeded(generator: Seeded) -> torch.Generator | None:
    """Returns the generator, or one with that seed; None, torch's global one, stays None."""
    if generator is None or isinstance(generator, torch.Generator):
        return generator
    return torch.Generator().manual_seed(generator)


def another(seed: int, part: int) -> int:
    """Returns the seed of another part of a random step, whose numbers are unrelated."""
    return int(np.random.SeedSequence((seed % 2**64, part)).generate_state(1)[0])
