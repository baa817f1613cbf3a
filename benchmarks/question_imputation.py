"""A tenth of the entries hidden: errors of imputation beside random forests, bands, likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from results import Record

ROWS, HIDDEN = 500, 0.1
LEARNED_FROM, TREES, ROUNDS = 5000, 50, 3
"""Training rows, trees and rounds of the random forests: with all rows they would take hours."""

DRAWS, BANDED = 99, 1500
"""Draws by which a band is found, and rows whose bands are: more than whose errors are, since the
share of entries in their bands is uncertain."""

BAND = 0.05, 0.95


def hide(test: Any, source: np.random.Generator) -> tuple[Any, NDArray[np.bool_]]:
    """Returns rows with known entries made missing at random, and which these are."""
    hidden = (source.random(test.shape) < HIDDEN) & test.notna().to_numpy()
    return test.mask(hidden), hidden


def forests(train: Any, test: Any) -> Any:
    """Returns the rows filled in by scikit-learn's IterativeImputer with random forests."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    both = pandas.concat([train.sample(LEARNED_FROM, random_state=0), test])
    for name in both.select_dtypes(exclude="number"):
        codes, _ = pandas.factorize(both[name])
        both[name] = np.where(codes < 0, np.nan, codes)
    numbers = both.to_numpy(float)
    model = IterativeImputer(
        RandomForestRegressor(n_estimators=TREES, min_samples_leaf=2, random_state=0),
        max_iter=ROUNDS,
        random_state=0,
    ).fit(numbers[:LEARNED_FROM])
    return pandas.DataFrame(model.transform(numbers[LEARNED_FROM:]), columns=test.columns)


def measured(model: Any, train: Any, test: Any, name: str) -> Record:
    """Returns absolute errors in standard deviations by column, coverage, and nats per entry."""
    kept = [c for c in train if c in model.schema_.names]
    train, more = train[kept], test[kept].iloc[:BANDED].reset_index(drop=True)
    test = more.iloc[:ROWS]
    holed, hidden = hide(test, np.random.default_rng(0))
    ours = model.impute(holed, "median", random_state=0)
    theirs = forests(train, holed)
    amounts = [c for c in test.select_dtypes("number") if train[c].nunique() > 2]
    errors: Record = {"nits": {}, "forests": {}}
    for c in amounts:
        at, spread = hidden[:, kept.index(c)], float(train[c].std())
        for who, filled in (("nits", ours), ("forests", theirs)):
            away = np.abs(filled[c].to_numpy(float)[at] - test[c].to_numpy(float)[at])
            errors[who][c] = float(away.mean() / spread)
    means = {who: float(np.mean(list(each.values()))) for who, each in errors.items()}
    ahead = sum(errors["nits"][c] < errors["forests"][c] for c in amounts)
    return {
        "rows": len(test),
        "forests": {"rows": LEARNED_FROM, "trees": TREES, "rounds": ROUNDS},
        "hidden": int(hidden.sum()),
        "errors": errors,
        "mean_error": means,
        "columns": len(amounts),
        "ahead_on": ahead,
        **coverage(model, more, amounts),
        "nats_per_hidden_entry": likelihood(model, test, hidden),
    }


def coverage(model: Any, test: Any, amounts: list[str]) -> Record:
    """Returns how often 90 % bands of draws hold hidden values, in all and by column.

    "banded" is the number of these values.
    """
    holed, hidden = hide(test, np.random.default_rng(1))
    tables, inside = model.impute(holed, DRAWS, random_state=1), {}
    for c in amounts:
        at = hidden[:, list(test).index(c)]
        drawn = np.stack([table[c].to_numpy(float)[at] for table in tables])
        inside[c] = within(drawn, test[c].to_numpy(float)[at])
    every = np.concatenate(list(inside.values()))
    return {
        "coverage": float(every.mean()),
        "banded": len(every),
        "coverages": {c: float(found.mean()) for c, found in inside.items()},
    }


def within(drawn: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns how much of each value lies in the band of its draws, shape (draws, N).

    Values that draws repeat have a stretch of ranks and not one, and those at an edge of the band
    count by the part of the stretch inside: a band of whole numbers cannot hold 90 % by itself.
    """
    below, here = (drawn < truth).sum(0), (drawn == truth).sum(0)
    ends = [below / (len(drawn) + 1), (below + here + 1) / (len(drawn) + 1)]
    part = np.minimum(ends[1], BAND[1]) - np.maximum(ends[0], BAND[0])
    found: NDArray[np.float64] = np.clip(part, 0, None) / (ends[1] - ends[0])
    return found


def likelihood(model: Any, test: Any, hidden: Any) -> float:
    """Returns the mean over hidden entries of log p(hidden | observed) in the table's units."""
    import torch

    from nits.tables import zones
    from nits.tables.questions import asked
    from nits.tables.questions.likelihood import evidence

    question = asked.tabled(model, asked.empty(model), zones.read(test), model.schema_.names)
    order = [list(test).index(name) for name in model.schema_.names]
    absent = torch.from_numpy(hidden[:, order])
    observed = replace(question, given=question.given & ~absent)
    parts, _ = evidence(model.model_, observed, 0)
    known = (parts.logsumexp(1) - np.log(parts.shape[1])).numpy()
    return float((model.score_samples(test) - known).sum() / hidden.sum())
