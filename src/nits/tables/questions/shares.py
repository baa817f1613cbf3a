"""Probabilities of events: by their masses along the walk, or by the share of draws inside them.

A walk under an event multiplies its masses, so the probability of a rare event has few errors. But
where a column of the event comes before a given value, the densities of that value, with the event
and without it, are two estimates whose errors do not cancel. The draws of one walk, weighted by
what is given, lie inside the event or do not: their share has the error of a share, however
uncertain the density is. Of both estimates, each row has the one with the smaller standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nits.tables.questions.cloud import Cloud, mean_ratio, ratio, walked
from nits.tables.questions.events import Event
from nits.tables.questions.likelihood import PARTICLES, at_once
from nits.tables.questions.query import Query
from nits.tables.questions.results import Estimate


def probability(whole: Cloud, part: Cloud, narrow: Query) -> Estimate:
    """Returns the probability of an event for each row, of shape (R,).

    whole: Particles of what is given.
    part: Particles of a question that has the event besides.
    narrow: That question.
    """
    base = whole.walks[0].query
    evidence = whole.log_evidence()
    found, error = ratio(part.log_evidence(), evidence)
    exact = whole.exact and part.exact
    ess = torch.full_like(found, torch.inf) if exact else part.ess()
    events = {i: e for i, e in narrow.events.items() if e != base.events.get(i)}
    by_masses = Estimate(found.clamp(max=1.0).numpy(), error.numpy(), ess.numpy())
    if whole.exact or not _before_conditions(whole, events):
        return by_masses
    by_draws = share(whole, events)
    better = by_draws.error < by_masses.error
    pairs = zip(by_draws, by_masses, strict=True)
    return Estimate(*(np.where(better, one, other) for one, other in pairs))


def of_rows(density: Any, query: Query, narrow: Query, seed: int) -> Estimate:
    """Returns the probability of an event given each row of a table.

    query: What is given.
    narrow: That with the event besides.
    """
    size, parts = min(at_once(density, one) for one in (query, narrow)), []
    with torch.no_grad():
        for start in range(0, query.rows, size):
            both = [one.take(slice(start, start + size)) for one in (query, narrow)]
            whole, part = (walked(density, one, seed, total=PARTICLES) for one in both)
            parts.append(probability(whole, part, narrow))
    return Estimate(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _before_conditions(cloud: Cloud, events: Mapping[int, Event]) -> bool:
    """Returns whether a column of the events comes before the last condition."""
    return any(
        walk.order.index(i) < walk.query.last(walk.order) for walk in cloud.walks for i in events
    )


def share(cloud: Cloud, events: Mapping[int, Event]) -> Estimate:
    """Returns the weight of the draws inside all events, for each row.

    The error is that of the batches, and at least that of a share p of n independent draws,
    √(p (1 − p) / n), with half a draw on either side: were all draws inside, the batches would not
    differ. Draws that go back to one particle count as one.
    """
    for walk in cloud.walks:
        walk.to(max(walk.rank, *(walk.order.index(i) + 1 for i in events)))
    log_weights = cloud.log_weights()
    weights = (log_weights - log_weights.amax((1, 2), keepdim=True)).exp()
    within = torch.ones(weights.shape, dtype=torch.bool)
    for i, event in events.items():
        within &= inside(event, *cloud.column(i))
    found, spread = mean_ratio((weights * within).sum(-1), weights.sum(-1))
    ess = torch.minimum(cloud.ess(), cloud.lineages())
    p = (found * ess + 0.5) / (ess + 1)
    error = torch.maximum(spread, (p * (1 - p) / ess).sqrt())
    return Estimate(found.numpy(), error.numpy(), ess.numpy())


def inside(event: Event, numbers: Tensor, tails: Tensor) -> Tensor:
    """Returns which draws lie in an event, of their shape."""
    body = torch.isnan(tails)
    found = torch.zeros_like(body)
    for low, high in event.numbers:
        found |= body & (numbers > low) & (numbers <= high)
    for side, part in ((-1, event.lower), (1, event.upper)):
        for low, high in part:
            beyond = side * tails
            found |= ~body & (beyond > low) & (beyond <= high)
    return found
