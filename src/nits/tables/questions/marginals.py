"""The distribution of one column under conditions: a mixture of the particles' conditionals.

Where the column comes after all conditions, nothing of it is drawn: its distribution is the
weighted mean of the particles' conditional distributions, exact given the particles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits.heads import Given
from nits.model.mixed import least
from nits.model.steps import HeadSteps, Steps
from nits.tables.questions.cloud import Cloud
from nits.tables.questions.particles import systematic

AT_ONCE = 2**21
"""Points times particles that are evaluated together."""

THINNED = 1024
"""Particles whose densities are averaged."""

CORRECTIONS = 2
"""How often a quantile of draws is moved by what the cdf says of it."""


class Marginal:
    """The model's law of the next column's numbers, for G = R · B groups of particles.

    It has the methods that `Conditional` needs of a distribution.
    """

    def __init__(self, cloud: Cloud, column: int) -> None:
        self.cloud, self.walks = cloud, cloud.walks
        if any(walk.rank != walk.order.index(column) for walk in self.walks):
            raise ValueError("the column must come after all conditions, but comes before one.")
        self.rows, self.batches, _ = cloud.walks[0].shape
        self.groups = self.rows * self.batches
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
        flat = x if x.dim() == 2 else x.unsqueeze(0)
        total = torch.zeros(flat.shape, dtype=torch.float64)
        for walk, weights in zip(self.walks, self.weights, strict=True):
            group = torch.arange(self.groups).repeat_interleave(walk.shape.size)
            step = max(1, AT_ONCE // len(group))
            for start in range(0, len(flat), step):
                at = flat[start : start + step, group]
                found = evaluated(walk.steps, at, "cdf").double() * weights
                each = found.reshape(len(at), self.groups, walk.shape.size).sum(-1)
                total[start : start + step] += each
        return total.clamp(max=1.0).reshape(x.shape).to(x.dtype)

    def masses(self, x: Tensor) -> Tensor:
        """Returns probabilities at points, shape (M,), for each group, shape (M, G)."""
        total = torch.zeros(len(x), self.groups, dtype=torch.float64)
        for walk, weights in zip(self.walks, self.weights, strict=True):
            at = x.unsqueeze(1).expand(-1, len(weights))
            found = evaluated(walk.steps, at, "log_prob").double().exp() * weights
            total += found.reshape(len(x), self.groups, walk.shape.size).sum(-1)
        return total

    def prob(self, x: Tensor) -> Tensor:
        """Returns probabilities or densities at points, shape (M,), of one row's particles.

        Of many particles, some are chosen by weight.
        """
        total = torch.zeros(len(x), dtype=torch.float64)
        source = torch.Generator().manual_seed(0)
        for walk, weights in zip(self.walks, self._whole(), strict=True):
            share = float(weights.sum())
            some = torch.arange(len(weights))
            if len(some) > THINNED and isinstance(walk.steps, HeadSteps):
                some = systematic(weights.log(), source, THINNED)
                weights = torch.full((THINNED,), share / THINNED, dtype=torch.float64)
            at = x.unsqueeze(1).expand(-1, len(some))
            total += (evaluated(walk.steps, at, "log_prob", some).double().exp() * weights).sum(1)
        return total

    def _whole(self) -> list[Tensor]:
        """Returns each member's weights, which sum to one over members and batches."""
        z = self.evidence.softmax(1).flatten()
        pairs = zip(self.walks, self.weights, strict=True)
        return [weights * z.repeat_interleave(walk.shape.size) for walk, weights in pairs]

    def drawn(self, count: int) -> Tensor:
        """Draws numbers of particles that are chosen by weight, about so many; of one row."""
        source = torch.Generator().manual_seed(0)
        parts = []
        for walk, weights in zip(self.walks, self._whole(), strict=True):
            size = int(np.ceil(count * float(weights.sum())))
            which = systematic(weights.log(), source, size)
            u = torch.rand(len(weights), generator=source).to(walk.u).clamp(1e-6, 1 - 1e-6)
            parts.append(walk.steps.draw(u)[which])
        return torch.cat(parts)

    def pooled(self, per_group: Tensor) -> Tensor:
        """Returns the mean over a row's batches, by their evidence, from (M, G) to (M, R)."""
        weights = self.evidence.softmax(1)
        return (per_group.double().reshape(len(per_group), *weights.shape) * weights).sum(-1)


