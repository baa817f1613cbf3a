"""Weights of members by the likelihood of rows that they have not learned from: stacking.

With ℓ_s(x) the log-density of a held-out row under the sort s of members that did not see it,

    w = argmax Σ_x log Σ_s w_s exp ℓ_s(x),    w_s ≥ 0,    Σ_s w_s = 1                        (30)

The sum is concave, and EM climbs it. A sort is left out if the others do almost as well: networks
sooner than simple densities, which cost no training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

UPDATES = 500

SETTLED = 1e-9
"""A change of all weights below which more updates are of no use."""

WORTH, SIMPLE_WORTH = 2.0, 0.5
"""Nats of all held-out rows together that a sort must add to stay, and a simple one."""

NOTHING = 1e-3
"""Nats that are none: a sort that adds no more goes out whatever others that went had added."""


def weights(
    scores: Numbers,
    weight: Numbers | None = None,
    worth_per_row: float = 0.0,
    simple: Sequence[bool] | None = None,
) -> Numbers:
    """Returns the weights w, shape (S,), many of them zero.

    scores: ℓ, shape (N, S), of N held-out rows under S sorts of members.
    weight: Of the rows, shape (N,).
    worth_per_row: Nats of each row that a sort must add to stay beside others that are not simple.
    simple: Which sorts are; none by default.
    """
    count = scores.shape[1]
    dear = [True] * count if simple is None else [not flag for flag in simple]
    weight = np.ones(len(scores)) if weight is None else weight
    told = (scores > -np.inf).any(1)  # a row that all find impossible tells nothing
    scores, weight = scores[told], weight[told]
    if not len(scores):
        return np.full(count, 1 / count)
    rows = weight * (len(weight) / weight.sum())
    kept = list(range(count))
    found, reached = _climbed(scores[:, kept], rows)
    now = reached
    while len(kept) > 1:
        alone = sum(dear[k] for k in kept) == 1
        worth = WORTH if alone else max(WORTH, worth_per_row * len(rows))
        fewer = [[k for k in kept if k != left] for left in kept]
        tried = [_climbed(scores[:, some], rows) for some in fewer]
        slack = [
            max(score - reached + (worth if dear[left] else SIMPLE_WORTH), score - now + NOTHING)
            for left, (_, score) in zip(kept, tried, strict=True)
        ]
        best = int(np.argmax(slack))
        if slack[best] < 0:
            break
        kept, (found, now) = fewer[best], tried[best]
        reached = max(reached, now)
    whole = np.zeros(count)
    whole[kept] = found
    return whole


def guessed(scores: Numbers, rows: Numbers, guess: Numbers) -> Numbers:
    """Returns the likeliest weights, shape (S,), if some rows have been seen before the others.

    rows: Of each row of the scores, how often it counts.
    guess: How many such rows came from each of the S.
    """
    w: Numbers = guess / guess.sum()
    likely = np.exp(scores - scores.max(1, keepdims=True))
    for _ in range(UPDATES):
        # Two products with a matrix: the shares of each row would take ten times as long.
        found = np.asarray(
            (w * ((rows / (likely @ w)) @ likely) + guess) / (rows.sum() + guess.sum())
        )
        settled = np.abs(found - w).max() < SETTLED
        w = found
        if settled:
            break
    return w


def mixed(scores: Numbers, w: Numbers) -> Numbers:
    """Returns the log-density of each row, shape (N,), under the mixture of the sorts."""
    used = w > 0
    return _log_sum(scores[:, used] + np.log(w[used]))


def _climbed(scores: Numbers, rows: Numbers) -> tuple[Numbers, float]:
    """Returns the best weights, and the sum that they reach."""
    w = np.full(scores.shape[1], 1 / scores.shape[1])
    if (scores == -np.inf).all(1).any():
        return w, -np.inf
    for _ in range(UPDATES):
        joint = scores + np.log(np.maximum(w, 1e-300))
        shares = np.exp(joint - _log_sum(joint)[:, None])
        w = rows @ shares / rows.sum()
    return w, float(rows @ _log_sum(scores + np.log(np.maximum(w, 1e-300))))


def _log_sum(values: Numbers) -> Numbers:
    top = values.max(1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):  # a row that all members find impossible
        found: Numbers = np.log(np.exp(values - top).sum(1)) + top[:, 0]
    return found
