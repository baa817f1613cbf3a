"""Rows drawn under conditions: particles up to the last of them, chosen by weight, go on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from nits.pnn.random import another
from nits.tables import sampling, zones
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.frames import Frame, Values
from nits.tables.questions.cloud import Part, allotted, members, parts, walked
from nits.tables.questions.conditions import Conditions, Value
from nits.tables.questions.cuts import typed
from nits.tables.questions.laws import Drawn
from nits.tables.questions.particles import Shape, Walk, systematic
from nits.tables.questions.query import Query
from nits.tables.validate import told_of

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

SPARE = 4
"""Particles for each row that is drawn, where they have weights."""

FEWEST = 512
"""Particles at least."""

FEW = 0.1
"""Effective particles for each row below which there is a notice."""


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Returns a seed, as scikit-learn's estimators take it from a random state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def drawn(estimator: NITSDensity, query: Query, n: int, seed: int) -> Drawn:
    """Returns the numbers and the tails of n rows given one question, each of shape (n, D)."""
    density = estimator.model_
    most = max(1, min(m.stepped_at_once for _, m in members(density)))
    parts = []
    for k, start in enumerate(range(0, n, most // SPARE)):
        count = min(most // SPARE, n - start)
        parts.append(_some(estimator, query, count, another(seed, k)))
    _tell_few(sum(ess for _, ess in parts), n)
    return Drawn(*(torch.cat(part) for part in zip(*(rows for rows, _ in parts), strict=True)))


def _tell_few(ess: float, n: int) -> None:
    if ess < FEW * n:
        told_of(
            f"only about {ess:.0f} particles stand behind these {n} rows, so values that come "
            "before a condition repeat; the model finds the conditions odd, or put columns that "
            "are given first in order=."
        )


def _some(estimator: NITSDensity, query: Query, n: int, seed: int) -> tuple[Drawn, float]:
    """Returns some rows, and the effective number of particles behind them."""
    every = parts(estimator.model_)
    source = torch.Generator().manual_seed(seed)
    orders = [part.density.order.tolist() for part in every]
    if all(query.last(order) <= query.leading(order) for order in orders):
        walks, ess = _plain(every, query, n, source), math.inf
    else:
        total = max(SPARE * n, FEWEST)
        cloud = walked(estimator.model_, query, seed, total=total, drawing=True)
        log_weights, ess = cloud.log_weights().flatten(), float(cloud.ess()[0])
        if bool((log_weights == -torch.inf).all()):
            raise ValueError(
                "what is given must be possible, but has probability zero under this model; "
                "give less of it."
            )
        # Every fourth Sobol point would lie in one quarter of a column: they are shuffled before.
        mixed = torch.randperm(len(log_weights), generator=source)
        chosen = mixed[systematic(log_weights[mixed], source, n)]
        walks = _chosen(cloud.walks, cloud.log_weights().shape[2], chosen, source)
    order = torch.randperm(n, generator=source)
    columns = []
    for i in range(len(query.laws)):
        pairs = [walk.fed[walk.order.index(i)] for walk in walks]
        columns.append(Drawn(*(torch.cat(part) for part in zip(*pairs, strict=True))))
    numbers = torch.stack([c.numbers for c in columns], 1)[order]
    return Drawn(numbers, torch.stack([c.tails for c in columns], 1)[order]), ess


def _plain(every: list[Part], query: Query, n: int, source: torch.Generator) -> list[Walk]:
    """Returns walks to the end, where all that is given comes first: each member by its share."""
    each = allotted(every, query)
    shares = torch.tensor([share for some in each for share in some])
    which = systematic(shares.double().log(), source, n)
    counts = torch.bincount(which, minlength=len(shares)).split([len(some) for some in each])
    return [
        part.started(query, (1, 1), sizes.tolist(), source).to(len(query.laws))
        for part, sizes in zip(every, counts, strict=True)
        if int(sizes.sum())
    ]


def _chosen(walks: list[Walk], width: int, chosen: Tensor, source: torch.Generator) -> list[Walk]:
    """Returns walks to the end of the chosen particles, which go on independently.

    width: The number of particles of all members in a batch, beside each other.
    """
    batch, place = chosen // width, chosen % width
    found, start = [], 0
    for walk in walks:
        size = walk.shape.size
        mine = (place >= start) & (place < start + size)
        index = (batch * size + place - start)[mine]
        start += size
        if not len(index):
            continue
        walk.select(index)
        walk.shape = Shape(1, 1, len(index))
        walk.log_weights = torch.zeros(walk.shape, dtype=torch.float64)
        walk.u = torch.rand(len(index), len(walk.order), generator=source).to(walk.u)
        found.append(walk.to(len(walk.order)))
    return found


def table(estimator: NITSDensity, found: Drawn, conditions: Conditions, seed: int) -> Any:
    """Returns rows as a table of the form that the model was fitted on."""
    columns = values(estimator, found, seed)
    for name, told in conditions.items():
        if name in columns and len(told) == 1 and isinstance(told[0], Value):
            column = estimator.schema_.columns[estimator.schema_.names.index(name)]
            columns[name] = sampling._repeated(columns[name], typed(column, told[0].value))
    return zones.write(Frame(every(estimator, columns, len(found.numbers)), estimator.schema_.form))


def every(estimator: NITSDensity, columns: dict[str, Values], count: int) -> dict[str, Values]:
    """Returns drawn columns and those set aside, in the order of the training table."""
    return sampling._every(estimator, columns, count)


def values(estimator: NITSDensity, found: Drawn, seed: int) -> dict[str, Values]:
    """Returns the values of drawn numbers and tails, by column."""
    source = np.random.default_rng(seed)
    columns = {}
    for i, column in enumerate(estimator.schema_.columns):
        numbers = found.numbers[:, i].double().numpy()
        tails = found.tails[:, i].double().numpy()
        made = column.decode(numbers, source)
        for side in (LOWER, UPPER):
            at = side * tails > 0
            if at.any():
                made = made.replaced(at, column.drawn_beyond(side, np.abs(tails[at])))
        columns[column.name] = made
    return columns
