"""Rivals that sample tables: SDV's Gaussian copula and TVAE, and adversarial random forests.

SDV itself does not run with pandas 3, so its parts do: `copulas` and `ctgan`, on tables prepared
as SDV prepares them. Holes in a column of numbers are filled with its mean; sampled numbers get
holes at random, as often as the column, are rounded to its decimals and kept within its range.
Integers with ten values or fewer are categories, and a hole among categories is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

HOLE, FEW = "(missing)", 10
MOST_ROWS = {"gaussian-copula": 1_000_000, "tvae": 20_000, "arf": 20_000}
"""Training rows, at most: so many that a rival takes some seven minutes of one core at most."""

Sample = Callable[[int], Any]
"""Draws so many rows."""


def fit(name: str, table: Any, quick: bool) -> tuple[Sample, int]:
    """Trains a rival, and returns how to sample it and on how many rows it was trained."""
    most = 500 if quick else MOST_ROWS[name]
    rows = table.sample(min(most, len(table)), random_state=0).reset_index(drop=True)
    numeric = [c for c in rows.select_dtypes("number") if not _coded(rows[c])]
    filled = rows.copy()
    for column in rows:
        known = rows[column] if column in numeric else rows[column].astype(object)
        filled[column] = known.fillna(known.mean() if column in numeric else HOLE)
    drawn = FITS[name](filled, [c for c in rows if c not in numeric], quick)
    source = np.random.default_rng(0)

    def sample(count: int) -> Any:
        found = drawn(count)
        for column in rows:
            restore = _number if column in numeric else _category
            found[column] = restore(found[column], rows[column], source)
        return found[list(rows)]

    return sample, len(rows)


def _coded(column: Any) -> bool:
    return bool(column.dtype.kind in "iu" and column.min() >= 0 and column.nunique() <= FEW)


def _number(values: Any, like: Any, source: np.random.Generator) -> Any:
    known = like.dropna().to_numpy(np.float64)
    decimals = next((d for d in range(15) if np.allclose(known.round(d), known, 1e-12, 0)), 15)
    found = values.astype(np.float64).clip(known.min(), known.max()).round(decimals)
    if like.dtype.kind == "f":
        found[source.random(len(found)) < like.isna().mean()] = np.nan
    return found.astype(like.dtype)


def _category(values: Any, like: Any, source: np.random.Generator) -> Any:
    found = values.astype(object)
    return found.where(found != HOLE, None).astype(like.dtype)


def _copula(table: Any, categories: list[str], quick: bool) -> Sample:
    """Beta marginals, SDV's default; a category is a part of [0, 1] as wide as its share."""
    from copulas.multivariate import GaussianMultivariate
    from copulas.univariate import BetaUnivariate

    source, coded = np.random.default_rng(0), table.copy()
    ends: dict[str, Any] = {}
    for name in categories:
        shares = table[name].value_counts(normalize=True)
        ends[name] = shares.cumsum()
        width = table[name].map(shares).to_numpy(np.float64)
        upper = table[name].map(ends[name]).to_numpy(np.float64)
        coded[name] = upper - width * source.random(len(table))
    model = GaussianMultivariate(distribution=BetaUnivariate, random_state=0)
    model.fit(coded)

    def sample(count: int) -> Any:
        found = model.sample(count)
        for name, upper in ends.items():
            place = np.searchsorted(upper.to_numpy(), found[name].to_numpy())
            found[name] = upper.index.to_numpy()[np.minimum(place, len(upper) - 1)]
        return found

    return sample


def _tvae(table: Any, categories: list[str], quick: bool) -> Sample:
    from ctgan import TVAE
    from joblib import parallel_config

    model = TVAE(enable_gpu=False, epochs=1 if quick else 300)
    model.set_random_state(0)
    with parallel_config(backend="sequential"):
        model.fit(table, categories)
    draw: Sample = model.sample
    return draw


def _arf(table: Any, categories: list[str], quick: bool) -> Sample:
    vars(np).setdefault("in1d", np.isin)  # arfpy 0.1.1 calls what NumPy 2.4 has no more
    from arfpy import arf

    np.random.seed(0)  # noqa: NPY002 - arfpy draws from the global generator
    # Columns go by their numbers, as arfpy looks for them by position in a labelled series.
    coded = table.astype(dict.fromkeys(categories, "category"))
    coded = coded.set_axis(range(table.shape[1]), axis=1)
    model = arf.arf(coded, random_state=0, verbose=False, num_trees=2 if quick else 30)
    model.forde()
    return lambda count: model.forge(count).set_axis(list(table), axis=1)


FITS: dict[str, Callable[[Any, list[str], bool], Sample]] = {
    "gaussian-copula": _copula,
    "tvae": _tvae,
    "arf": _arf,
}
