"""Two correlated columns, a small model of them and a quick recipe, for the tests of training."""

from __future__ import annotations

import torch
from torch import Tensor

import nits

QUICK = nits.Recipe(batch_size=64, learning_rate=1e-2, schedule=nits.Cosine(warmup=5))


def rows(n: int = 600, seed: int = 0) -> Tensor:
    """Two correlated columns."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))
    return torch.stack([x[:, 0], 0.8 * x[:, 0] + 0.6 * x[:, 1]], 1)


def small(**options: float) -> nits.NITS:
    torch.manual_seed(0)
    return nits.NITS.mlp([nits.heads.Continuous(hidden=(6, 6))] * 2, hidden=16, blocks=1, **options)  # type: ignore[arg-type]


def weights(model: nits.NITS) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])
