"""Clusters of rows by expectation and maximization, as many as held-out rows prefer."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

ROWS = 8_000
"""Rows that are looked at, at most."""

HELD_OUT = 5
"""One row in so many decides how many clusters there are."""

ROUNDS, MEANS = 60, 10
"""Most rounds of expectation and maximization, and of moving the first centres."""

SETTLED = 1e-3
"""Nats per row by which a round must gain to be followed by another."""

EMPTY = -1e4
"""Logarithm of the share of a cluster that no row is in."""

LEAST = 1e-8
"""Least variance, for columns of variance one."""


class Table(NamedTuple):
    """Rows to be clustered.

    points: Real numbers, shape (d, N).
    levels: Flags of the levels of all categories, shape (L, N); some category may have none.
    categories: Where each category's levels stand.
    """

    points: Tensor
    levels: Tensor
    categories: list[slice]

    def take(self, rows: Tensor) -> Table:
        """Returns some of the rows."""
        return Table(self.points[:, rows], self.levels[:, rows], self.categories)

    @property
    def rows(self) -> int:
        """N."""
        return self.levels.shape[1]


class Found(NamedTuple):
    """The numbers of `Clusters`, by the names that they have there."""

    log_share: Tensor
    constant: Tensor
    lines: Tensor
    log_scale: Tensor
    log_level: Tensor


class Gaussians(NamedTuple):
    """Clusters of standardized rows.

    log_share: Shape (K,).
    mean, factor: Shape (K, d), and lower triangular ones (K, d, d), of the covariances.
    log_level: Shape (K, L).
    """

    log_share: Tensor
    mean: Tensor
    factor: Tensor
    log_level: Tensor

    def log_joint(self, table: Table) -> Tensor:
        """Returns the log-density of each row and cluster together, shape (K, N)."""
        away = table.points.unsqueeze(0) - self.mean.unsqueeze(2)
        errors = torch.linalg.solve_triangular(self.factor, away, upper=False)
        volume = self.factor.diagonal(dim1=1, dim2=2).log().sum(1)
        d = table.points.shape[0]
        real = -(errors.square().sum(1) + d * math.log(2 * math.pi)) / 2 - volume.unsqueeze(1)
        found: Tensor = self.log_share.unsqueeze(1) + real + self.log_level @ table.levels
        return found


def clusters(table: Table, most: int) -> Found:
    """Returns the clusters of rows, at most so many, as held-out rows prefer."""
    source = torch.Generator().manual_seed(0)
    every = torch.randperm(table.rows, generator=source).to(table.points.device)[:ROWS]
    scale = table.points.std(1, correction=0, keepdim=True).clamp_min(1e-12)
    centre = table.points.mean(1, keepdim=True)
    rows = table._replace(points=(table.points - centre) / scale).take(every)
    count = _best_count(rows, most)
    found = learned(rows, count)
    return _told(found, centre[:, 0], scale[:, 0], most)


def _best_count(rows: Table, most: int) -> int:
    """Returns the number of clusters, a power of two, before one that is no better."""
    here = torch.arange(rows.rows, device=rows.points.device) % HELD_OUT == 0
    train, rest = rows.take((~here).nonzero().flatten()), rows.take(here.nonzero().flatten())
    best, reached, count = 1, -math.inf, 1
    while count <= min(most, max(1, train.rows // 4)) and rest.rows:
        score = float(learned(train, count).log_joint(rest).logsumexp(0).mean())
        if score <= reached:
            break
        best, reached, count = count, score, 2 * count
    return best


def learned(rows: Table, count: int) -> Gaussians:
    """Returns clusters of standardized rows, after rounds that each make the rows likelier."""
    shares, reached = _started(rows, count), -math.inf
    found = _maximized(rows, shares)
    for _ in range(ROUNDS):
        joint = found.log_joint(rows)
        whole = joint.logsumexp(0)
        found = _maximized(rows, (joint - whole).exp())
        if float(whole.mean()) < reached + SETTLED:
            break
        reached = float(whole.mean())
    return found


def _maximized(rows: Table, shares: Tensor) -> Gaussians:
    """Returns the likeliest clusters, if rows belong to each by these shares, shape (K, N).

    Covariances are drawn to the pooled one as by d + 1 rows, probabilities to those of all rows as
    by one.
    """
    x, counts = rows.points, shares.sum(1)
    d, n = x.shape
    mean = shares @ x.t() / counts.clamp_min(1e-12).unsqueeze(1)
    sums = x.new_empty(len(shares), d, d)
    for k, share in enumerate(shares):
        away = (x - mean[k].unsqueeze(1)) * share.sqrt()
        sums[k] = away @ away.t()
    pooled = sums.sum(0) / n + LEAST * torch.eye(d).to(x)
    covariance = (sums + (d + 1) * pooled) / (counts + d + 1).reshape(-1, 1, 1)
    ridge = LEAST * torch.eye(d).to(x)
    factor = torch.linalg.cholesky(covariance + ridge)
    log_level = x.new_zeros(len(shares), len(rows.levels))
    for own in rows.categories:
        share = (rows.levels[own].sum(1) + 0.5) / (n + 0.5 * (own.stop - own.start))
        log_level[:, own] = ((shares @ rows.levels[own].t() + share) / (counts + 1)[:, None]).log()
    return Gaussians(((counts + 1) / (n + len(counts))).log(), mean, factor, log_level)


def _started(rows: Table, count: int) -> Tensor:
    """Returns which cluster each row is nearest to, 1 or 0, shape (K, N)."""
    source = torch.Generator().manual_seed(count)
    x = rows.points.t() if len(rows.points) else rows.levels.t()
    chosen = [int(torch.randint(len(x), (1,), generator=source))]
    far = torch.full((len(x),), torch.inf).to(x)
    while len(chosen) < count:  # the farther from all centres, the likelier the next one
        far = torch.minimum(far, (x - x[chosen[-1]]).square().sum(1))
        weight = far.cpu() if float(far.sum()) > 0 else torch.ones(len(x))
        chosen.append(int(torch.multinomial(weight.double(), 1, generator=source)))
    centres = x[chosen]
    for _ in range(MEANS):
        nearest = torch.cdist(x, centres).argmin(1)
        flags = torch.nn.functional.one_hot(nearest, count).to(x)
        total = flags.sum(0).unsqueeze(1)
        centres = torch.where(total > 0, flags.t() @ x / total.clamp_min(1.0), centres)
    return flags.t()


def _told(found: Gaussians, centre: Tensor, scale: Tensor, slots: int) -> Found:
    """Returns clusters as lines of the points before, in the units of the points.

    With L Lᵀ the covariance, z_i = mean + Σ_{j<i} B_ij (z_j − mean_j) + L_ii e, and the rows of B
    are those of 1 − diag(L) L⁻¹.
    """
    count, d = found.mean.shape
    eye = torch.eye(d).to(found.mean)
    inverse = torch.linalg.solve_triangular(found.factor, eye.expand(count, d, d), upper=False)
    diagonal = found.factor.diagonal(dim1=1, dim2=2)
    lines = (eye - diagonal.unsqueeze(2) * inverse) * scale.unsqueeze(1) / scale
    mean = centre + scale * found.mean
    parts = Found(
        found.log_share,
        mean - (lines @ mean.unsqueeze(2)).squeeze(2),
        lines.tril(-1),
        (diagonal * scale).log(),
        found.log_level,
    )
    more = slots - count  # places that no cluster takes
    spare = [part[:1].expand(more, *part.shape[1:]) for part in parts]
    empty = spare[0] + EMPTY
    return Found(*(torch.cat(pair) for pair in zip(parts, [empty, *spare[1:]], strict=True)))
