"""The mean of a column given each row, by a quadrature of the model's cdf that looks closer.

With the mass between neighbouring edges of the numbers' range, and the value in the middle of each
cell, a sum over cells is the mean. A conditional distribution may be far narrower than the column,
or partly so: at each further look, more edges are laid at quantiles of what was seen so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from nits.tables.bent import Bent
from nits.tables.columns.column import LOWER, UPPER, Numbers
from nits.tables.columns.numeric import Numeric

CELLS = 64
"""Cells of a row's range at the first look, and new edges at each further one."""

LISTED = 1024
"""Discrete columns of at most so many values are summed one by one."""

LOOKS = 3

BEYOND = 512
"""Quantiles whose mean is that of a tail."""

Cdf = Callable[[Numbers], Numbers]


def mean(column: Numeric, cdf: Cdf, rows: int) -> Numbers:
    """Returns the mean of each of N rows' known values, less the column's base, shape (N,).

    cdf: That of the model's numbers, from shape (M, N) to the same.
    """
    low, high = column.span
    discrete = column.kind != "continuous"
    bent = Bent.of(column, cdf, rows)

    def body(numbers: Numbers) -> Numbers:
        return bent.up_to(cdf(numbers), 0.0, 0.0)

    found, mass = _spikes(column, body, rows)
    smooth = _without(column, body, rows)
    if discrete and high - low <= LISTED:
        edges = np.arange(low, high + 1)[:, None] * np.ones(rows)
        parts = np.diff(smooth(edges), axis=0), column.amount((edges[1:] + edges[:-1]) / 2)
        found, mass = found + (parts[0] * parts[1]).sum(0), mass + parts[0].sum(0)
    else:
        inner = _zoomed(smooth, np.full(rows, low), np.full(rows, high), column)
        found, mass = found + inner[0], mass + inner[1]
    levels = (np.arange(BEYOND) + 0.5) / BEYOND
    for side, share in ((LOWER, bent.lower), (UPPER, bent.upper)):
        if share.any():
            mass, found = mass + share, found + share * column.amount_beyond(side, levels).mean()
    return np.asarray(found / mass)


def _zoomed(cdf: Cdf, low: Numbers, high: Numbers, column: Numeric) -> tuple[Numbers, Numbers]:
    """Returns sums of values times masses, and of masses, between each row's ends."""
    edges = low + (high - low) * np.linspace(0, 1, CELLS + 1)[:, None]
    below = np.maximum.accumulate(cdf(edges))
    for _ in range(LOOKS - 1):
        new = quantiles(edges, below, (np.arange(CELLS) + 0.5) / CELLS)
        edges = np.concatenate([edges, new])
        order = np.argsort(edges, axis=0, kind="stable")
        below = np.take_along_axis(np.concatenate([below, cdf(new)]), order, 0)
        edges, below = np.take_along_axis(edges, order, 0), np.maximum.accumulate(below)
    mass = np.diff(below, axis=0)
    values = column.amount((edges[1:] + edges[:-1]) / 2)
    return (mass * values).sum(0), mass.sum(0)


def quantiles(edges: Numbers, below: Numbers, share: Numbers) -> Numbers:
    """Returns points at levels of each row's mass, linear between edges, shape (levels, N).

    share: The levels, as shares of the mass between the outermost edges.
    """
    levels = below[0] + (below[-1] - below[0]) * share[:, None]
    sought = torch.searchsorted(
        torch.from_numpy(below.T.copy()), torch.from_numpy(levels.T.copy()), right=True
    )
    after = np.clip(sought.numpy().T, 1, len(edges) - 1)
    first, last = (np.take_along_axis(edges, at, 0) for at in (after - 1, after))
    start, stop = (np.take_along_axis(below, at, 0) for at in (after - 1, after))
    rise = np.where(stop > start, stop - start, 1.0)
    return np.asarray(first + (last - first) * np.clip((levels - start) / rise, 0, 1))


def _spikes(column: Numeric, cdf: Cdf, rows: int) -> tuple[Numbers, Numbers]:
    """Returns sums of atoms times their masses, and of these masses, for real columns."""
    places = column.spikes
    if not len(places):
        return np.zeros(rows), np.zeros(rows)
    mass = _at_spikes(column, cdf, rows)
    return (mass * column.amount(places[:, None].astype(np.float64))).sum(0), mass.sum(0)


def _at_spikes(column: Numeric, cdf: Cdf, rows: int) -> Numbers:
    places = column.spikes
    before = np.nextafter(places, np.float32(-np.inf))
    ones = np.ones(rows)
    return np.maximum(cdf(places[:, None] * ones) - cdf(before[:, None] * ones), 0.0)


def _without(column: Numeric, cdf: Cdf, rows: int) -> Cdf:
    """Returns the cdf without the jumps at atoms."""
    places = column.spikes
    if not len(places):
        return cdf
    mass = _at_spikes(column, cdf, rows)

    def smooth(edges: Numbers) -> Numbers:
        passed = np.zeros_like(edges)
        for place, own in zip(places, mass, strict=True):
            passed += own * (edges.astype(np.float32) >= place)
        return cdf(edges) - passed

    return smooth
