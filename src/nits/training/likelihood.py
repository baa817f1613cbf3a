"""The likelihood of rows under a density, and the weights that training starts from."""

from __future__ import annotations

import torch
from torch import Tensor

from nits.model.density import Density
from nits.model.random_roles import RandomRoles
from nits.training.ranks import Ranks
from nits.training.rows import Rows, thinned

STARTED_FROM = 200_000
"""Rows that the weights at the start are fitted to."""

SCORED_AT_ONCE = 8192


def start_from_data(model: Density, rows: Rows) -> None:
    """Sets the weights to where training starts: see `Density.start_from`."""
    some = thinned(rows, STARTED_FROM, model.like)
    model.start_from(some.x, some.context)


def weighted_mean(value: Tensor, weight: Tensor) -> Tensor:
    """Returns the mean of values, shape (N,), with weights that need not sum to one."""
    return (weight * value).sum() / weight.sum()


def withheld_entries(model: Density, x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Draws the entries of optional columns to withhold, shape (N, D).

    The share varies from row to row, uniformly between zero and twice the mean share.
    """
    rate = 2 * share * torch.rand(len(x), 1, generator=generator)
    hidden = torch.rand(x.shape, generator=generator) < rate
    return hidden.to(x.device) & model.optional


def mean_log_likelihood(model: Density, rows: Rows, ranks: Ranks | None = None) -> float:
    """Returns the mean log-likelihood of rows, in float64.

    ranks: Those that score a part each, unless what the model draws at random is for all rows.
    """
    total = weight = 0.0
    shared = ranks is not None and not ranks.alone and not isinstance(model, RandomRoles)
    if ranks is not None and shared:
        part = ranks.part(len(rows))
        rows = rows.view(torch.arange(part.start, part.stop))
    with torch.no_grad():
        for batch in rows.batches(SCORED_AT_ONCE, model.like):
            value = model.log_prob(batch.x, batch.context).double()
            w = torch.ones_like(value) if batch.weight is None else batch.weight.double()
            total += float((w * value).sum())
            weight += float(w.sum())
    if ranks is not None and shared:
        total, weight = ranks.summed(total, weight)
    return total / weight
