"""What a model of one hostile column must do: finite scores, samples like the data, mass one."""

import datetime
import math
from typing import Any

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from scipy.stats import binom, chi2_contingency

from nits.tables import frames
from nits.tables.columns import Categories, Gridded, Ordered, Real, plainly
from nits.tables.columns.column import LOWER, UPPER
from nits.tables.columns.listed import Listed
from nits.tables.columns.numeric import Numeric
from nits.tables.conditional import Conditional
from nits.tables.estimator import NITSDensity
from nits.tables.frames import Frame

Numbers = NDArray[np.float64]

LEVEL = 1e-4
"""Chance that a right model fails one check."""

MOST_POINTS = 20_000
"""Points beyond an end at which probabilities are added up."""


def numbers(data: Any, samples: Any) -> tuple[Numbers, Numbers]:
    """Returns known numbers, times or durations of both as floats.

    The least of the data is taken off integers that floats do not hold.
    """
    plain = [_plain(part.dropna()) for part in (data, samples)]
    least = int(plain[0].min()) if plain[0].dtype.kind in "iu" else 0
    base = least if least and max(abs(least), abs(int(plain[0].max()))) > 2**53 else 0
    x, y = (np.array([value - base for value in part.tolist()], np.float64) for part in plain)
    return x, y


def _plain(known: Any) -> Any:
    """Returns integers or floats; times and durations in ticks, dates in days."""
    kind = known.dtype.kind
    if kind == "O" and isinstance(known.iloc[0], datetime.date):
        return known.map(lambda value: value.toordinal()).to_numpy(np.int64)
    if kind == "M" and known.dt.tz is not None:
        known = known.dt.tz_convert("UTC").dt.tz_localize(None)
    if kind in "mM":
        return known.to_numpy().astype(np.int64)
    if kind in "iu":
        return known.to_numpy(known.dtype.name.lower())
    return known.to_numpy(np.float64)


def distance(x: Numbers, y: Numbers) -> float:
    """Returns the Kolmogorov-Smirnov distance of two samples."""
    every = np.concatenate([x, y])
    below = [np.searchsorted(np.sort(part), every, side="right") / len(part) for part in (x, y)]
    return float(np.abs(below[0] - below[1]).max())


def critical(n: int, m: int) -> float:
    """Returns the distance that samples of one law exceed with probability `LEVEL`."""
    return math.sqrt(-math.log(LEVEL / 2) / 2 * (1 / n + 1 / m))


def same_law(data: Any, samples: Any) -> None:
    """Numbers pass a two-sample Kolmogorov-Smirnov test, categories a chi-square test."""
    if is_category(data):
        counts = [part.dropna().value_counts() for part in (data, samples)]
        table = pandas.concat(counts, axis=1).fillna(0).to_numpy(float)
        rare = table.sum(1) < 10
        table = np.vstack([table[~rare], table[rare].sum(0)]) if rare.any() else table
        table = table[table.sum(1) > 0]
        assert len(table) < 2 or chi2_contingency(table).pvalue > LEVEL
        assert set(samples.dropna()) <= set(data.dropna())
        return
    x, y = numbers(data, samples)
    assert distance(x, y) <= critical(len(x), len(y))


def is_category(series: Any) -> bool:
    """Whether a column holds strings, booleans or categories."""
    return str(series.dtype) in ("str", "bool", "boolean", "category")


def same_type(data: Any, samples: Any) -> None:
    """Samples have the type of the data, to the objects in it."""
    assert samples.dtype == data.dtype
    types = {type(value) for value in data.dropna()}
    assert {type(value) for value in samples.dropna()} <= types


def same_holes(data: Any, samples: Any) -> None:
    """As many samples as rows are missing, but for chance; and none if none is."""
    share, holes = float(data.isna().mean()), int(samples.isna().sum())
    low, high = binom.ppf([LEVEL / 2, 1 - LEVEL / 2], len(samples), share)
    assert low <= holes <= high


def seldom_beyond(data: Any, samples: Any) -> None:
    """Samples exceed the range of n known values in at most three times 2/(n + 1) of all."""
    if is_category(data):
        return
    x, y = numbers(data, samples)
    beyond = int(((y < x.min()) | (y > x.max())).sum())
    assert beyond <= binom.isf(LEVEL, len(y), min(1.0, 6 / (len(x) + 1)))
    # Ten ranges, and a hundred for the one sample in a thousand beyond that.
    reach = 100 * (x.max() / 2 - x.min() / 2) * 2 if np.ptp(x / 4) < 1e305 else np.inf
    assert np.isfinite(y).all()
    assert y.min() >= x.min() - reach
    assert y.max() <= x.max() + reach


def within_limits(model: NITSDensity, samples: Any) -> None:
    """Samples keep the limits that were found."""
    column = model.schema_.columns[0]
    if isinstance(column, Numeric) and not column.facts.ordered:
        plain = frames.read(samples.to_frame("x")).columns["x"]
        found, broken = plainly.numbers(plain, column.facts, column.unit)
        found = found[~plain.missing]
        assert not broken.any()
        assert column.ruler.low <= found.min().item()
        assert found.max().item() <= column.ruler.high


def finite_scores(model: NITSDensity, data: Any) -> None:
    """Every training row has a finite score, and none is unseen."""
    assert np.isfinite(model.score_samples(data.to_frame("x"))).all()
    assert not model.unseen(data.to_frame("x")).any()


