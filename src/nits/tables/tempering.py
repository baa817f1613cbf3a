"""How members are mixed, column by column, by rows that they have not seen.

By Bayes' rule one member has made the whole row. Beside that stand mixtures as `Tempered` has them,
equation (48): several powers τ, with weights that all columns share and with weights of each of
them, which EM finds for τ = 0. Rows of each fold are scored with weights from the other folds; the
way under which all are likeliest is used if it is ahead of Bayes' rule by enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.model.mixture import Mixture
from nits.model.tempered import Tempered
from nits.tables import stacking
from nits.training.likelihood import SCORED_AT_ONCE
from nits.training.rows import Rows

Numbers = NDArray[np.float64]

POWERS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7)
"""τ, of which the best is taken, or Bayes' rule."""

WORTH, ERRORS = 0.02, 2.0
"""Nats per row that another way must add, since draws and answers take longer with it, and of how
many standard errors."""

MOST, MOST_TERMS = 5_000, 2**24
"""Rows of a fold that are looked at, and terms of all members."""

COMMON, OWN = 1.0, 40.0
"""Rows that a guess counts for: equal weights for what columns share, and that for each of them."""

LEAST = 0.005
"""The share of all columns below which a sort is left out."""


class Seen(NamedTuple):
    """What members say of rows of the fold that they held out.

    which: The rows.
    terms: Of their log-densities, shape (K, N, D).
    members, sorts: Which members they are, and the sort of each.
    rule: Log-densities by Bayes' rule, shape (N,).
    """

    which: NDArray[np.int64]
    terms: torch.Tensor
    members: list[Density]
    sorts: list[str]
    rule: Numbers


class Found(NamedTuple):
    """A way to mix members, and what it adds to rows with weights of other folds.

    power: τ.
    weights: Of each sort in each column, shape (D,).
    which, gains: The rows that were looked at, and what is added to their log-densities.
    """

    power: float
    weights: dict[str, Numbers]
    which: NDArray[np.int64]
    gains: Numbers


def seen(
    members: Sequence[Density],
    sorts: Sequence[str],
    shares: dict[str, float],
    rows: Rows,
    index: torch.Tensor,
) -> Seen:
    """Returns what members say of some rows that they held out.

    shares: Of the sorts by Bayes' rule.
    """
    columns = members[0].columns
    index = index[: min(MOST, MOST_TERMS // (len(members) * columns))]
    parts = [torch.empty(len(members), 0, columns)]
    with torch.no_grad():
        for batch in rows.view(index).batches(SCORED_AT_ONCE, members[0].like):
            said = [member.log_prob_per_column(batch.x, batch.context) for member in members]
            parts.append(torch.stack(said).cpu())
    terms = torch.cat(parts, 1)
    each = [shares[sort] / sorts.count(sort) for sort in sorts]
    some = [k for k, share in enumerate(each) if share]
    rule = Mixture([members[k] for k in some], [each[k] for k in some]).mixed(terms[some])
    return Seen(index.numpy(), terms, list(members), list(sorts), rule.sum(1).double().numpy())


def found(parts: list[Seen], weight: Numbers | None) -> Found | None:
    """Returns the way that makes held-out rows likeliest, if it is ahead by enough; else None.

    weight: Of all rows.
    """
    if len(parts) == 1:  # halves stand in for folds
        half = len(parts[0].which) // 2
        parts = [_some(parts[0], slice(half)), _some(parts[0], slice(half, None))]
    parts = [part for part in parts if len(part.which)]
    if len(parts) < 2:
        return None
    gains = np.concatenate([_gains(part, parts, weight) for part in parts], 1)
    which = np.concatenate([part.which for part in parts])
    by_row = np.ones(len(which)) if weight is None else weight[which]
    share = by_row / max(by_row.sum(), 1e-300)
    means = gains @ share
    best = int(np.argmax(means))
    error = float(np.sqrt(np.sum((share * (gains[best] - means[best])) ** 2)))
    if means[best] < max(WORTH, ERRORS * error):
        return None
    power, own = _ways()[best]
    return Found(power, _weights(parts, weight)[own], which, gains[best])


def mixture(members: Sequence[Density], sorts: Sequence[str], way: Found) -> Tempered:
    """Returns the members' tempered mixture; those of a sort have equal weights."""
    each = [(way.weights[sort] / sorts.count(sort)).tolist() for sort in sorts]
    return Tempered(members, None, way.power, each).eval()


def _ways() -> list[tuple[float, bool]]:
    """Returns pairs of a power, and whether columns have weights of their own."""
    return [(power, own) for own in (False, True) for power in POWERS]


def _some(part: Seen, rows: slice) -> Seen:
    return part._replace(which=part.which[rows], terms=part.terms[:, rows], rule=part.rule[rows])


def _gains(part: Seen, parts: list[Seen], weight: Numbers | None) -> Numbers:
    """Returns how far each way is ahead in the rows of a fold, shape (ways, N)."""
    pair = _weights([other for other in parts if other is not part], weight)
    gains = []
    for power, own in _ways():
        kept = [k for k, sort in enumerate(part.sorts) if sort in pair[own]]
        sorts = [part.sorts[k] for k in kept]
        way = Found(power, pair[own], part.which, part.rule)
        tempered = mixture([part.members[k] for k in kept], sorts, way)
        scores = tempered.mixed(part.terms[kept]).sum(1).double().numpy()
        with np.errstate(invalid="ignore"):  # rows that all members find impossible
            gains.append(np.nan_to_num(scores - part.rule, neginf=-np.inf))
    return np.stack(gains)


def _weights(
    parts: list[Seen], weight: Numbers | None
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Returns weights of sorts that all columns share, and of each column, each of shape (D,)."""
    sorts = [sort for sort in dict.fromkeys(parts[0].sorts) if all(sort in p.sorts for p in parts)]
    said = np.concatenate([_by_sort(part, sorts) for part in parts])
    index = np.concatenate([part.which for part in parts])
    by_row = np.ones(len(index)) if weight is None else weight[index] / weight[index].mean()
    count, columns = said.shape[2], said.shape[1]
    every = np.repeat(by_row, columns) / columns
    common = stacking.guessed(said.reshape(-1, count), every, np.full(count, COMMON / count))
    kept = common > LEAST
    common = common[kept] / common[kept].sum()
    own = np.stack(
        [stacking.guessed(said[:, i, kept], by_row, OWN * common) for i in range(columns)]
    )
    names = [sort for sort, stays in zip(sorts, kept, strict=True) if stays]
    shared = {sort: np.full(columns, share) for sort, share in zip(names, common, strict=True)}
    return shared, dict(zip(names, own.T, strict=True))


def _by_sort(part: Seen, sorts: list[str]) -> Numbers:
    """Returns what members of each sort in equal parts say of each entry, shape (N, D, S)."""
    found = []
    for sort in sorts:
        same = part.terms[[k for k, own in enumerate(part.sorts) if own == sort]]
        found.append((same.logsumexp(0) - np.log(len(same))).double().clamp_min(-1e30))
    return torch.stack(found, -1).numpy()
