"""Quantiles of integers with atoms: first between which atoms, then which integer, by the cdf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nits.heads.head import Given
    from nits.heads.inflated import Inflated

STEPS = 200
"""More steps than any search takes: each doubles a stride or halves an interval."""


def least(head: Inflated, given: Given, u: Tensor) -> Tensor:
    """Returns the least k with P(X ≤ k) ≥ u, decided by the head's own cdf; shapes (*, N).

    Atoms cut the integers into stretches. On the one that u falls into, the cdf is that of the
    rest, scaled and shifted, whose quantile is a first guess.
    """
    below, above = _stretch(head, given, u)
    first = torch.clamp(below + 1, min=head.rest.least)
    last = torch.clamp(above, max=head.rest.greatest)
    guess = _guess(head, given, u, below)
    # At u = 0 all integers that go on for ever are passed by.
    end = torch.where(guess == -torch.inf, guess, last)
    guess = torch.minimum(torch.maximum(guess, first), end - 1)
    found = _settled(head, given, u, (first - 1, end), guess)
    none = torch.where(torch.isinf(above), below, above)
    found = torch.where(first > last, none, found)
    return found.masked_fill(torch.isnan(u), torch.nan)


def _stretch(head: Inflated, given: Given, u: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the last atom at which the cdf is below u, or −inf, and the next, or inf."""
    ends = [*head.values]
    if ends[-1] > head.rest.greatest:  # then the rest ends before the last atoms
        ends = sorted({*ends, float(head.rest.greatest)})
    atoms = torch.tensor([-torch.inf, *ends, torch.inf], dtype=u.dtype, device=u.device)
    left = torch.zeros_like(u, dtype=torch.long)
    right = torch.full_like(left, len(ends) + 1)
    for _ in range(len(ends).bit_length()):
        middle = (left + right) // 2
        inside = middle > left
        reached = head.cdf(given, atoms[middle]) >= u
        right = torch.where(reached & inside, middle, right)
        left = torch.where(~reached & inside, middle, left)
    return atoms[left], atoms[right]


def _guess(head: Inflated, given: Given, u: Tensor, below: Tensor) -> Tensor:
    """Returns the quantile of the rest where the atoms up to `below` come before it."""
    log_share, rest = head.parts(given)
    share = log_share.exp()
    passed = (share[..., :-1, :] * (head.table(u) <= below.unsqueeze(-2))).sum(-2)
    return head.rest.from_uniform(rest, ((u - passed) / share[..., -1, :]).clamp(0, 1))


def _settled(
    head: Inflated, given: Given, u: Tensor, ends: tuple[Tensor, Tensor], k: Tensor
) -> Tensor:
    """Returns the least integer of (left, right] with cdf ≥ u, or right if there is none.

    From a guess k it goes in strides of 1, 2, 4, … until it has passed by, and then by halves.
    """
    left, right = ends
    stride = 1.0
    for _ in range(STEPS):
        inside = (k > left) & (k < right)
        if not bool(inside.any()):
            break
        reached = head.cdf(given, k) >= u
        right = torch.where(reached & inside, k, right)
        left = torch.where(~reached & inside, k, left)
        ahead = torch.where(reached, right - stride, left + stride)
        half = torch.floor((left + right) / 2)
        k = torch.where((ahead > left) & (ahead < right), ahead, half)
        stride *= 2
    return right