def mass_is_one(model: NITSDensity) -> None:
    """Probabilities of all values, holes and what is unseen add up to one.

    A density on integers has up to a hundredth where all integers are atoms.
    """
    column = model.schema_.columns[0]
    exact = not (isinstance(column, Real) and column.atoms and column.ruler.grid)
    tolerance = (1e-3 if exact else 0.02) + 0.05 * sum(tail_masses(model))
    assert abs(mass(model) + column.unseen - 1) < tolerance


def tail_masses(model: NITSDensity) -> tuple[float, float]:
    """Returns the masses of the tails of a model's first column."""
    law = model.model_.conditionals(torch.zeros(1, model.model_.columns))[0]
    column = model.schema_.columns[0]
    bent, seen = Conditional(column, law).bent(), 1 - column.unseen
    return seen * float(bent.lower[0]), seen * float(bent.upper[0])


def mass(model: NITSDensity) -> float:
    """Returns the mass of a model's only column by its scores, but for what is unseen.

    Discrete columns are added up, densities integrated along the values. The tails of lists are
    taken for what they should be: between the values beyond them nothing is listed.
    """
    column = model.schema_.columns[0]
    total = _hole(model) if column.optional else 0.0
    if isinstance(column, Categories):
        return total + _sum(model, np.array([*column.levels, *column.pooled], _object(column)))
    if isinstance(column, Listed | Ordered):
        return total + _sum(model, np.array(column.listed)) + sum(tail_masses(model))
    if isinstance(column, Gridded):
        ends = [_farthest(column, side) for side in (LOWER, UPPER)]
        return total + _sum(model, column.grid.decode(np.arange(ends[0], ends[1] + 1)))
    assert isinstance(column, Real)
    return total + _integral(model, column)


def _object(column: Categories) -> Any:
    return object if isinstance(column.levels[0], str) else None


def _farthest(column: Gridded, side: int) -> int:
    """Returns the step up to which a tail has all but 1e-4 of its mass."""
    end = 0 if side == LOWER else column.count - 1
    if not column.beyond[0 if side == LOWER else 1]:
        return end
    k = int(column.grid.encode(column.ruler.drawn(side, np.array([1 - 1e-4])))[0][0])
    return max(k, end - MOST_POINTS) if side == LOWER else min(k, end + MOST_POINTS)


def _table(model: NITSDensity, plain: NDArray[Any]) -> Any:
    column = model.schema_.columns[0]
    unit = getattr(column, "unit", None)
    values = plainly.values(plain, np.zeros(len(plain), bool), column.facts, unit)
    return frames.write(Frame({column.name: values}, "pandas"))


def _sum(model: NITSDensity, plain: NDArray[Any]) -> float:
    table = _table(model, plain)
    return float(np.exp(model.score_samples(table))[~model.unseen(table)[:, 0]].sum())


def _hole(model: NITSDensity) -> float:
    table = _table(model, _some(model))
    return float(np.exp(model.score_samples(table.mask(np.ones((len(table), 1), bool))))[0])


def _some(model: NITSDensity) -> NDArray[Any]:
    """Returns a value of the column, to be made a hole."""
    column = model.schema_.columns[0]
    if isinstance(column, Categories):
        return np.array([column.levels[0]], _object(column))
    assert isinstance(column, Numeric)
    return column.values(np.array([column.ends()[0]]))


def _integral(model: NITSDensity, column: Real) -> float:
    """Returns the masses of atoms and the integral of the density over body and tails."""
    low, high = column.ends()
    atoms = np.array(column.atoms)
    knots = np.concatenate([np.linspace(low, high, 20_001), _quantiles(model, column)])
    body = column.ruler.body(column.ruler.scale.back(np.sort(knots)))
    parts = [_trapezoid(model, column, np.setdiff1d(body, atoms))]
    for side, end in zip((LOWER, UPPER), column.beyond[:2], strict=True):
        if end:
            beyond = column.ruler.drawn(side, 1 - np.geomspace(1, 1e-4, 4001))
            parts.append(_trapezoid(model, column, np.unique(beyond)))
    return sum(parts) + (_sum(model, atoms) if len(atoms) else 0.0)


def _quantiles(model: NITSDensity, column: Real) -> Numbers:
    """Returns places of samples and between them, where the density may be steep."""
    samples = frames.read(model.sample(2000, random_state=1, complete=True)).columns[column.name]
    plain, _ = plainly.numbers(samples, column.facts, column.unit)
    places = np.sort(column.ruler.scale.to(column.ruler.numbers(plain)))
    inside = np.unique(np.clip(places, *column.ends()))
    return np.concatenate([inside[:-1] + part * np.diff(inside) for part in (0, 0.25, 0.5, 0.75)])


def _trapezoid(model: NITSDensity, column: Real, plain: NDArray[Any]) -> float:
    """Returns the integral of the density over sorted values, in logarithms: both may be huge."""
    x = column.ruler.numbers(plain)
    second = 1 if column.unit is None else plainly.per_second(column.unit)
    score = model.score_samples(_table(model, plain))
    middle = np.logaddexp(score[1:], score[:-1]) - math.log(2)
    return float(np.exp(middle + np.log(np.diff(x)) - math.log(second)).sum())
