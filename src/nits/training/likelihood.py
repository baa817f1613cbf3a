"""The likelihood of rows under a model, and the weights that training starts from."""

from __future__ import annotations

import torch
from torch import Tensor

from nits.model.joint import NITS
from nits.training.rows import Batch, Rows, spread


def start_from_data(model: NITS, rows: Rows) -> None:
    """Sets the weights to where training starts: see `WeightModel.start_from`."""
    columns = model.follow(spread(rows, 200_000).to(model.low))
    with torch.no_grad():
        model.weights.start_from(model.ordered, columns, model.reading)


def log_likelihood(model: NITS, batch: Batch, hide: float = 0.0) -> Tensor:
    """Returns the mean log-likelihood of a batch, weighted if its rows are; see `Recipe.hide`."""
    entries = hidden_entries(model, batch.x, hide) if hide else None
    value = model.log_prob(batch.x, batch.context, entries)
    if batch.weight is None:
        return value.mean()
    return (batch.weight * value).sum() / batch.weight.sum()


def hidden_entries(model: NITS, x: Tensor, share: float) -> Tensor:
    """Draws the entries of optional columns to hide, shape (N, D).

    The share varies from row to row, uniformly between zero and twice the mean share.
    """
    optional = model.optional[model.order.argsort()].t()
    rate = 2 * share * torch.rand(len(x), 1)
    return (torch.rand(x.shape) < rate).to(x.device) & optional


def mean_log_likelihood(model: NITS, rows: Rows) -> float:
    """Returns the mean log-likelihood of rows, in float64."""
    total = weight = 0.0
    with torch.no_grad():
        for batch in rows.batches(8192, model.low):
            value = model.log_prob(batch.x, batch.context).double()
            w = torch.ones_like(value) if batch.weight is None else batch.weight.double()
            total += float((w * value).sum())
            weight += float(w.sum())
    return total / weight
