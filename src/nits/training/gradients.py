"""The gradient of a step: of a batch at once, or of parts that are added up.

Parts are what ranks have of a batch, or what one process takes of it in turn. It is the same sum
either way, in the same order, so one process with `Recipe(parts=2)` and two ranks have the same
bits. Float sums depend on their order, and AdamW makes much of the last digits of small gradients:
after some hundred steps, weights that were added up otherwise are no longer alike.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nits.pnn.random import another
from nits.training.likelihood import weighted_mean, withheld_entries
from nits.training.rows import Batch

if TYPE_CHECKING:
    from nits.training.loop import Loop

HIDING = -1 % 2**32
"""The part of a step's randomness that is not the model's: which entries are hidden."""


def taken(loop: Loop) -> float:
    """Sets the gradient of the next batch's mean log-likelihood, and returns that."""
    batch = loop.feed.batch(loop.step, loop.model.like)
    loop.optimizer.zero_grad(set_to_none=True)
    withheld = _withheld(loop, batch)
    if not loop.ranks.alone or loop.recipe.parts > 1:
        return _of_parts(loop, batch, withheld)
    with _precision(loop):
        log_prob = loop.model(batch.x, batch.context, withheld)
    value = log_prob.mean() if batch.weight is None else weighted_mean(log_prob, batch.weight)
    (-value).backward()
    return float(value.detach())


def _of_parts(loop: Loop, batch: Batch, withheld: Tensor | None) -> float:
    """Sets the gradient of all parts of all ranks, and returns the mean of their rows."""
    value = total = 0.0
    first = loop.part.start
    for some in own_parts(loop):
        loop.model.take_part(some.start, loop.batch)
        loop.model.reseed(loop.step_seed())  # each part takes its own of what all rows draw
        here = slice(some.start - first, some.stop - first)
        x, context, weight, hidden = (
            None if t is None else t[here] for t in (batch.x, batch.context, batch.weight, withheld)
        )
        with _precision(loop):
            log_prob = loop.model(x, context, hidden)
        sum_ = (log_prob if weight is None else weight * log_prob).sum()
        (-sum_ / (loop.batch if weight is None else 1)).backward()
        value += float(sum_.detach())
        total += len(log_prob) if weight is None else float(weight.sum())
    told = value, total, time.monotonic() - loop.begun
    divided = batch.weight is None
    step = loop.ranks.exchange(loop.exchanged, told, loop.wish, divided=divided)
    loop.clock, loop.stop = step.seconds, step.stop
    return step.value


def _precision(loop: Loop) -> AbstractContextManager[object]:
    """Returns a block of code in which inner layers have the precision of the recipe."""
    wanted = loop.recipe.precision
    return torch.autocast(loop.model.like.device.type, wanted) if wanted else nullcontext()


def own_parts(loop: Loop) -> list[slice]:
    """Returns the parts of a batch that this process takes in turn, as positions in the batch."""
    count = max(1, min(loop.recipe.parts, loop.batch) // loop.ranks.size)
    first, rows = loop.part.start, loop.part.stop - loop.part.start
    cuts = [first + k * rows // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(cuts)]


def _withheld(loop: Loop, batch: Batch) -> Tensor | None:
    """Draws the entries to hide, if any, from a generator of the step's own."""
    share = loop.recipe.hide
    if not share:
        return None
    generator = torch.Generator().manual_seed(another(loop.step_seed(), HIDING))
    if loop.ranks.alone:
        return withheld_entries(loop.model, batch.x, share, generator)
    whole = batch.x.new_empty(loop.batch, batch.x.shape[1])
    return withheld_entries(loop.model, whole, share, generator)[loop.part]
