"""How much narrower or broader a mixture should be, by rows that its members have not seen.

Of each fold there is a mixture of the members that held it out. Where its distribution functions
have their values, the probabilities u, tells whether it is too broad: u should be even. The curves
of `Calibrated`, equation (31), are fitted to them, and used if curves that were fitted to the other
folds make the rows of each fold likelier. Of curves with a bump for each twelfth of the
probabilities, and curves with nothing but a width (`nits.tables.widths`), those are taken that do.

The whole mixture has more networks than held out a fold. If networks err by a part of variance σ²
that they share and a part of variance b² of their own, and each is as broad as it errs, then the
normal scores z = Φ⁻¹(u) of a mixture of m of them have the variance

    v(m) = (1 + r/m) / (1 + 2r − r/m),    r = b² / σ²                                        (42)

The mixture of a fold beside its networks alone tells r. Of σ², a part f² is of the fold's rows, and
not shared with other folds: with φ = f²/b² by equation (49), the whole mixture, of M networks of K
folds, has

    V = (1 + r/M − φr (1 − 1/K)) / (1 + 2r − r/M + φr (1 − 1/K))                              (50)

so that scores times √(V/v(m)) stand for those of the whole mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.calibrated import BUMPS, Calibrated
from nits.model.density import Density
from nits.model.mixture import Mixture
from nits.tables import stacking, widths
from nits.training.likelihood import SCORED_AT_ONCE
from nits.training.rows import Rows

Numbers = NDArray[np.float64]

Fit = Callable[[Numbers, Numbers], Numbers]
"""Weights of the bumps of each column, by what rows say of each, and how often each counts."""

WORTH = 0.02
"""Nats per row that curves must add: with them scoring takes twice as long, and sampling longer."""

COMMON, OWN = 12.0, 40.0
"""Rows that a guess counts for: even probabilities for all columns together, and what these have
shown for each column."""

ENOUGH = 2
"""Networks of a fold, from which their mixture tells how broad the whole mixture is."""

MOST = 20_000
"""Rows of a fold that are looked at."""

RAREST = 1e-3
"""Probabilities beyond which a normal score counts no more, so that few rows do not decide."""

MOST_OWN = 100.0
"""The greatest r of equation (42)."""

MOST_APART = 0.5
"""The greatest part of σ² that may be of a fold's rows: the rest is noise, and errors of all."""


class Seen(NamedTuple):
    """Where held-out rows of a fold lie under the mixture of the members that held it out.

    which: The rows.
    middle, mass: The probability up to the middle of each entry, and that of the entry, shape
        (N, D); NaN where a column has no curve.
    alone: The first of them under each member alone, shape (K, N, D).
    shares: Weights of the members in the mixture, shape (K,).
    """

    which: NDArray[np.int64]
    middle: torch.Tensor
    mass: torch.Tensor
    alone: torch.Tensor
    shares: torch.Tensor


class Told(NamedTuple):
    """What rows say of each bump in each column's curve.

    which: The rows.
    scores: Logarithms of the bumps' mean slopes, shape (N, D, m); zeros for columns without a
        curve.
    """

    which: NDArray[np.int64]
    scores: Numbers


class Found(NamedTuple):
    """The curves of all columns, and what they add.

    logits: Of the bumps, shape (D, m).
    which, gains: The rows that were looked at, and what curves of other folds add to each.
    """

    logits: torch.Tensor
    which: NDArray[np.int64]
    gains: Numbers


def seen(mixture: Mixture, rows: Rows, index: torch.Tensor, curved: list[bool]) -> Seen:
    """Returns where some rows lie under a mixture that has not learned from them.

    curved: Which columns may have a curve.
    """
    index = index[:MOST]
    parts = []
    with torch.no_grad():
        for batch in rows.view(index).batches(SCORED_AT_ONCE, mixture.like):
            middle = mixture.to_uniform(batch.x, batch.context).double()
            log_p = mixture.log_prob_per_column(batch.x, batch.context).double()
            massive = [head.has_mass(x) for head, x in zip(mixture.heads, batch.x.t(), strict=True)]
            known = torch.isfinite(middle) & torch.isfinite(log_p) & torch.tensor(curved)
            mass = torch.where(known & torch.stack(massive, 1), log_p.exp(), 0.0)
            each = [member.to_uniform(batch.x, batch.context) for member in mixture.members]
            parts.append((middle.masked_fill(~known, torch.nan), mass, torch.stack(each).double()))
    middle, mass = (torch.cat(one) for one in list(zip(*parts, strict=True))[:2])
    alone = torch.cat([each for *_, each in parts], 1)
    return Seen(index.numpy(), middle, mass, alone, mixture.log_weights.exp().double())


def found(
    parts: list[Seen], weight: Numbers | None, shares: Sequence[float], apart: float = 0.0
) -> Found | None:
    """Returns the curves, if they make held-out rows likelier by enough; else None.

    weight: Of all rows.
    shares: Weights of the members of the whole mixture.
    apart: φ of equation (49).
    """
    if not parts:
        return None
    folds = len(parts)
    if folds == 1:  # halves stand in for folds
        half = len(parts[0].which) // 2
        parts = [_some(parts[0], slice(half)), _some(parts[0], slice(half, None))]
    index = np.concatenate([part.which for part in parts])
    narrower = _narrower(parts, effective(torch.tensor(shares)), apart, folds)
    as_many = [told(*pair) for pair in zip(parts, narrower, strict=True)]
    if not len(index):
        return None
    by_row = None if weight is None else weight[index]
    every: tuple[Fit, ...] = (by_bumps, widths.fitted)
    expected = [np.average(_gains(as_many, weight, fit), weights=by_row) for fit in every]
    if max(expected) < WORTH:
        return None
    fit = every[int(np.argmax(expected))]
    honest = _gains([told(part) for part in parts], weight, fit)
    return Found(torch.from_numpy(np.log(_fitted(as_many, weight, fit))), index, honest)


