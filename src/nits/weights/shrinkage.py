"""The best shrunk straight lines, found from sums over rows alone.

How much a line is shrunk is decided for each target by cross-validation, among a constant, lines of
a few features chosen one by one, and ridge regressions on all. The sums of a fold's training rows
are those of the other folds, and

    Σ (y − b·x)² = Σ y² − 2 b·Σ x y + b·(Σ x xᵀ) b

is the squared error of a line on the rows held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nits.chunks import slices

PENALTIES = tuple(10 ** (power / 2) for power in (3, 2, 1, *range(0, -9, -1), -10, -12, -14, -18))
"""Of ridge regressions, times the number of rows; features have standard deviation one."""

SIZES = (8, 32)
"""Features of the longest sparse line; the second where the first seems too short."""

MARGIN = 2.5
"""Nats by which all held-out rows together must prefer a line to count it as much as a constant."""

SLACK = 1.0
"""Nats by which all held-out rows together must prefer a longer sparse line to a shorter one."""

LEAST = 0.05
"""What has a smaller share of the mean of constant, sparse line and ridge is left out of it."""

COLLINEAR = 1e-9
"""A feature with no more than this part of its variance left, given those chosen, is not chosen."""

CHUNK = 1 << 20
"""Numbers held at once in growing sparse lines."""


class Sums(NamedTuple):
    """Weighted sums over rows of products of p features x, the constant 1 and D targets y."""

    gram: Tensor  # of x xᵀ, shape (p + 1, p + 1), the constant last
    cross: Tensor  # of x yᵀ, shape (p + 1, D)
    square: Tensor  # of y², shape (D,)

    def means(self) -> tuple[Tensor, Tensor]:
        """Returns the means of x and y."""
        count = self.gram[-1, -1].clamp(min=1e-300)
        return self.gram[:-1, -1] / count, self.cross[-1] / count

    def moved(self, x: Tensor, y: Tensor, used: Tensor) -> Sums:
        """Returns the sums for x and y less given means, without constant; 0 where not used.

        In the place of these sums: they may have millions.
        """
        n, x_sum, y_sum = self.gram[-1, -1].clone(), self.gram[:-1, -1].clone(), self.cross[-1]
        rest = x_sum - n / 2 * x
        gram = self.gram[:-1, :-1].addr_(x, rest, alpha=-1).addr_(rest, x, alpha=-1)
        cross = self.cross[:-1].addr_(x, y_sum, alpha=-1).addr_(x_sum - n * x, y, alpha=-1)
        square = self.square - 2 * y * y_sum + n * y.square()
        gram.mul_(used.unsqueeze(1)).mul_(used)
        return Sums(gram, cross.mul_(used.unsqueeze(1)), square.clamp(min=0))

    def only(self, which: Tensor) -> Sums:
        """Returns the sums of some targets."""
        return Sums(self.gram, self.cross[:, which], self.square[which])

    def errors(self, lines: Tensor) -> Tensor:
        """Returns the squared errors of lines, shape (p, D), for sums about means."""
        return self.square + (self.gram @ lines).sub_(self.cross, alpha=2).mul_(lines).sum(0)


class Folds(NamedTuple):
    """The folds of some rows."""

    number: int  # K
    sums: Callable[[Sequence[int]], Sums]  # those over the rows of some folds, to be written on
    later: Tensor  # whether a target may not use a feature, shape (p, D)
    used: Tensor  # features used if a fold is held out, and, last, if none is, shape (K + 1, p)

    def best(self) -> tuple[Tensor, Tensor]:
        """Returns the lines preferred by held-out rows, shape (D, p), and constants, shape (D,)."""
        several = self.number > 1 and len(self.later) > 0
        errors = self._errors() if several else None
        total = self.sums(range(self.number))
        x, y = total.means()
        lines = torch.zeros_like(total.cross[:-1])
        if errors is not None:
            size, penalty, share = _choice(*errors, float(total.gram[-1, -1]))
            whole = total.moved(x, y, self.used[-1])
            for p in penalty[share[1] > 0].unique():
                which = ((penalty == p) & (share[1] > 0)).nonzero().flatten()
                lines[:, which] = _ridge(whole.only(which), float(p), self.later[:, which])
            lines *= share[1]
            which = share[0].nonzero().flatten()
            sparse = _sparse(whole.only(which), self.later[:, which], size[which])
            lines[:, which] += share[0, which] * sparse
        return lines.t(), y - x @ lines

    def _errors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns held-out errors of constants, shape (D,), of sparse and of ridge lines."""
        # A split is made when it is needed, and no longer held: each may have millions of numbers.
        every = range(self.number)
        constant = torch.stack([self._split(k)[1].square for k in every]).sum(0)
        ridge = torch.stack([_ridge_errors(*self._split(k), self.later) for k in every]).sum(0)
        sparse = constant.new_full((SIZES[-1], len(constant)), torch.inf)
        which = torch.arange(len(constant), device=constant.device)
        for size in SIZES:
            found = [_sparse_errors(*self._split(k), self.later, which, size) for k in every]
            sparse[:size, which] = torch.stack(found).sum(0)
            which = which[sparse[:size, which].argmin(0) >= size // 2]
        return constant, sparse, ridge

    def _split(self, k: int) -> tuple[Sums, Sums]:
        """Returns the sums of training and of held-out rows if fold k is held out."""
        train = self.sums([other for other in range(self.number) if other != k])
        means = train.means()
        return train.moved(*means, self.used[k]), self.sums([k]).moved(*means, self.used[k])


def added(folds: Sequence[Sums]) -> Sums:
    """Returns the sums over the rows of several folds, which no fold shares."""
    total = Sums(*(sums.clone() for sums in folds[0]))
    for fold in folds[1:]:
        for own, more in zip(total, fold, strict=True):
            own.add_(more)
    return total


def _choice(
    constant: Tensor, sparse: Tensor, ridge: Tensor, count: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns sizes of sparse lines, penalties of ridge regressions and their shares, (2, D).

    A target's line is the mean of a constant, the sparse line and the ridge regression, weighted by
    their held-out likelihoods.
    """
    # A perfect line is limited, so that rounding does not choose among several.
    parts = [(e / constant).nan_to_num(1.0).clamp(min=1e-15) for e in (sparse, ridge)]
    short, full = (0.5 * count * part.log() for part in parts)
    size = (short <= short.amin(0) + SLACK).int().argmax(0) + 1
    losses = torch.stack([short.gather(0, size.unsqueeze(0) - 1)[0], full.amin(0)]) + MARGIN
    share = torch.softmax(-torch.cat([losses, torch.zeros_like(losses[:1])]), 0)[:2]
    share = torch.where(share < LEAST, 0.0, torch.where(share > 1 - LEAST, 1.0, share))
    return size, constant.new_tensor(PENALTIES)[full.argmin(0)], share


def _ridge(sums: Sums, penalty: float, later: Tensor) -> Tensor:
    """Returns ridge regressions, shape (p, D).

    The factor of the features before a target is the leading block of the factor of them all.
    """
    # A train set's sums have no row count; the largest diagonal is that of a feature in use.
    ridge = penalty * sums.gram.diagonal().amax().clamp(min=1e-300)
    gram = sums.gram.clone()
    gram.diagonal().add_(ridge)
    factor, _ = torch.linalg.cholesky_ex(gram, out=(gram, gram.new_empty(0, dtype=torch.int32)))
    half: Tensor = torch.linalg.solve_triangular(factor, sums.cross, upper=False)
    half.masked_fill_(later, 0.0)
    torch.linalg.solve_triangular(factor.t(), half, upper=True, out=half)
    return half


def _ridge_errors(train: Sums, held: Sums, later: Tensor) -> Tensor:
    """Returns the held-out errors of ridge regressions, shape (penalties, D)."""
    errors = torch.stack([held.errors(_ridge(train, p, later)) for p in PENALTIES])
    return errors.nan_to_num(torch.inf)


def _sparse_errors(train: Sums, held: Sums, later: Tensor, some: Tensor, size: int) -> Tensor:
    """Returns the held-out errors of lines of 1 … size features, shape (size, some targets)."""
    train, held = train.only(some), held.only(some)
    errors = torch.full_like(train.square.expand(size, -1), torch.inf)
    for which, chosen, lines in _grown(train, later[:, some], size):
        gram = held.gram[chosen.unsqueeze(2), chosen.unsqueeze(1)]  # (targets, size, size)
        cross = held.cross[:, which].t().gather(1, chosen).unsqueeze(2)
        found = held.square[which].unsqueeze(1) + (lines * (gram @ lines - 2 * cross)).sum(1)
        errors[:, which] = found.t()
    return errors


def _sparse(sums: Sums, later: Tensor, size: Tensor) -> Tensor:
    """Returns sparse lines of size[i] features, shape (p, D)."""
    found = torch.zeros_like(sums.cross)
    for which, chosen, lines in _grown(sums, later, int(size.max()) if len(size) else 0):
        at = (size[which] - 1).reshape(-1, 1, 1).expand(-1, lines.shape[1], 1)
        found[:, which] = torch.zeros_like(found[:, which]).scatter_add(
            0, chosen.t(), lines.gather(2, at).squeeze(2).t()
        )
    return found


def _grown(sums: Sums, later: Tensor, size: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yields targets, the features chosen one by one, and the lines of the first 1 … size of them.

    The feature is chosen that leaves the least error. With V the pivoted Cholesky factor of the
    features chosen, V b = g gives the line of all, and of the first few with the rest of g zero.
    """
    for which in slices(len(sums.square), max(1, CHUNK // max(1, size * len(later)))):
        p = int((~later[:, which]).any(1).sum())  # features later for all of them are cut off
        if p == 0 or size == 0:
            continue
        gram, left = sums.gram[:p, :p], sums.cross[:p, which].t().clone()
        variance = gram.diagonal().masked_fill(later[:p, which].t(), 0.0)
        least = COLLINEAR * variance
        factor, gains, picks = gram.new_zeros(size, *left.shape), [], []
        for step in range(size):
            gain = torch.where(variance > least, left.square() / variance, 0.0)
            top, pick = gain.max(1, keepdim=True)
            pivot = torch.where(top > 0, variance.gather(1, pick), torch.inf).sqrt()
            index = pick.expand(step, -1, -1) if step else pick.new_zeros(0, len(left), 1)
            known = factor[:step]
            row = gram[pick.squeeze(1)] - (known * known.gather(2, index)).sum(0)
            factor[step] = row / pivot
            gains.append(left.gather(1, pick) / pivot)
            picks.append(pick)
            left -= gains[-1] * factor[step]
            variance = variance - factor[step].square()
            variance.scatter_(1, pick, 0.0)
        chosen = torch.cat(picks, 1)
        upper = factor.gather(2, chosen.expand(size, -1, -1)).permute(1, 0, 2).triu()
        idle = upper.diagonal(dim1=1, dim2=2) == 0
        upper = upper + torch.diag_embed(idle.to(upper))
        ladder = torch.cat(gains, 1).unsqueeze(2) * torch.ones_like(upper).triu()
        yield which, chosen, torch.linalg.solve_triangular(upper, ladder, upper=True)
