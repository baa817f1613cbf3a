"""Hostile columns, each fitted alone with the defaults: nothing refused, absurd, or lost."""

import time
from typing import Any

import numpy as np
import pytest

import hostile
import hostile_checks as checks
from nits.tables import frames
from nits.tables.estimator import NITSDensity
from nits.tables.evidence import aside, choice

QUICK = [
    "log-normal × 1e-300",
    "outlier 2e9",
    "normal, 8 rows",
    "cap at 1.5",
    "z-scored counts in float32",
    "zip codes, 5 % missing",
    "int64 near 2^63",
    "business days",
]
"""Columns of each sort, for the fast suite."""

SPARSE = ["outlier 2e9 among integers"]
"""Columns whose density is left with a few integers far apart: nothing to add up between them."""

SAMPLES = 4000


def check(name: str, steps: int) -> None:
    """Fits a column and checks everything that is asked of every column."""
    data = hostile.column(name)
    model = NITSDensity(random_state=0, max_steps=steps).fit(data.to_frame())
    samples = model.sample(SAMPLES, random_state=0)["x"]
    checks.finite_scores(model, data)
    checks.same_type(data, samples)
    checks.same_holes(data, samples)
    checks.same_law(data, samples)
    checks.seldom_beyond(data, samples)
    checks.within_limits(model, samples)
    if name not in SPARSE:
        checks.mass_is_one(model)


def test_there_are_many_hostile_columns() -> None:
    assert len(hostile.COLUMNS) >= 90


@pytest.mark.parametrize("name", QUICK)
def test_some_hostile_columns(name: str) -> None:
    check(name, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in hostile.COLUMNS if name not in QUICK])
def test_hostile_columns(name: str) -> None:
    check(name, steps=150)


def known(name: str) -> tuple[Any, str]:
    values = frames.read(hostile.column(name).to_frame()).columns["x"]
    return values.known, values.dtype


@pytest.mark.parametrize("name", hostile.COLUMNS)
def test_evidence_on_hostile_columns(name: str) -> None:
    array, dtype = known(name)
    assert aside.find(array) is None
    start = time.process_time()
    decision = choice.decide(array, dtype)
    assert time.process_time() - start < 0.3
    assert all(np.isfinite(score) for score in decision.scores.values())
    assert np.isfinite(decision.ends).all() or decision.scale is None