class Pooled:
    """The law of the next column's numbers for R rows, all batches together."""

    def __init__(self, marginal: Marginal) -> None:
        self.marginal = marginal
        self._draws: list[tuple[NDArray[np.float32], NDArray[np.float64]]] | None = None

    @property
    def batch_shape(self) -> torch.Size:
        """One distribution for each row."""
        return torch.Size((self.marginal.rows,))

    def cdf(self, x: Tensor) -> Tensor:
        """Returns P(X ≤ x) for points, shape (M, R) or (R,), of the same shape."""
        flat = x if x.dim() == 2 else x.unsqueeze(0)
        found = self.marginal.cdf(flat.repeat_interleave(self.marginal.batches, 1))
        return self.marginal.pooled(found).reshape(x.shape).to(x.dtype)

    def icdf(self, u: Tensor) -> Tensor:
        """Returns the least x with P(X ≤ x) ≥ u, for u of shape (M, R).

        Of many particles, x is one of their draws: a quantile of the draws, moved by the
        difference between their distribution and the exact one.
        """
        if self.marginal.cloud.exact:
            return self._searched(u)
        x = self._of_draws(u)
        for _ in range(CORRECTIONS):
            ahead = self._share(x) - self.cdf(x).double()
            x = self._of_draws(u.double() + ahead)
        return x.to(u)

    def _searched(self, u: Tensor) -> Tensor:
        low, high = torch.full_like(u, torch.inf), torch.full_like(u, -torch.inf)
        for walk in self.marginal.walks:
            for m, level in enumerate(u):
                found = walk.steps.quantile(level[walk.row]).reshape(len(level), -1)
                low[m] = torch.minimum(low[m], found.amin(1))
                high[m] = torch.maximum(high[m], found.amax(1))
        return least(self.cdf, u, low, high)

    def draws(self) -> list[tuple[NDArray[np.float32], NDArray[np.float64]]]:
        """Returns draws of each row in order, and the sums of their weights."""
        if self._draws is None:
            rows = self.marginal.rows
            numbers, weights = [], []
            for walk, share in zip(self.marginal.walks, self.marginal._whole(), strict=True):
                u = walk.u[:, walk.rank].repeat(rows)
                numbers.append(walk.steps.draw(u).reshape(rows, -1))
                weights.append(share.reshape(rows, -1))
            x, w = torch.cat(numbers, 1).numpy(), torch.cat(weights, 1).numpy()
            order = np.argsort(x, 1)
            reach = np.take_along_axis(w, order, 1).cumsum(1)
            self._draws = list(zip(np.take_along_axis(x, order, 1), reach, strict=True))
        return self._draws

    def _of_draws(self, u: Tensor) -> Tensor:
        found = [
            x[np.searchsorted(reach, np.clip(level, 0, 1) * reach[-1]).clip(0, len(x) - 1)]
            for (x, reach), level in zip(self.draws(), u.double().numpy().T, strict=True)
        ]
        return torch.from_numpy(np.stack(found, 1))

    def _share(self, x: Tensor) -> Tensor:
        """Returns the weight of the draws up to x, shape (M, R)."""
        found = [
            np.concatenate([[0.0], reach])[np.searchsorted(own, at, side="right")] / reach[-1]
            for (own, reach), at in zip(self.draws(), x.numpy().T, strict=True)
        ]
        return torch.from_numpy(np.stack(found, 1))


def evaluated(steps: Steps, x: Tensor, name: str, some: Tensor | None = None) -> Tensor:
    """Returns "cdf" or "log_prob" at points, shape (M, N), of N particles, or of some of them."""
    if not isinstance(steps, HeadSteps):
        one: Callable[[Tensor], Tensor] = getattr(steps, name)
        return torch.stack([one(each) for each in x])
    given = steps.given
    theta = given.theta if some is None or given.theta.shape[1] == 1 else given.theta[:, some]
    theta = theta.expand(-1, x.shape[1]).expand(len(x), -1, -1)
    many: Callable[[Given, Tensor], Tensor] = getattr(steps.head, name)
    return many(Given(theta, given.low.expand(x.shape), given.high.expand(x.shape)), x)


def weighted(cloud: Cloud) -> NDArray[np.float64]:
    """Returns the weights of all particles, which sum to one in each row, shape (R, P)."""
    flat = cloud.log_weights().flatten(1)
    found: NDArray[np.float64] = flat.softmax(1).numpy()
    return found
