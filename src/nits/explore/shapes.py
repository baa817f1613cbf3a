"""Densities, bars and joint pictures of weighted draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nits.explore.draws import BATCHES, Draws, mean_error
from nits.explore.views import BINS, Axis, Listing, Numbers, View, amounts

CELLS = 48
"""Bins of each axis of a joint picture."""

LEVELS = 12
"""Levels that a joint picture tells apart; the rest are one."""

NARROW = 0.45
"""Part of the bandwidth that would be best for a normal distribution: modes are not blurred."""


@dataclass(frozen=True)
class Shape:
    """A column under conditions.

    density: Probabilities of the bins of an axis, without the marks.
    bars, errors: Probabilities of the marks or levels, and standard errors.
    missing: The probability of a hole, and its standard error.
    outside: Probabilities below and above the axis.
    mean: Of known values with its standard error; None for levels.
    quantiles: At 5, 50 and 95 percent; None for levels.
    """

    density: list[float]
    bars: list[float]
    errors: list[float]
    missing: tuple[float, float]
    outside: tuple[float, float]
    mean: tuple[float, float] | None
    quantiles: list[float] | None


Within = tuple[int, int] | frozenset[int] | None
"""What conditions on a column leave of it: the first and the last bin, or levels; None for all."""


def shape(view: View, draws: Draws, i: int, within: Within = None) -> Shape:
    """Returns the distribution of column i, on which there may be conditions."""
    if isinstance(view, Listing):
        return _listed(view, draws, i, within if isinstance(within, frozenset) else None)
    return _along(view, draws, i, within if isinstance(within, tuple) else None)


def _listed(view: Listing, draws: Draws, i: int, within: frozenset[int] | None) -> Shape:
    missing = draws.values[view.column.name].missing
    place = np.where(missing, -1, draws.numbers[:, i].astype(np.int64))
    found, error = _shares(draws, place, int(max(place.max(), view.numbers.max())) + 1)
    own = np.stack([part[view.numbers] * view.shares for part in (found, error)])
    if within is not None:  # a pooled level has the number of its pool
        own[:, [k for k in range(own.shape[1]) if k not in within]] = 0.0
        own /= own[0].sum() or 1.0
    bars, errors = (_short(part) for part in own)
    return Shape([], bars, errors, draws.share(missing), (0.0, 0.0), None, None)


def _shares(draws: Draws, place: NDArray[np.int64], count: int) -> tuple[Numbers, Numbers]:
    """Returns the probability of each of some places and its error; −1 is none of them."""
    at = place >= 0
    flat = np.bincount(
        draws.batch[at] * count + place[at], draws.weights[at], minlength=BATCHES * count
    )
    each = flat.astype(np.float64).reshape(BATCHES, count)
    whole = draws.by_batch(draws.weights)[:, None]
    found = each.mean(0) / whole.mean()
    rest = (each - found * whole) / whole.mean()
    return found, np.asarray(np.sqrt((rest**2).sum(0) / (BATCHES * (BATCHES - 1))))


def _along(view: Axis, draws: Draws, i: int, within: tuple[int, int] | None) -> Shape:
    values = draws.values[view.column.name]
    x, known = amounts(values), ~values.missing
    mark = np.where(known & np.isnan(draws.tails[:, i]), _mark(view, draws.numbers[:, i]), -1)
    found, error = _shares(draws, mark, len(view.numbers))
    free = known & (mark < 0)
    place = view.bins(x)
    inside = free & (place >= 0) & (place < BINS)
    density: list[float] = []
    if not view.whole:
        counts = np.bincount(place[inside], draws.weights[inside], minlength=BINS)
        density = _short(smoothed(counts.astype(np.float64), draws.ess, within))
    weights = draws.weights * known
    below, above = (float((weights * free * (place == end)).sum()) for end in (-1, BINS))
    mean, quantiles = _middle(draws, x, weights)
    return Shape(
        density, _short(found), _short(error), draws.share(~known), (below, above), mean, quantiles
    )


def _mark(view: Axis, numbers: Numbers) -> NDArray[np.int64]:
    """Returns which of an axis' marks numbers are, −1 for none."""
    if not len(view.numbers):
        return np.full(len(numbers), -1)
    own = view.numbers.astype(np.float32).astype(np.float64)
    at = np.clip(np.searchsorted(own, numbers), 0, len(own) - 1)
    return np.where(own[at] == numbers, at, -1)


def _middle(
    draws: Draws, x: Numbers, weights: Numbers
) -> tuple[tuple[float, float] | None, list[float] | None]:
    """Returns the mean of known values with its error, and their quantiles."""
    if not weights.sum():
        return None, None
    filled = np.nan_to_num(x)
    # Less the middle, since times are large numbers.
    order = np.argsort(filled, kind="stable")
    order = order[weights[order] > 0]
    reach = np.cumsum(weights[order])
    levels = np.array([0.05, 0.5, 0.95]) * reach[-1]
    at = order[np.minimum(np.searchsorted(reach, levels), len(order) - 1)]
    middle = filled[at[1]]
    found, error = mean_error(draws.by_batch(weights * (filled - middle)), draws.by_batch(weights))
    return (float(middle + found), error), [float(filled[k]) for k in at]