def effective(shares: torch.Tensor) -> float:
    """Returns how many members of equal weight are as many as members with these weights."""
    return float(shares.sum().square() / shares.square().sum())


def _some(part: Seen, rows: slice) -> Seen:
    which, middle, mass, alone, shares = part
    return Seen(which[rows], middle[rows], mass[rows], alone[:, rows], shares)


def _gains(parts: list[Told], weight: Numbers | None, fit: Fit) -> Numbers:
    """Returns what curves of the other folds add to the log-density of each row, shape (N,)."""
    gains = []
    for k, part in enumerate(parts):
        others = [other for j, other in enumerate(parts) if j != k]
        gains.append(_gain(part, _fitted(others, weight, fit)))
    return np.concatenate(gains)


def _narrower(
    parts: list[Seen], members: float, apart: float = 0.0, folds: int = 1
) -> list[torch.Tensor]:
    """Returns √(V/v(m)) of each part, by (42) and (50): of each column, 1 without a curve."""
    rows = torch.tensor([float(len(part.which)) for part in parts], dtype=torch.float64)
    rows = rows / rows.sum()
    counts = [effective(part.shares) for part in parts]
    mixed = torch.stack([_spread(part.middle) for part in parts])
    alone = torch.stack([_spread_alone(part) for part in parts])
    r = _own((rows @ mixed) / (rows @ alone), float(rows @ torch.tensor(counts).double()))
    moved = (apart * r).clamp(max=MOST_APART) * (1 - 1 / folds)
    return [(_variance(members, r, moved) / _variance(few, r)).sqrt() for few in counts]


def _own(ratio: torch.Tensor, members: float) -> torch.Tensor:
    """Returns r, of which v(m) is the ratio of variances; 0 where a mixture is no broader."""
    ratio = torch.where(torch.isnan(ratio), 1.0, ratio).clamp(max=1.0)
    below = ratio * (2 - 1 / members) - 1 / members
    return torch.where(below > 0, (1 - ratio) / below, torch.inf).clamp(max=MOST_OWN)


def _variance(members: float, r: torch.Tensor, moved: torch.Tensor | float = 0.0) -> torch.Tensor:
    """Returns v(m), equation (42), or V of (50) if errors φr (1 − 1/K) become disagreement."""
    return (1 + r / members - moved) / (1 + 2 * r - r / members + moved)


def _spread_alone(part: Seen) -> torch.Tensor:
    """Returns the mean variance of the scores of rows under each member alone, shape (D,)."""
    known = torch.isfinite(part.middle)
    each = torch.stack([_spread(u.masked_fill(~known, torch.nan)) for u in part.alone])
    return part.shares @ each


def _spread(u: torch.Tensor) -> torch.Tensor:
    """Returns the mean square of the normal scores of probabilities, shape (N, D), by column."""
    z: torch.Tensor = torch.special.ndtri(u.clamp(RAREST, 1 - RAREST))
    return z.square().nanmean(0)


def told(part: Seen, narrower: torch.Tensor | None = None) -> Told:
    """Returns what rows say of the bumps, with their normal scores multiplied by `narrower`."""
    low, high = ((part.middle + sign * part.mass / 2).clamp(0.0, 1.0) for sign in (-1, 1))
    if narrower is not None:
        low, high = (torch.special.ndtr(narrower * torch.special.ndtri(end)) for end in (low, high))
    return Told(part.which, widths.bumps((low + high) / 2, high - low).numpy())


def _fitted(parts: list[Told], weight: Numbers | None, fit: Fit) -> Numbers:
    """Returns the weights of the bumps of each column, shape (D, m), even without a curve."""
    scores = np.concatenate([part.scores for part in parts])
    index = np.concatenate([part.which for part in parts])
    by_row = np.ones(len(index)) if weight is None else weight[index]
    by_row = by_row * (len(by_row) / max(by_row.sum(), 1e-300))
    whole = np.full((scores.shape[1], BUMPS), 1 / BUMPS)
    curved = [d for d in range(scores.shape[1]) if scores[:, d].any()]
    if curved:
        whole[curved] = fit(scores[:, curved], by_row)
    return whole


def by_bumps(scores: Numbers, by_row: Numbers) -> Numbers:
    """Returns the weights of the bumps of each column, shape (D, m), each bump on its own.

    scores: What rows say of each bump in each column, shape (N, D, m).
    by_row: How often each row counts.
    """
    columns = range(scores.shape[1])
    every = np.concatenate([scores[:, d] for d in columns])
    even = np.full(BUMPS, 1 / BUMPS)
    common = stacking.guessed(every, np.tile(by_row, len(columns)), COMMON * even)
    return np.stack([stacking.guessed(scores[:, d], by_row, OWN * common) for d in columns])


def _gain(part: Told, weights: Numbers) -> Numbers:
    """Returns what curves add to the log-density of each row, shape (N,)."""
    curved = ~np.isclose(weights, weights[:, :1]).all(1)
    said = np.exp(part.scores[:, curved]) * weights[curved]
    return np.asarray(np.log(said.sum(2)).sum(1))


def calibrated(density: Density, found: Found | None) -> Density:
    """Returns the density with curves, if there are any."""
    return density if found is None else Calibrated(density, found.logits).eval()
