"""Integers with atoms: their distribution function, and its inverse by search.

The inverse is decided by the distribution function itself, to the last digit: first between which
atoms, then which integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nits.heads.head import Given

if TYPE_CHECKING:
    from nits.heads.cells import Cells
    from nits.heads.integer import Integer

STEPS = 200
"""More steps than any search takes: each doubles a stride or halves an interval."""


class Jumps(NamedTuple):
    """Atoms a_1 < … < a_K with probabilities p_a, and the distribution of the rest."""

    atoms: Tensor  # shape (K,)
    passed: Tensor  # the sums of the first 0 … K of the p_a, shape (*, K + 1, N)
    share: Tensor  # the probability of the rest, shape (*, N)
    rest: Given


def cdf(head: Cells | Integer, jumps: Jumps, x: Tensor) -> Tensor:
    """Returns P(X ≤ x), shape (*, N): that of the atoms up to x, plus that of the rest."""
    below = jumps.share * head.cdf(jumps.rest, x) + _passed(jumps, x)
    return below.clamp(max=1)  # the shares sum to one to rounding only


def _passed(jumps: Jumps, x: Tensor) -> Tensor:
    """Returns the probability of the atoms up to x."""
    count = torch.searchsorted(jumps.atoms, x.detach().contiguous(), right=True)
    passed = jumps.passed.expand(*jumps.passed.shape[:-1], x.shape[-1])
    return passed.gather(-2, count.unsqueeze(-2)).squeeze(-2)


def least(head: Cells | Integer, jumps: Jumps, u: Tensor) -> Tensor:
    """Returns the least k with P(X ≤ k) ≥ u; shapes (*, N).

    Atoms cut the integers into stretches. On the one that u falls into, the cdf is that of the
    rest, scaled and shifted, whose quantile is a first guess.
    """
    below, above = _stretch(head, jumps, u)
    first = torch.clamp(below + 1, min=head.least)
    last = torch.clamp(above, max=head.greatest)
    guess = _guess(head, jumps, (u - _passed(jumps, below)) / jumps.share, (first, last))
    end = torch.where(guess == -torch.inf, guess, last)  # of integers that go on for ever, at u = 0
    found = _settled(head, jumps, u, (first - 1, end), torch.minimum(guess, end - 1))
    # Rounding may keep the cdf below u for ever.
    found = torch.where((found == torch.inf) & (u < 1), guess, found)
    found = torch.where(first > last, torch.where(torch.isinf(above), below, above), found)
    return found.masked_fill(torch.isnan(u), torch.nan)


def _guess(
    head: Cells | Integer, jumps: Jumps, level: Tensor, ends: tuple[Tensor, Tensor]
) -> Tensor:
    """Returns the quantiles of the rest at a level, or the end of the stretch that it is beyond."""
    first, last = ends
    most = 1 - torch.finfo(level.dtype).eps
    start, stop = level <= 0, (level >= most) & torch.isfinite(last)
    inner = torch.where(start | stop, 0.5, level.clamp(max=most))
    guess = torch.maximum(head.from_uniform(jumps.rest, inner), first)
    return torch.where(start, first, torch.where(stop, last, guess))


def _stretch(head: Cells | Integer, jumps: Jumps, u: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the last atom at which the cdf is below u, or −inf, and the next, or inf."""
    ends = jumps.atoms
    if bool(ends[-1] > head.greatest):  # the rest ends before the last atoms: a stretch of its own
        ends = torch.cat([ends, ends.new_tensor([head.greatest])]).unique()
    ends = torch.cat([ends.new_tensor([-torch.inf]), ends, ends.new_tensor([torch.inf])])
    left = torch.zeros_like(u, dtype=torch.long)
    right = torch.full_like(left, len(ends) - 1)
    for _ in range((len(ends) - 2).bit_length()):
        middle = (left + right) // 2
        inside = middle > left
        reached = cdf(head, jumps, ends[middle]) >= u
        right = torch.where(reached & inside, middle, right)
        left = torch.where(~reached & inside, middle, left)
    return ends[left], ends[right]


def _settled(
    head: Cells | Integer, jumps: Jumps, u: Tensor, ends: tuple[Tensor, Tensor], k: Tensor
) -> Tensor:
    """Returns the least integer of (left, right] with cdf ≥ u, or right if there is none.

    From a guess k it goes in strides of 1, 2, 4, … until it has passed by, and then by halves. Few
    guesses are far off: rows that are settled go out.
    """
    left, right = ends
    stride = 1.0
    for _ in range(STEPS):
        inside = (k > left) & (k < right)
        count = int(inside.sum())
        if not count:
            break
        if u.dim() == 1 and 2 * max(count, 2) < len(u):
            some = inside.nonzero().flatten().expand(max(count, 2))  # kernels need two rows
            rest = (left[some], right[some])
            found = _settled(head, _of(jumps, some), u[some], rest, k[some])
            return right.index_put((some,), found)
        reached = cdf(head, jumps, k) >= u
        right = torch.where(reached & inside, k, right)
        left = torch.where(~reached & inside, k, left)
        step = stride * (k.abs() * torch.finfo(k.dtype).eps).clamp(min=1)  # to another float
        ahead = torch.where(reached, right - step, left + step)
        half = torch.floor((left + right) / 2)
        k = torch.where((ahead > left) & (ahead < right), ahead, half)
        stride *= 2
    return right


def _of(jumps: Jumps, some: Tensor) -> Jumps:
    """Returns the jumps of some of N rows."""
    passed, share, *rest = (
        t if t.shape[-1] == 1 else t[..., some] for t in (jumps.passed, jumps.share, *jumps.rest)
    )
    return Jumps(jumps.atoms, passed, share, Given(*rest))