def smoothed(counts: Numbers, ess: float, within: tuple[int, int] | None = None) -> Numbers:
    """Returns counts of bins smoothed by a normal kernel, reflected at the ends.

    ess: How many draws the counts are worth; fewer need more smoothing.
    within: The first and the last bin that there are.
    """
    low, high = within or (0, len(counts) - 1)
    part = counts[low : high + 1]
    total = part.sum()
    found = np.zeros(len(counts))
    if not total or len(part) < 2:
        found[low : high + 1] = part
        return found
    width = max(_width(part / total) * max(ess, 2.0) ** -0.2 * NARROW, 0.4)
    reach = min(math.ceil(4 * width), len(part))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    padded = np.pad(part, reach, mode="symmetric")
    found[low : high + 1] = np.convolve(padded, kernel / kernel.sum(), mode="valid")
    return found


def smoothed_lines(lines: Numbers, ess: Numbers) -> Numbers:
    """Returns `smoothed` of each line, shape (L, B), all at once.

    ess: How many draws each line is worth, shape (L,).
    """
    totals, count = lines.sum(1, keepdims=True), lines.shape[1]
    p = lines / np.where(totals > 0, totals, 1.0)
    width = np.maximum(_widths(p) * ess**-0.2 * NARROW, 0.4)
    reach = np.minimum(np.ceil(4 * width), count)
    steps = np.arange(2 * count)
    kernel = np.exp(-0.5 * (steps / width[:, None]) ** 2) * (steps <= reach[:, None])
    mass = 2 * kernel.sum(1) - 1
    at = np.arange(count)
    # From each bin to each, straight and reflected at either end.
    ahead, over = np.abs(at[:, None] - at), at[:, None] + at + 1
    whole = kernel[:, ahead] + kernel[:, over] + kernel[:, 2 * count - over]
    found = np.einsum("lij,lj->li", whole, lines) / mass[:, None]
    return np.where(totals > 0, found, lines)


def _widths(p: Numbers) -> Numbers:
    """Returns the spread of each line's distribution, shape (L,); see `_width`."""
    at = np.arange(p.shape[1])
    deviation = np.sqrt((p * (at - (p @ at)[:, None]) ** 2).sum(1))
    reach = np.cumsum(p, 1)
    quartiles = ((reach < 0.75).sum(1) - (reach < 0.25).sum(1) + 1) / 1.349
    return np.asarray(np.minimum(deviation, quartiles))


def _width(p: Numbers) -> float:
    """Returns the spread of a distribution over bins: the less of two measures."""
    at = np.arange(len(p))
    deviation = math.sqrt(float((p * (at - (p * at).sum()) ** 2).sum()))
    low, high = np.searchsorted(np.cumsum(p), [0.25, 0.75])
    quartiles = (int(high) - int(low) + 1) / 1.349
    return min(deviation, quartiles)


@dataclass(frozen=True)
class Joint:
    """Probabilities of cells of two columns.

    cells: Row by row from the lowest of `down`, shape (rows, across); in thousandths of the most.
    across, down: How many there are; labels of levels, by position.
    """

    cells: list[list[int]]
    across: list[int] | int
    down: list[int] | int


def joint(views: tuple[View, View], draws: Draws, pair: tuple[int, int]) -> Joint:
    """Returns the picture of two columns, the first across and the second down."""
    (a, n), (b, m) = (_cells(view, draws, i) for view, i in zip(views, pair, strict=True))
    inside = (a >= 0) & (b >= 0)
    wide, high = (k if isinstance(k, int) else len(k) for k in (n, m))
    counts = np.bincount(b[inside] * wide + a[inside], draws.weights[inside], minlength=wide * high)
    cells = counts.astype(np.float64).reshape(high, wide)
    for turn, view in enumerate((views[1], views[0])):
        if isinstance(view, Axis) and not view.whole:
            lines = cells.T if turn == 0 else cells
            lines = smoothed_lines(lines, np.maximum(draws.ess * lines.sum(1), 2.0))
            cells = lines.T if turn == 0 else lines
    top = cells.max() or 1.0
    return Joint(np.rint(cells / top * 1000).astype(int).tolist(), n, m)


def _cells(view: View, draws: Draws, i: int) -> tuple[NDArray[np.int64], list[int] | int]:
    """Returns each draw's cell, −1 for none, and how many cells or which levels there are."""
    name = view.column.name
    missing = draws.values[name].missing
    if isinstance(view, Axis):
        count = len(view.marks) if view.whole else CELLS
        x = amounts(draws.values[name])
        if view.whole:
            place = np.clip(draws.numbers[:, i] - view.numbers[0], 0, count - 1).astype(np.int64)
        else:
            place = view.bins(x, count)
        return np.where(missing | (place >= count), -1, place), count
    number = np.clip(draws.numbers[:, i].astype(np.int64), 0, None)
    count = int(view.numbers.max()) + 1
    common = np.argsort(-np.bincount(number[~missing], minlength=count)[:count], kind="stable")
    kept = np.sort(common[:LEVELS])
    place = np.full(max(count, int(number.max()) + 1), -1)
    place[kept] = np.arange(len(kept))
    return np.where(missing, -1, place[number]), [int(k) for k in kept]


def _short(x: Numbers) -> list[float]:
    """Returns numbers with as many digits as a picture needs."""
    return [float(one) for one in np.round(x, 6)]
