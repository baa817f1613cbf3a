"""Times and durations are decided in the unit that their column has."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import grids
from nits.tables.evidence.choice import decide
from nits.tables.evidence.decisions import Gridded, Levels
from nits.tables.evidence.scales import Linear

rng = np.random.default_rng(3)
DAYS = rng.integers(0, 400, 900).astype("timedelta64[D]")
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("unit", TICKS)
def test_a_grid_of_days_has_the_step_of_its_unit(unit: str) -> None:
    decision = decide(np.array("2020-01-01", f"datetime64[{unit}]") + DAYS)
    assert isinstance(decision.kind, Gridded)
    assert decision.kind.grid.step == 86_400 * TICKS[unit]
    assert decision.unit == unit
    assert decision.reason.startswith("days")


@pytest.mark.parametrize(
    ("step", "words"), [("h", "hours"), ("m", "minutes"), ("s", "seconds"), ("us", "microseconds")]
)
def test_durations_are_on_a_grid(step: str, words: str) -> None:
    values = rng.poisson(300, 900).astype(f"timedelta64[{step}]").astype("timedelta64[us]")
    decision = decide(values)
    assert isinstance(decision.kind, Gridded)
    assert decision.unit == "us"
    assert decision.reason.startswith(words)
    assert decision.low > -(2**63)


def test_durations_may_be_skewed_and_have_limits() -> None:
    skewed = decide(np.floor(np.exp(rng.normal(9, 3, 900))).astype("timedelta64[s]"))
    assert not isinstance(skewed.scale, Linear)
    waits = decide(np.floor(rng.exponential(5e4, 2000)).astype("timedelta64[s]"))
    assert waits.low == 0
    assert "never negative" in waits.reason


def test_a_few_durations_are_categories_with_words_for_their_limits() -> None:
    values = rng.choice([5, 10, 15], 500).astype("timedelta64[m]").astype("timedelta64[ns]")
    decision = decide(values)
    assert isinstance(decision.kind, Levels)
    assert decision.kind.values == (300 * 10**9, 600 * 10**9, 900 * 10**9)
    assert "at least 5 minutes, at most 15 minutes" in decision.reason


@pytest.mark.parametrize("unit", TICKS)
def test_times_are_on_a_linear_scale_however_skewed(unit: str) -> None:
    spans = np.floor(np.exp(rng.normal(9, 3, 900))).astype("timedelta64[s]")
    decision = decide(np.array("2020-01-01", f"datetime64[{unit}]") + spans)
    assert isinstance(decision.scale, Linear)


def test_limits_of_times() -> None:
    """Beyond the years 1 to 9999 no file can tell times, and no object of Python."""
    far = np.array(["1000-01-01", "5000-01-01", "9999-12-31"], "datetime64[s]")
    decision = decide(np.repeat(far, [3, 5, 9]) + rng.integers(0, 60, 17).astype("m8[s]"))
    assert np.array(decision.low).astype("datetime64[s]") == np.datetime64("0001-01-01")
    assert decision.high < np.datetime64("10000-01-01", "s").astype(np.int64)
    near = decide(np.datetime64("2020-01-01", "ns") + rng.integers(0, 10**15, 99).astype("m8[ns]"))
    assert (near.low, near.high) == (-(2**63) + 1, 2**63 - 1)
    ancient = decide(np.datetime64("-5000-01-01", "s") + rng.integers(0, 10**9, 99).astype("m8[s]"))
    assert ancient.low == -(2**63) + 1


def test_what_the_user_calls_categorical_keeps_its_unit() -> None:
    decision = decide(np.datetime64("2020-01-01", "ms") + DAYS[:50], kind="categorical")
    assert decision.unit == "ms"


@pytest.mark.parametrize("values", [np.arange(3), np.array(["a"], object), np.ones(2, bool)])
def test_numbers_have_no_unit(values: NDArray[Any]) -> None:
    assert grids.unit(values) is None
    assert grids.integers(values) is values
