"""Tails and limits: rates that follow the outer values, ends closed by what occurs there."""

import json
import math
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from nits import NITSDensity
from nits.tables.columns.beyond import EVEN
from nits.tables.evidence import limits, tails
from nits.tables.evidence.limits import Limits
from nits.tables.evidence.records import Record
from nits.tables.evidence.tails import Tail

rng = np.random.default_rng(0)
N = 5000
FREE = (-math.inf, math.inf)


def found(x: NDArray[np.float64]) -> tuple[float, float]:
    limit = limits.find(Record.of(x), FREE)
    return limit.low, limit.high


def test_a_tail_has_its_share_as_mass() -> None:
    distance = np.linspace(0, 50, 100_001)
    for tail in (Tail(0.1, 2.0), Tail(0.1, 2.0, room=0.7)):
        density = np.exp(tail.log_density(distance))
        assert np.trapezoid(density, distance) == pytest.approx(0.1, rel=1e-3)
        assert np.exp(tail.log_mass(np.array([0.0]), np.array([np.inf]))) == pytest.approx(0.1)
        whole = tail.log_mass(distance[:-1], distance[1:])
        assert np.exp(whole).sum() == pytest.approx(0.1)


def test_json_brings_a_tail_back() -> None:
    for tail in (Tail(0.1, 2.0), Tail(0.1, 2.0, room=0.7)):
        assert tails.from_dict(json.loads(json.dumps(tail.to_dict()))) == tail


def test_the_rate_of_an_exponential_is_found() -> None:
    x = np.sort(rng.exponential(0.25, 50_000))
    assert tails.rate(x[-1] - x[::-1], np.ones(len(x))) == pytest.approx(4, rel=0.3)


def test_the_rate_of_a_geometric_law_is_found() -> None:
    k, counts = np.unique(rng.geometric(0.3, 50_000), return_counts=True)
    rate = tails.rate((k[-1] - k[::-1]).astype(float), counts[::-1].astype(float), step=1.0)
    assert math.exp(-rate) == pytest.approx(0.7, abs=0.1)


def test_ties_at_the_end_are_looked_past() -> None:
    x, counts = 2 * np.arange(10.0), np.array([5000.0, *[1.0] * 9])
    assert tails.rate(x, counts) == pytest.approx(1 / 18, rel=0.01)
    assert tails.rate(np.zeros(1), np.ones(1)) == 1.0


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [
        (rng.normal(size=N), -math.inf, math.inf),
        (rng.normal(170, 10, N), -math.inf, math.inf),
        (rng.exponential(size=N), 0, math.inf),
        (-rng.exponential(size=N), -math.inf, 0),
        (rng.random(N), 0, 1),
        (0.2 + 0.3 * rng.random(N), -math.inf, math.inf),
        (np.minimum(rng.normal(size=N), 1.5), -math.inf, 1.5),
        (np.where(rng.random(N) < 0.3, 0, rng.gamma(2, 3, N)), 0, math.inf),
        (rng.integers(0, 24, N).astype(float), 0, 23),
        (rng.integers(1, 13, N).astype(float), 1, 12),
        (rng.poisson(3, N).astype(float), 0, math.inf),
        (rng.poisson(1000, N).astype(float), -math.inf, math.inf),
        (rng.choice([3.0, 7.0], N, p=[0.99, 0.01]), 3, 7),
    ],
)
def test_limits(x: NDArray[np.float64], low: float, high: float) -> None:
    assert found(x) == (low, high)


def test_skewed_positive_values_are_never_negative() -> None:
    for seed in range(40):
        draws = np.random.default_rng(seed)
        for x in (np.exp(draws.normal(size=1000)), draws.gamma(3, 700, 1000)):
            assert found(x) == (0, math.inf)


def test_types_have_limits() -> None:
    record = Record.of(rng.integers(100, 120, N))
    assert limits.find(Record.of(rng.poisson(100, N)), (-128, 127)) == Limits(-128, 127)
    assert limits.find(record, (-128, 127)) == Limits(100, 119)


def test_limits_of_the_largest_and_the_smallest_floats() -> None:
    assert found(1.7e308 * rng.uniform(-1, 1, N)) == FREE
    assert found(1e-300 * rng.exponential(size=N)) == (0, math.inf)


# What lies beyond, given the columns before.


def chain(n: int) -> Any:
    """Two columns, the second of which follows the first."""
    x = np.random.default_rng(0).normal(size=n)
    return pandas.DataFrame({"x": x, "y": x + 0.1 * np.random.default_rng(1).normal(size=n)})


@pytest.fixture(scope="module")
def following() -> NITSDensity:
    return NITSDensity(max_steps=300, random_state=0).fit(chain(400))


def test_values_expected_near_an_end_lie_beyond_it_more_often(following: NITSDensity) -> None:
    most = chain(400)["y"].max()
    shares = [following.given(x=x).probability({"y": (most, None)}).estimate for x in (-1.0, most)]
    even = EVEN / 401
    assert even * 0.99 < shares[0] < even * 1.5
    assert shares[1] > 20 * even


def test_as_many_rows_lie_beyond_as_of_next_rows(following: NITSDensity) -> None:
    rows, drawn = chain(400), following.sample(200_000, random_state=0)
    for name in rows:
        for beyond in (drawn[name] < rows[name].min(), drawn[name] > rows[name].max()):
            assert beyond.mean() * 401 == pytest.approx(1, abs=0.35)


def test_scores_and_samples_agree_beyond_an_end(following: NITSDensity) -> None:
    """The mass beyond an end is the mean of exp(score) over draws from another density there."""
    rows = chain(400)
    drawn = following.sample(200_000, random_state=1)
    most, x = rows["y"].max(), drawn["x"].to_numpy()
    grid = most + (np.arange(400) + 0.5) / 400 * 20
    near = np.quantile(x, (np.arange(60) + 0.5) / 60)
    table = pandas.DataFrame({"x": np.repeat(near, 400), "y": np.tile(grid, 60)})
    given_x = np.exp(following.score_samples(table, per_column=True)[:, 1])
    mass = (given_x.reshape(60, 400).sum(1) * 20 / 400).mean()
    assert mass == pytest.approx((drawn["y"] > most).mean(), rel=0.25)


def test_a_value_far_from_what_is_expected_is_not_impossible(following: NITSDensity) -> None:
    rows = chain(400)
    far = pandas.DataFrame({"x": [-2.0], "y": [rows["y"].max() + 0.5]})
    assert following.score_samples(far)[0] > -25


def test_outermost_numbers_of_small_and_of_tied_columns() -> None:
    assert tails.outermost(np.arange(100, dtype=np.float32), 1) == (95.0, 0.05)
    assert tails.outermost(np.arange(100, dtype=np.float32), -1) == (4.0, 0.05)
    edge, part = tails.outermost(np.array([0, 0, 0, 1], np.float32), 1)
    assert (edge, part) == (1.0, 0.25)
    edge, part = tails.outermost(np.repeat([0.0, 1.0], 50).astype(np.float32), -1)
    assert (edge, part) == (0.0, 0.5)
