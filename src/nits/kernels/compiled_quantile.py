"""Quantiles of many PNNs through one compiled kernel, for sampling at about the cost of scoring.

The kernel takes a few Newton steps in the coordinate of (12), then one in x, for a block of PNNs
at once, and can continue a search. The few roots not found by the first call are gathered into
blocks of their own for the next; those that the last call does not find are left to
`nits.pnn.roots`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from nits.pnn import network, roots

BLOCK, SMALL = 512, 64
"""PNNs per call: many to be fast, few for the remaining roots. Each size is compiled once."""

STEPS = 5
"""Newton steps per call: enough for 98 roots of 100."""

CALLS = 4
"""Most calls for one root."""

FURTHEST = 200.0
"""The ends of a finite support lie at y = ±∞; at this |y| a point equals the end to rounding."""

Kernel = Callable[..., tuple[Tensor, Tensor, Tensor]]


def quantile(
    theta: Tensor, u: Tensor, low: Tensor, high: Tensor, hidden: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Returns x with N(x) = u, and which were not found, for u between 0 and 1, shape (N,).

    theta: Weights, shape (P, N). Nothing is recorded for gradients.
    """
    y = torch.log(u) - torch.log1p(-u)
    end = torch.full_like(u, FURTHEST)
    x = torch.empty_like(u)
    state = torch.stack([y, -end, end, 2 * end])
    todo = torch.arange(len(u), device=u.device)
    for call in range(CALLS):
        some = (theta, u, state) if call == 0 else (theta[:, todo], u[todo], state[:, todo])
        x[todo], state[:, todo], open_ = _seek(*some, (low, high), hidden)
        todo = todo[open_]
        if not len(todo):
            break
    return x, torch.zeros_like(u, dtype=torch.bool).index_fill(0, todo, True)


def _seek(
    theta: Tensor, u: Tensor, state: Tensor, ends: tuple[Tensor, Tensor], hidden: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs the kernel block by block; returns x, the state, and which roots are still open."""
    run = _kernel(hidden)
    size = BLOCK if len(u) > BLOCK // 2 else SMALL
    starts = range(0, len(u), size)
    found = [
        run(*(_block(t[..., i : i + size], size) for t in (theta, u, state)), *ends) for i in starts
    ]
    x, state, open_ = (
        torch.cat([_joined(t) for t in parts], -1) for parts in zip(*found, strict=True)
    )
    return x[: len(u)], state[:, : len(u)], open_[: len(u)]


def _block(x: Tensor, size: int) -> Tensor:
    """Returns x, shape (*, N), padded with its last entry, as two halves, one for each core."""
    short = size - x.shape[-1]
    if short:
        x = torch.cat([x, x[..., -1:].expand(*x.shape[:-1], short)], -1)
    halves: Tensor = x.unflatten(-1, (2, -1))
    return halves.movedim(-2, 0).contiguous()


def _joined(x: Tensor) -> Tensor:
    return x.movedim(0, -2).flatten(-2)


@cache
def _kernel(hidden: Sequence[int]) -> Kernel:
    def seek(
        theta: Tensor, u: Tensor, state: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        at = roots.expanded(network.normalized(theta, low, high, hidden), u)
        target = torch.log(u) - torch.log1p(-u)
        y, left, right, width = state
        none = torch.full_like(u, torch.nan)
        search = roots.Search(y, left, right, width, none, roots.Found(y, y, y, y))
        search = roots.advance(at, roots.reference(at), search, target, (STEPS, STEPS))
        open_ = ~(search.residual.abs() < roots.CLOSE[u.dtype])
        x = roots.polish(at, search.best, u, 1 - u)
        return x, torch.stack([search.y, search.left, search.right, search.width]), open_

    return torch.compile(torch.func.vmap(seek, in_dims=(0, 0, 0, None, None)), dynamic=False)
