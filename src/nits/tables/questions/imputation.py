"""Missing values filled in: drawn given all observed entries of their row, or their middle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits import checks
from nits.chunks import slices
from nits.tables import zones
from nits.tables.columns.column import LOWER, UPPER, Column
from nits.tables.columns.first import First
from nits.tables.columns.numeric import Numeric
from nits.tables.frames import Frame
from nits.tables.questions import asked, events
from nits.tables.questions.cloud import Cloud, members, walked
from nits.tables.questions.particles import systematic
from nits.tables.questions.query import Query
from nits.tables.questions.single import as_values

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

Numbers = NDArray[np.float64]

PARTICLES = (256, 2048)
"""Particles for each row that has holes: at first, and where too few of them count."""

FEW = 32
"""Effective particles of a row below which it is asked again, with more of them."""

MIDDLES = ("mean", "median", "mode")


def imputed(estimator: NITSDensity, table: Any, draws: int | str, seed: int) -> list[Any]:
    """Returns tables whose holes are filled; see `NITSDensity.impute`."""
    if isinstance(draws, str) and draws not in MIDDLES:
        raise ValueError(
            f"draws must be a number or one of {', '.join(MIDDLES)}, but is {draws!r}."
        )
    if not isinstance(draws, str):
        checks.positive("draws", draws)
    frame = zones.read(table)
    columns = estimator.schema_.columns
    estimator.schema_._refuse_lacking(frame)
    holes = np.stack([frame.columns[column.name].missing for column in columns], 1)
    _refuse_never_missing(columns, holes)
    filled = [frame] * (1 if isinstance(draws, str) else draws)
    some = np.flatnonzero(holes.any(1))
    if not len(some):
        return [zones.write(each) for each in filled]
    order = some[np.lexsort(holes[some].T)]  # rows with the same holes beside each other
    found = _found(estimator, frame, holes, order, draws, seed)
    return [zones.write(_with(frame, columns, holes, order, part)) for part in found]


def _refuse_never_missing(columns: tuple[Column, ...], holes: NDArray[np.bool_]) -> None:
    for i, column in enumerate(columns):
        if holes[:, i].any() and isinstance(column, First):
            raise ValueError(
                f"column {column.name!r} is of a file from before version 0.3, whose models do "
                "not know missing values; fit it anew."
            )


def _found(
    estimator: NITSDensity,
    frame: Frame,
    holes: NDArray[np.bool_],
    order: NDArray[np.int64],
    draws: int | str,
    seed: int,
) -> list[list[NDArray[Any]]]:
    """Returns, for each table that is asked for, the values of each column at the rows `order`.

    What stands where a row has a value means nothing.
    """
    query = _query(estimator, frame.take(order), holes[order])
    most = min(member.stepped_at_once for _, member in members(estimator.model_))
    pick = _middle(draws) if isinstance(draws, str) else _drawn(draws)
    left, done, parts = np.arange(len(order)), [], []
    with torch.no_grad():
        for total in PARTICLES:
            chunks = [left[some] for some in slices(len(left), max(1, most // total))]
            left = left[:0]
            for k, rows in enumerate(chunks):
                cloud = _walked(estimator, query.take(torch.from_numpy(rows)), seed + k, total)
                found = pick(cloud, cloud.walks[0].query, np.random.default_rng((seed, k)))
                fine = (cloud.ess().numpy() >= FEW) | (total == PARTICLES[-1])
                parts.append([[values[fine] for values in table] for table in found])
                done.append(rows[fine])
                left = np.append(left, rows[~fine])
    place = np.argsort(np.concatenate(done))
    return [
        [np.concatenate([part[t][i] for part in parts])[place] for i in range(holes.shape[1])]
        for t in range(len(parts[0]))
    ]


def _walked(estimator: NITSDensity, query: Query, seed: int, total: int) -> Cloud:
    return walked(estimator.model_, query, seed, total=total, batches=1, drawing=True)


def _query(estimator: NITSDensity, frame: Frame, holes: NDArray[np.bool_]) -> Query:
    """Returns the questions: observed entries are given, and the others are known values."""
    names = estimator.schema_.names
    base = asked.empty(estimator)
    question = asked.tabled(estimator, base, frame, names)
    absent = torch.from_numpy(holes)
    known = {i: events.known(law.column) for i, law in enumerate(base.laws) if holes[:, i].any()}
    return replace(question, given=question.given & ~absent, events=known)


Pick = Callable[[Cloud, Query, np.random.Generator], list[list[NDArray[Any]]]]


def _drawn(draws: int) -> Pick:
    """Returns what draws whole rows of particles, by weight."""

    def pick(cloud: Cloud, query: Query, source: np.random.Generator) -> list[list[NDArray[Any]]]:
        log_weights = _possible(cloud.log_weights().flatten(1))
        generator = torch.Generator().manual_seed(int(source.integers(2**31)))
        mixed = torch.randperm(log_weights.shape[1], generator=generator)
        chosen = mixed[systematic(log_weights[:, mixed], generator, draws)]
        chosen = chosen[:, torch.randperm(draws, generator=generator)]
        found: list[list[NDArray[Any]]] = [[] for _ in range(draws)]
        for i, law in enumerate(query.laws):
            numbers, tails = _column(cloud, i, chosen)
            for t in range(draws):
                found[t].append(_values(law.column, numbers[:, t], tails[:, t], source))
        return found

    return pick


def _middle(how: str) -> Pick:
    """Returns what finds each entry's mean, median or mode under the weights."""

    def pick(cloud: Cloud, query: Query, source: np.random.Generator) -> list[list[NDArray[Any]]]:
        weights = _possible(cloud.log_weights().flatten(1)).softmax(1).numpy()
        every = torch.arange(weights.shape[1]).expand(weights.shape)
        found = []
        for i, law in enumerate(query.laws):
            numbers, tails = _column(cloud, i, every)
            found.append(one(law.column, how, numbers, tails, weights))
        return [found]

    return pick


