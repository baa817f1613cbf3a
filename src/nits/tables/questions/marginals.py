"""The distribution of one column under conditions: a mixture of the particles' conditionals.

Where the column comes after all conditions, nothing of it is drawn: its distribution is the
weighted mean of the particles' conditional distributions, exact given the particles. Where it comes
before one, its draws carry the weights of what followed.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.heads import Given
from nits.model.mixed import least
from nits.model.steps import HeadSteps, Steps
from nits.tables.questions.cloud import Cloud
from nits.tables.questions.particles import Walk, systematic

AT_ONCE = 2**22
"""Points times particles that are evaluated together."""


class Marginal:
    """The model's law of the next column's numbers, for G = R · B groups of particles.

    It has the methods that `Conditional` needs of a distribution.
    """

    def __init__(self, cloud: Cloud, column: int) -> None:
        self.cloud = cloud
        self.walks = [walk for walk in cloud.walks if walk.rank == walk.order.index(column)]
        if len(self.walks) < len(cloud.walks):
            raise ValueError("the column must come after all conditions, but comes before one.")
        rows, batches, _ = cloud.walks[0].shape
        self.groups = rows * batches
        self.evidence = cloud.log_evidence()  # (R, B)
        self.weights = self._normalized()

    @property
    def batch_shape(self) -> torch.Size:
        """One distribution for each group."""
        return torch.Size((self.groups,))

    def _normalized(self) -> list[Tensor]:
        """Returns each member's weights, which sum to one within a group over all members."""
        whole = self.cloud.log_weights()
        log_weights = whole - whole.logsumexp(-1, keepdim=True).nan_to_num(neginf=0.0)
        sizes = [walk.shape.size for walk in self.walks]
        parts = log_weights.exp().reshape(self.groups, -1).split(sizes, 1)
        return [part.flatten() for part in parts]

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) for points, shape (M, G) or (G,), of the same shape."""
        return self._summed(x, _cdf).clamp(max=1.0)

    def prob(self, x: Tensor) -> Tensor:
        """Returns probabilities or densities at points, shape (M, G) or (G,)."""
        return self._summed(x, lambda steps, at: _log_prob(steps, at).exp())

    def _summed(self, x: Tensor, function: object) -> Tensor:
        flat = x if x.dim() == 2 else x.unsqueeze(0)
        total = torch.zeros(flat.shape, dtype=torch.float64)
        for walk, weights in zip(self.walks, self.weights, strict=True):
            group = torch.arange(self.groups).repeat_interleave(walk.shape.size)
            step = max(1, AT_ONCE // len(group))
            for start in range(0, len(flat), step):
                at = flat[start : start + step, group]
                found = function(walk.steps, at).double() * weights  # type: ignore[operator]
                each = found.reshape(len(at), self.groups, walk.shape.size).sum(-1)
                total[start : start + step] += each
        return total.reshape(x.shape).to(x.dtype)

    def drawn(self, count: int) -> Tensor:
        """Draws numbers of particles that are chosen by weight, shape (count,); of one row."""
        shares = torch.cat([weights.sum().reshape(1) for weights in self.weights])
        sizes = (count * shares / shares.sum()).ceil().long().tolist()
        parts = []
        source = torch.Generator().manual_seed(0)
        for walk, weights, size in zip(self.walks, self.weights, sizes, strict=True):
            z = self.evidence.softmax(1).flatten().repeat_interleave(walk.shape.size)
            which = systematic((weights * z).log(), source, size)
            u = torch.rand(len(walk.row), generator=source).to(walk.u).clamp(1e-6, 1 - 1e-6)
            parts.append(walk.steps.quantile(u)[which])
        return torch.cat(parts)

    def pooled(self, per_group: Tensor) -> Tensor:
        """Returns the mean over a row's batches, by their evidence, from (M, G) to (M, R)."""
        weights = self.evidence.softmax(1)
        return (per_group.double().reshape(len(per_group), *weights.shape) * weights).sum(-1)


class Pooled:
    """The law of the next column's numbers for R rows, all batches together."""

    def __init__(self, marginal: Marginal) -> None:
        self.marginal = marginal
        self.rows, self.batches = marginal.evidence.shape

    @property
    def batch_shape(self) -> torch.Size:
        """One distribution for each row."""
        return torch.Size((self.rows,))

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) for points, shape (M, R) or (R,), of the same shape."""
        flat = x if x.dim() == 2 else x.unsqueeze(0)
        found = self.marginal.cdf(flat.repeat_interleave(self.batches, 1))
        return self.marginal.pooled(found).reshape(x.shape).to(x.dtype)

    def icdf(self, u: Tensor) -> Tensor:
        """Returns the least x with P(X ≤ x) ≥ u, for u of shape (M, R)."""
        low = torch.full_like(u, torch.inf)
        high = torch.full_like(u, -torch.inf)
        for walk in self.marginal.walks:
            for m, level in enumerate(u):
                found = walk.steps.quantile(level[walk.row]).reshape(self.rows, -1)
                low[m] = torch.minimum(low[m], found.amin(1))
                high[m] = torch.maximum(high[m], found.amax(1))
        return least(self.cdf, u, low, high)


def _many(steps: Steps, x: Tensor) -> tuple[HeadSteps, Given] | None:
    """Returns the head's steps and weights for points of shape (M, N), if there is a head."""
    if not isinstance(steps, HeadSteps):
        return None
    given = steps.given
    theta = given.theta.expand(-1, x.shape[1]).expand(len(x), -1, -1)
    return steps, Given(theta, given.low.expand(x.shape), given.high.expand(x.shape))


def _cdf(steps: Steps, x: Tensor) -> Tensor:
    found = _many(steps, x)
    if found is None:
        return torch.stack([steps.cdf(one) for one in x])
    return found[0].head.cdf(found[1], x)


def _log_prob(steps: Steps, x: Tensor) -> Tensor:
    found = _many(steps, x)
    if found is None:
        return torch.stack([steps.log_prob(one) for one in x])
    return found[0].head.log_prob(found[1], x)


def is_ahead(walk: Walk, column: int) -> bool:
    """Returns whether a column comes after all conditions of a walk, and has none itself."""
    return walk.query.last(walk.order) <= walk.order.index(column)


def weighted(cloud: Cloud) -> NDArray[np.float64]:
    """Returns the weights of all particles, which sum to one in each row, shape (R, P)."""
    flat = cloud.log_weights().flatten(1)
    found: NDArray[np.float64] = flat.softmax(1).numpy()
    return found
