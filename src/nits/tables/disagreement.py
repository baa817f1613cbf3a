"""How much more networks of different folds disagree than those of one fold.

Networks of one fold differ by their seeds and styles, those of different folds by their rows, too.
Rows that they have learned from hide this, and no row is held out by two folds. So they are asked
between rows: at means of pairs of held-out rows, which no network has seen. With z_kj the normal
score of such a point under network j of fold k, and means over networks and folds,

    b² = mean_k var_j z_kj,    f² + b²/m = var_k mean_j z_kj,    φ = f² / b²                  (49)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from nits.model.density import Density
from nits.training.rows import Rows

POINTS = 1000
"""Points at which networks are asked."""

RAREST = 1e-3
"""Probabilities beyond which a normal score counts no more."""

MOST = 10.0
"""The greatest φ."""


class Fold(NamedTuple):
    """The networks that held out the same rows.

    members, shares: They, and their weights in the fold's mixture.
    held_out: Positions of the rows.
    """

    members: Sequence[Density]
    shares: Sequence[float]
    held_out: torch.Tensor


Between = tuple[torch.Tensor, torch.Tensor]
"""Which columns are between two rows, and which of them have whole numbers only, shape (D,)."""


def ratio(rows: Rows, folds: Sequence[Fold], moved: torch.Tensor, whole: torch.Tensor) -> float:
    """Returns φ of equation (49), over all columns; 0 if fewer than two folds have several.

    moved, whole: See `Between`.
    """
    folds = [fold for fold in folds if len(fold.members) > 1]
    if len(folds) < 2:
        return 0.0
    x, context = _between(rows, folds, moved, whole)
    with torch.no_grad():
        own, means, few = [], [], []
        for fold in folds:
            z = torch.stack([_scores(member, x, context) for member in fold.members])
            w = torch.tensor(fold.shares, dtype=torch.float64)
            w = (w / w.sum()).view(-1, 1, 1)
            means.append((w * z).sum(0))
            few.append(float(w.square().sum()))
            own.append((w * (z - means[-1]).square()).sum(0) / (1 - few[-1]))
    curved = moved & torch.stack([torch.isfinite(mean).all(0) for mean in means]).all(0)
    if not bool(curved.any()):
        return 0.0
    b = float(torch.stack(own)[..., curved].mean())
    between = float(torch.stack(means)[..., curved].var(0).mean())
    f = between - b * sum(few) / len(few)
    return min(max(f / b, 0.0), MOST) if b > 0 else 0.0


def _between(
    rows: Rows, folds: Sequence[Fold], moved: torch.Tensor, whole: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns points between two held-out rows, and their contexts."""
    source = torch.Generator().manual_seed(0)
    every = torch.cat([fold.held_out for fold in folds])
    first, second = (
        rows.take(every[torch.randint(len(every), (POINTS,), generator=source)], like)
        for like in [folds[0].members[0].like] * 2
    )
    part = torch.rand(POINTS, 1, generator=source).to(first.x)
    x = torch.where(moved, torch.lerp(first.x, second.x, part), first.x)
    x = torch.where(whole, x.round(), x)
    if first.context is None or second.context is None:
        return x, None
    return x, torch.lerp(first.context, second.context, part)


def _scores(member: Density, x: torch.Tensor, context: torch.Tensor | None) -> torch.Tensor:
    """Returns the normal scores of points under a member, shape (N, D), in float64."""
    u = member.to_uniform(x, context).double()
    found: torch.Tensor = torch.special.ndtri(u.clamp(RAREST, 1 - RAREST))
    return found