def _possible(log_weights: Tensor) -> Tensor:
    """Returns weights with those of rows that are impossible made even."""
    lost = (log_weights == -torch.inf).all(1, keepdim=True)
    return log_weights.masked_fill(lost, 0.0)


def _column(cloud: Cloud, i: int, chosen: Tensor) -> tuple[Numbers, Numbers]:
    """Returns numbers and tails of chosen particles, shape (R, count); NaN if none passed it."""
    if any(walk.rank <= walk.order.index(i) for walk in cloud.walks):
        nothing = np.full(chosen.shape, np.nan)
        return nothing, nothing
    drawn = cloud.column(i)
    numbers, tails = (part.flatten(1).gather(1, chosen).double().numpy() for part in drawn)
    return numbers, tails


def _values(
    column: Column, numbers: Numbers, tails: Numbers, source: np.random.Generator
) -> NDArray[Any]:
    """Returns the values of numbers and tails; any where there are none."""
    first = column.end(LOWER) if isinstance(column, Numeric) else 0.0
    low, high = (float(np.float32(end)) for end in column.within)
    known = (numbers > low) & (numbers <= high)
    made = column.decode(np.where(known, numbers, first), source)
    for side in (LOWER, UPPER):
        at = side * tails > 0
        if at.any():
            made = made.replaced(at, column.drawn_beyond(side, np.abs(tails[at])))
    return made.array


def one(column: Column, how: str, numbers: Numbers, tails: Numbers, w: Numbers) -> NDArray[Any]:
    """Returns one value for each row: of categories always the mode."""
    amounts = isinstance(column, Numeric) and column.kind != "categorical"
    if not amounts or how == "mode":
        at = _heaviest(column, numbers, w)
    elif how == "mean" and isinstance(column, Numeric) and not column.facts.ordered:
        return as_values(column, (w * _amounts(column, numbers, tails)).sum(1))
    else:
        at = halfway(numbers, tails, w)
    rows = np.arange(len(numbers))
    return decoded(column, numbers[rows, at], tails[rows, at])


def decoded(column: Column, numbers: Numbers, tails: Numbers) -> NDArray[Any]:
    """Returns the values of numbers and tails."""
    return _values(column, numbers, tails, np.random.default_rng(0))


def _amounts(column: Numeric, numbers: Numbers, tails: Numbers) -> Numbers:
    """Returns what draws are worth, less the base."""
    low, high = column.span
    x = column.amount(np.clip(np.nan_to_num(numbers), low, high).ravel()).reshape(numbers.shape)
    for side in (LOWER, UPPER):
        at = side * tails > 0
        if at.any():
            x[at] = column.amount_beyond(side, np.abs(tails[at]))
    return x


def halfway(numbers: Numbers, tails: Numbers, w: Numbers, level: float = 0.5) -> NDArray[np.int64]:
    """Returns which draw of each row is the weighted median, or another quantile."""
    side = np.where(np.isnan(tails), 0.0, np.sign(tails))
    order = np.lexsort((np.nan_to_num(tails), np.nan_to_num(numbers), side), axis=1)
    reach = np.take_along_axis(w, order, 1).cumsum(1)
    at = (reach < level * reach[:, -1:]).sum(1)
    return np.take_along_axis(order, np.minimum(at, w.shape[1] - 1)[:, None], 1)[:, 0]


def _heaviest(column: Column, numbers: Numbers, w: Numbers) -> NDArray[np.int64]:
    """Returns which draw of each row has the value of greatest weight; of a density, the densest.

    The density is that of the draws, seen through a kernel as wide as suits so many.
    """
    x = np.nan_to_num(numbers)
    found = np.empty(len(x), np.int64)
    for r, (here, weight) in enumerate(zip(x, w, strict=True)):
        distinct, place = np.unique(here, return_inverse=True)
        sums = np.bincount(place, weight)
        if column.kind == "continuous" and sums.max() < 4 / len(here):
            spread = max(float(np.sqrt(np.cov(here, aweights=weight))), 1e-12)
            width = spread * len(here) ** -0.2
            near = np.exp(-0.5 * ((distinct[:, None] - distinct) / width) ** 2)
            sums = near @ sums
        found[r] = np.flatnonzero(place == np.argmax(sums))[0]
    return found


def _with(
    frame: Frame,
    columns: tuple[Column, ...],
    holes: NDArray[np.bool_],
    order: NDArray[np.int64],
    found: list[NDArray[Any]],
) -> Frame:
    """Returns the table with values in place of its holes; what was there is not touched."""
    every = dict(frame.columns)
    for i, column in enumerate(columns):
        at = holes[:, i]
        if at.any():
            whole = np.empty(len(at), found[i].dtype)
            whole[order] = found[i]
            every[column.name] = every[column.name].replaced(at, whole[at])
    return Frame(every, frame.form)
