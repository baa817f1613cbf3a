"""When training looks at validation rows, and when they say that it is over.

The budget only limits: training ends when validation has stopped to improve. No evaluation counts
for that before the rate has warmed up and the average of the weights has left the warm-up behind;
whatever the weights do until then, such as fall behind the start, says nothing about the end.
"""

from __future__ import annotations

import math

from nits.training.history import History
from nits.training.recipe import Budget, Recipe

EVALUATIONS = 25
"""Evaluations during a budget in steps or minutes, if an epoch is not over sooner."""

VALIDATION_ROWS = 16384
"""Validation rows that are scored at an evaluation; at the end of training all of them are."""

COST = 1 / 3
"""Of a row that is scored, in rows that are trained on: there is no backward pass."""

LARGEST_SHARE = 0.05
"""Of the time of training that evaluations may take, by the rows of both."""

SECONDS = 2.0
"""Between evaluations by the clock, at least."""

STALL = 0.25
"""Share of the steps so far that a stall must have lasted: the average of the weights is over the
last tenth of the steps or more, and shows no sooner what the weights have found."""


def steps_between(budget: Budget, *, batch: int, per_epoch: int, held_out: int) -> int:
    """Returns the steps from one evaluation to the next: an epoch, or fewer if the budget is short.

    They are more if evaluations would take too much time, and whole epochs if the budget is.

    batch: Rows per step. held_out: Validation rows, 0 if there are none.
    """
    scored = COST * min(held_out, VALIDATION_ROWS)
    least = math.ceil(scored / (LARGEST_SHARE * batch))
    if budget.max_steps is None:
        return per_epoch * max(1, math.ceil(least / per_epoch))
    steps = budget.steps(per_epoch) or budget.max_steps
    return max(1, least, min(per_epoch, steps // EVALUATIONS))


def seconds_between(budget: Budget) -> float:
    """Returns the seconds from one evaluation to the next, if the budget has minutes only."""
    return max(SECONDS, 60 * float(budget.max_minutes or 0) / EVALUATIONS)


def settled(recipe: Recipe) -> int:
    """Returns the step after which evaluations count: when the warm-up is over twice.

    By then more than half of the average of the weights is of steps at the full rate, with either
    optimizer: three quarters if all steps count by the square of their rates.
    """
    return 2 * recipe.warmup


def counted(history: History, after: int) -> list[float]:
    """Returns the validation log-likelihoods of the evaluations after a step."""
    return [v for s, v in zip(history.step, history.validation, strict=False) if s > after]


def stalled(history: History, recipe: Recipe) -> bool:
    """Returns whether validation has not improved for long enough to stop.

    Evaluations compete with those that count, not with the start: a run that has fallen behind the
    start goes on as long as it gains.
    """
    values = counted(history, settled(recipe))
    if not values:
        return False
    best = max(range(len(values)), key=lambda k: -math.inf if math.isnan(values[k]) else values[k])
    waited = len(values) - 1 - best
    last, found = history.step[-1], history.step[-1 - waited]
    return waited >= recipe.patience and last - found >= STALL * last
