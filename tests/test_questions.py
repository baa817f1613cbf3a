"""Questions to a joint model: answers agree with brute force, and are exact where they can be."""

import itertools
import math
from copy import deepcopy
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.model.density import Density
from nits.model.steps import Steps
from nits.tables.questions import cloud, likelihood
from nits.tables.questions.particles import effective, systematic
from nits.tables.questions.results import Estimate
from questions import (
    holds,
    misses,
    mixture,
    nearly_determined,
    question,
    random_model,
    shaken,
)

SEEN = 1 - 1 / 302 / 2
"""What is left by (28) for values that could have been seen in training, of 300 rows: a model's
answers are given that all values are such."""


@pytest.fixture(scope="module")
def model() -> NITSDensity:
    return random_model()


@pytest.fixture(scope="module")
def drawn(model: NITSDensity) -> Any:
    return model.sample(20_000, random_state=5)


@pytest.fixture(scope="module")
def plane() -> NITSDensity:
    """A model of two real columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 300)
    table = pandas.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 0.5, 300)})
    return small(max_steps=60).fit(table)


def test_probabilities_agree_with_rejection(model: NITSDensity, drawn: Any) -> None:
    found = misses(model, drawn, 10, seed=3)
    assert max(map(abs, found)) < 4
    assert np.mean(np.square(found)) < 2.5


def test_those_of_a_mixture_do(model: NITSDensity) -> None:
    several = mixture(model)
    found = misses(several, several.sample(8000, random_state=1), 5, seed=1)
    assert max(map(abs, found)) < 4


def test_those_of_another_order_do() -> None:
    model = random_model(order=["price", "city", "seen", "size", "rain", "member", "count"])
    found = misses(model, model.sample(8000, random_state=1), 5, seed=2)
    assert max(map(abs, found)) < 4


@pytest.mark.slow
def test_fifty_random_questions(model: NITSDensity) -> None:
    drawn = model.sample(400_000, random_state=6)
    found = misses(model, drawn, 50, seed=4)
    assert sum(abs(miss) <= 3 for miss in found) >= 48


def test_entropy_of_a_column_before_conditions(plane: NITSDensity) -> None:
    """Against the histogram of many draws."""
    answer = plane.given(y=(1.0, None))
    found = answer.entropy("x")
    drawn = answer.sample(4000, random_state=0)["x"]
    count, edges = np.histogram(drawn, 40)
    share = count[count > 0] / count.sum()
    expected = float(-(share * np.log(share)).sum() + np.log(edges[1] - edges[0]))
    assert abs(found.estimate - expected) < 4 * found.error + 0.05
    assert plane.given(x=0.5).entropy("x").estimate == -math.inf


def test_densities_given_an_estimate_are_not_called_exact(plane: NITSDensity) -> None:
    row = pandas.DataFrame({"x": [0.1], "y": [0.3]})
    found = plane.given(y=(0.0, None)).log_prob(row)
    assert np.isfinite(found.ess).all()
    assert "exact" not in repr(found)


def test_rows_meet_the_conditions_and_follow_the_law(model: NITSDensity, drawn: Any) -> None:
    source = np.random.default_rng(7)
    for _ in range(4):
        asked = question(drawn, source, 2)
        rows = model.given(asked.given).sample(1000, random_state=0)
        assert list(rows.columns) == list(drawn.columns)
        assert holds(rows, asked.given).all()
        share = model.given(asked.given).probability(asked.event).estimate
        error = math.sqrt(share * (1 - share) / 1000)
        assert abs(holds(rows, asked.event).mean() - share) < 4.5 * error + 1e-3


# Closed forms.


def box(model: NITSDensity, low: tuple[float, float], high: tuple[float, float]) -> float:
    """Returns the probability of a box of the plane by the midpoint rule."""
    n = 400
    x, y = (a + (b - a) * (np.arange(n) + 0.5) / n for a, b in zip(low, high, strict=True))
    grid = pandas.DataFrame({"x": np.repeat(x, n), "y": np.tile(y, n)})
    cell = (high[0] - low[0]) * (high[1] - low[1]) / n**2
    return float(np.exp(model.score_samples(grid)).sum() * cell)


def test_a_box_has_the_mass_of_its_density(plane: NITSDensity) -> None:
    found = plane.probability({"x": (-0.5, 1.0), "y": (0.0, 2.0)})
    wanted = box(plane, (-0.5, 0.0), (1.0, 2.0)) / SEEN**2
    assert found.estimate == pytest.approx(wanted, rel=1e-3)
    assert 0 < found.error < 1e-3


def test_a_leading_range_is_exact(plane: NITSDensity) -> None:
    found = plane.probability("-0.5 <= x < 1")
    assert found.error == 0
    assert found.ess == math.inf
    x = -0.5 + 1.5 * (np.arange(4000) + 0.5) / 4000
    shares = plane.score_samples(pandas.DataFrame({"x": x, "y": 0.0}), per_column=True)
    assert found.estimate == pytest.approx(np.exp(shares[:, 0]).mean() * 1.5 / SEEN, rel=2e-4)


def test_small_masses_have_digits(plane: NITSDensity) -> None:
    """Differences of distribution functions near one are taken in float64."""
    answer = plane.given(x=0.7)
    for low in (3.0, 3.1, 3.2):
        found = answer.probability({"y": (low, low + 0.001)})
        y = low + 0.001 * (np.arange(50) + 0.5) / 50
        shares = plane.score_samples(pandas.DataFrame({"x": 0.7, "y": y}), per_column=True)
        assert found.estimate < 1e-5
        assert found.estimate == pytest.approx(np.exp(shares[:, 1]).mean() * 1e-3 / SEEN, rel=2e-3)


def test_what_follows_given_leading_columns_is_exact(plane: NITSDensity) -> None:
    answer = plane.given(x=0.7)
    found = answer.probability({"y": (0, 1.5)})
    assert found.error == 0
    y = 1.5 * (np.arange(4000) + 0.5) / 4000
    shares = plane.score_samples(pandas.DataFrame({"x": 0.7, "y": y}), per_column=True)
    assert found.estimate == pytest.approx(np.exp(shares[:, 1]).mean() * 1.5 / SEEN, rel=2e-4)
    quantiles = answer.quantiles("y", [0.1, 0.9])
    assert quantiles.ess == math.inf
    assert answer.cdf("y", quantiles[1]).estimate == pytest.approx(0.9, abs=1e-3)


def test_bayes_rule_for_a_value_that_comes_later(plane: NITSDensity) -> None:
    """The density of x given y is that of both over its integral."""
    found = plane.given(y=1.0).probability({"x": (0, None)})
    x = np.linspace(-6, 6, 8001)
    joint = np.exp(plane.score_samples(pandas.DataFrame({"x": x, "y": 1.0})))
    assert abs(found.estimate - joint[x > 0].sum() / joint.sum()) < 4 * found.error + 2e-3


@pytest.fixture(scope="module")
def narrow() -> NITSDensity:
    return nearly_determined()


def test_an_event_before_given_values_is_a_share_of_draws(narrow: NITSDensity) -> None:
    """The errors of two densities of y and z do not cancel; draws lie inside or do not."""
    for event in ("x > 0.3", "x > 0 and between > 0"):
        found = narrow.given(y=1.0, z=0.0).probability(event)
        assert 0 < found.error < 0.3
        assert abs(found.estimate - 1) < 3 * found.error


def test_a_rare_event_before_a_given_value_keeps_its_digits(narrow: NITSDensity) -> None:
    found = narrow.given(y=1.0).probability({"x": (2.2, None)})
    assert 0 < found.error < 0.5 * found.estimate < 0.01


def test_draws_that_go_back_to_one_particle_count_as_one(narrow: NITSDensity) -> None:
    density = narrow.model_
    with torch.no_grad():
        free = cloud.walked(density, narrow.given().query, 0, drawing=True)
        told = cloud.walked(density, narrow.given(y=1.0, z=0.0).query, 0)
    assert free.lineages().tolist() == pytest.approx([4096])
    kept = {int(one) for walk in told.walks for one in walk.ancestor}
    assert 1 <= float(told.lineages()) <= len(kept)
    assert float(told.lineages()) < float(told.ess()) / 2


# Distributions of one column.


def test_quantiles_and_means_agree_with_draws(model: NITSDensity, drawn: Any) -> None:
    told = {"city": {"Lima", "Oslo"}, "count": (2, 12)}
    rows = drawn[
        drawn["city"].isin(["Lima", "Oslo"]) & (drawn["count"] >= 2) & (drawn["count"] < 12)
    ]
    answer = model.given(told)
    for name in ("size", "rain", "price", "count"):
        own = rows[name].dropna()
        levels = [0.2, 0.5, 0.8]
        at = answer.quantiles(name, levels)
        for level, value in zip(levels, at, strict=True):
            error = 4 * math.sqrt(level * (1 - level) / len(own)) + 0.005
            assert (own < value).mean() - error <= level <= (own <= value).mean() + error
        mean = answer.mean(name)
        assert abs(mean.estimate - own.mean()) < 5 * (own.std() / math.sqrt(len(own)) + mean.error)


def test_times_have_means_and_quantiles(model: NITSDensity, drawn: Any) -> None:
    answer = model.given(rain=(1, None))
    own = drawn["seen"][drawn["rain"] >= 1]
    error = own.std().total_seconds() / math.sqrt(len(own))
    for found, wanted in (
        (answer.mean("seen").estimate, own.mean()),
        (answer.quantiles("seen", 0.5)[0], own.median()),
    ):
        assert abs((pandas.Timestamp(found) - wanted).total_seconds()) < 6 * error
    early = answer.cdf("seen", "2024-01-05T12:00").estimate
    assert abs(early - (own <= pandas.Timestamp("2024-01-05T12:00")).mean()) < 0.03


def test_probabilities_of_categories(model: NITSDensity, drawn: Any) -> None:
    for told, rows in (
        ("rain > 2", drawn[drawn["rain"] > 2]),  # before the condition
        ("count < 5", drawn[drawn["count"] < 5]),  # after it
    ):
        shares = rows["city"].dropna().value_counts(normalize=True)
        found = model.given(told).proba("city")
        assert sum(found.values()) == pytest.approx(1)
        assert all(abs(found[city] - shares[city]) < 0.03 for city in shares.index)
        assert set(found.error) == set(found)
        assert model.given(told).mode("city") == shares.idxmax()
        p = np.array(list(found.values()))
        assert model.given(told).entropy("city").estimate == pytest.approx(-(p * np.log(p)).sum())


def test_the_entropy_of_repeated_values_scores_each_once(
    model: NITSDensity, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored, plain = [], likelihood.log_prob

    def counting(answer: Any, X: Any, columns: Any) -> Any:
        scored.append(len(X))
        return plain(answer, X, columns)

    monkeypatch.setattr(likelihood, "log_prob", counting)
    told = model.given("price > 2.5 and price < 3.5")  # 2.6 … 3.4
    found = told.entropy("price")
    assert scored == [9]
    share = told.sample(20_000, random_state=0)["price"].value_counts(normalize=True)
    assert abs(found.estimate + (share * np.log(share)).sum()) < 4 * found.error + 0.01


def test_the_entropy_of_a_density(plane: NITSDensity) -> None:
    y = np.linspace(-8, 20, 20_001)
    log_p = plane.score_samples(pandas.DataFrame({"x": 0.3, "y": y}), per_column=True)[:, 1]
    wanted = -(np.exp(log_p) * log_p).sum() * (y[1] - y[0])
    found = plane.given(x=0.3).entropy("y")
    assert found.estimate == pytest.approx(wanted, abs=0.05)
    assert plane.given(x=0.3).mode("y") == pytest.approx(y[np.argmax(log_p)], abs=0.3)


# Holes.


def test_holes_can_be_given_and_asked(model: NITSDensity, drawn: Any) -> None:
    rows = model.given(city=nits.missing, size=nits.missing).sample(50, random_state=0)
    assert rows["city"].isna().all()
    assert rows["size"].isna().all()
    found = model.given("city is not missing").probability("size is missing").estimate
    known = drawn[drawn["city"].notna()]
    assert abs(found - known["size"].isna().mean()) < 0.01


# Weights.


def test_the_effective_share() -> None:
    even, one = torch.zeros(2, 8), torch.full((8,), -torch.inf)
    one[3] = -700.0
    assert effective(even).tolist() == [1, 1]
    assert float(effective(one)) == pytest.approx(1 / 8)
    assert float(effective(torch.full((8,), -torch.inf))) == 0


def test_systematic_draws_follow_the_weights() -> None:
    weights = torch.tensor([0.1, 0.0, 0.5, 0.4], dtype=torch.float64)
    found = systematic(weights.log(), torch.Generator().manual_seed(0), 1000)
    assert torch.bincount(found, minlength=4).tolist() == pytest.approx([100, 0, 500, 400], abs=1)


def test_uneven_weights_are_told_and_resampled(plane: NITSDensity) -> None:
    narrow = plane.given(y=(1.0, 1.02))
    rows = narrow.sample(300, random_state=0)
    assert rows["y"].between(1, 1.02).all()
    found = narrow.probability({"x": (0.5, None)})
    share = found.estimate
    assert abs((rows["x"] >= 0.5).mean() - share) < 4 * math.sqrt(share * (1 - share) / 300)
    assert 10 < found.ess < 4000
    assert found.error > 0
    finer = narrow.using(particles=8192, seed=1).probability({"x": (0.5, None)})
    assert abs(found.estimate - finer.estimate) < 5 * math.hypot(found.error, finer.error)


def test_few_particles_are_told(plane: NITSDensity) -> None:
    with pytest.warns(UserWarning, match="only about .* particles stand behind these 400 rows"):
        rows = plane.given(y=5.5).sample(400, random_state=0)
    assert (rows["y"] == 5.5).all()


def test_the_same_question_has_the_same_answer(model: NITSDensity) -> None:
    answer = model.given(rain=(1, 5))
    assert answer.probability("price > 3") == answer.probability("price > 3")
    pandas.testing.assert_frame_equal(answer.sample(9, 3), answer.sample(9, 3))
    assert "rain >= 1 and < 5" in repr(answer)
    assert "effective sample size" in str(answer.probability("price > 3"))
    assert "effective sample size" in repr(answer.quantiles("price"))


def test_impossible_events_have_probability_zero(model: NITSDensity) -> None:
    answer = model.given(count=(3, 8))
    assert answer.probability("count > 9") == (0.0, 0.0, math.inf)
    assert model.given(count=4).probability("count > 9") == (0.0, 0.0, math.inf)
    assert model.given(count=4).probability("count < 9").estimate == pytest.approx(1)
    assert answer.probability("price is not missing").estimate == pytest.approx(1)


def test_every_row_of_a_mean_is_its_own(model: NITSDensity) -> None:
    """`sample` with conditions is the same as `given`."""
    a = model.sample(7, random_state=2, given={"city": "Oslo", "rain": (1, None)})
    b = model.given(city="Oslo", rain=(1, None)).sample(7, random_state=2)
    pandas.testing.assert_frame_equal(a, b)
    whole = model.sample(40, random_state=2, given={"city": "Oslo"}, complete=True)
    assert whole.notna().all().all()


def test_values_beyond_the_training_values(model: NITSDensity, drawn: Any) -> None:
    most = mixed(300)["price"].max()
    rows = model.given(price=(most + 0.05, None)).sample(100, random_state=0)
    assert (rows["price"] > most).all()
    found = model.probability({"price": (most + 0.05, None)})
    assert found.estimate == pytest.approx((drawn["price"] > most + 0.05).mean(), rel=0.3)


# A companion that proposes.


class Proposing:
    """A companion that reads nothing of what is given: a poor one, which must do no harm."""

    def __init__(self, density: Density) -> None:
        self.density = density

    @property
    def order(self) -> torch.Tensor:
        return self.density.order

    def steps(
        self,
        n: int,
        values: torch.Tensor,
        given: torch.Tensor,
        context: torch.Tensor | None = None,
    ) -> Steps:
        return self.density.steps(n, context)


def test_a_companion_proposes_and_the_model_decides(
    model: NITSDensity, monkeypatch: pytest.MonkeyPatch
) -> None:
    helped = deepcopy(model)
    helped.__dict__["companion_"] = Proposing(shaken(model, 9, 0.05).model_)
    told = "price == 3.0 and size is not missing and rain > 0"
    monkeypatch.setattr(cloud, "AHEAD", 0.0)  # it proposes though it does not help
    for event in ("size > 50", "city == 'Lima'", "rain < 4 and count > 3"):
        a, b = (each.given(told).probability(event) for each in (model, helped))
        assert a != b
        assert abs(a.estimate - b.estimate) < 5 * math.hypot(a.error, b.error)
    rows = helped.given(told).sample(50, random_state=0)
    assert (rows["price"] == 3.0).all()


def test_a_companion_that_knows_what_follows_is_not_undone() -> None:
    """Proposals that know y have small weights until y is met: they must not be resampled."""
    x, between, noise = np.random.default_rng(0).standard_normal((3, 1500))
    table = pandas.DataFrame({"x": x, "between": between, "y": x + 0.03 * noise})
    helped = nits.NITSDensity(
        answers="any", max_steps=300, hidden=32, order="table", random_state=0
    ).fit(table)
    alone, misled = deepcopy(helped), deepcopy(helped)
    alone.__dict__["companion_"] = None
    misled.__dict__["companion_"] = Proposing(shaken(helped, 9, 0.3).model_)
    for y in (-1.2, 0.4, 1.5):
        several = [each.given(y=y) for each in (helped, alone, misled)]
        sizes = [float(one.evidence()[1]) for one in several]
        assert sizes[0] > 5 * sizes[1]
        assert sizes[2] == sizes[1]  # a few particles have shown that it does not help
        a, b = (one.probability({"x": (None, y)}) for one in several[:2])
        assert abs(a.estimate - b.estimate) < 5 * math.hypot(a.error, b.error)


# Log-densities.


def test_log_densities_under_conditions(plane: NITSDensity) -> None:
    table = pandas.DataFrame({"x": [0.3, 0.3, -2.0], "y": [0.5, 1.5, 0.1]})
    shares = plane.score_samples(table, per_column=True)
    found = plane.given(x=0.3).log_prob(table[["y"]])
    np.testing.assert_allclose(found[:2], shares[:2, 1], rtol=1e-4)
    told = plane.given(x=(0, 1))
    mass = plane.probability({"x": (0, 1)}).estimate
    wanted = np.where(table["x"] >= 0, shares.sum(1) - math.log(mass), -np.inf)
    np.testing.assert_allclose(told.log_prob(table), wanted, rtol=1e-4)


def test_the_density_of_some_columns_leaves_the_rest_out(plane: NITSDensity) -> None:
    y = np.array([-1.0, 0.4, 2.0])
    x = np.linspace(-6, 6, 4001)
    grid = pandas.DataFrame({"x": np.tile(x, 3), "y": np.repeat(y, len(x))})
    joint = np.exp(plane.score_samples(grid)).reshape(3, -1).sum(1) * (x[1] - x[0])
    found = plane.given().marginal(["y"]).log_prob(pandas.DataFrame({"y": y}))
    assert (np.abs(np.exp(found) / joint - 1) < 5 * found.error + 5e-3).all()
    assert (found.error > 0).all()
    with pytest.raises(ValueError, match="the table must have the column 'y', but has x"):
        plane.given().marginal(["y"]).log_prob(pandas.DataFrame({"x": y}))


def test_other_columns_of_a_table_have_no_say_in_a_marginal(model: NITSDensity) -> None:
    rows = mixed(300).dropna()[:6]
    some = model.given(city="Oslo", member=True).marginal(["rain", "price"])
    assert rows["city"].nunique() > 1
    np.testing.assert_array_equal(some.log_prob(rows), some.log_prob(rows[["rain", "price"]]))
    own = model.given(city="Oslo").marginal(["rain", "city"])  # city is asked, so it counts
    assert (np.isfinite(own.log_prob(rows)) == (rows["city"] == "Oslo")).all()
    np.testing.assert_array_equal(
        own.log_prob(rows[["rain"]]), model.given(city="Oslo").marginal("rain").log_prob(rows)
    )


def test_a_marginal_names_columns_once(model: NITSDensity) -> None:
    answer = model.given()
    assert answer.marginal("rain").columns == answer.marginal(["rain"]).columns == ["rain"]
    assert answer.marginal(4).columns == ["rain"]
    with pytest.raises(ValueError, match="columns must name at least one, but there is none"):
        answer.marginal([])
    with pytest.raises(ValueError, match="columns must name each once, but have 'rain' twice"):
        answer.marginal(["rain", 4])


def test_pictures(model: NITSDensity) -> None:
    answer = model.given(city="Oslo")
    assert len(answer.plot("member").patches) == 2
    assert answer.plot("rain").get_xlabel() == "rain"
    assert answer.plot("seen").get_ylabel() == "density"


def test_times_under_a_picture_do_not_overlap(model: NITSDensity) -> None:
    ax = model.given().plot("seen")
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 3
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


# Some columns, the rest left out.


def test_the_joint_cdf_of_some_columns(model: NITSDensity) -> None:
    some = model.given(count=(1, None)).marginal(["rain", "price"])
    points = pandas.DataFrame({"rain": [0.0, 3.0, 8.0, 1e9], "price": [3.0, 2.0, 4.0, 1e9]})
    found = some.cdf(points)
    assert found.error.max() < 0.01
    for k, (rain, price) in enumerate(points.to_numpy()):
        event = f"rain <= {rain} and price <= {price}"
        one = model.given(count=(1, None)).probability(event)
        gap = abs(one.estimate - found.estimate[k])
        assert gap < 5 * math.hypot(one.error, found.error[k]) + 1e-6
    with pytest.raises(ValueError, match="the table must have the column 'price', but has rain"):
        some.cdf(points[["rain"]])
    with pytest.raises(ValueError, match="'city' has categories without an order"):
        model.given().marginal(["city"]).cdf(pandas.DataFrame({"city": ["Lima"]}))


def test_a_joint_cdf_is_of_known_values(model: NITSDensity) -> None:
    point = pandas.DataFrame({"size": [1e9]})
    assert model.given().marginal(["size"]).cdf(point).estimate == pytest.approx([1.0])
    with pytest.raises(ValueError, match="'size' must not be missing for this, but is given so"):
        model.given(size=nits.missing).marginal(["size"]).cdf(point)


def test_rows_of_some_columns(model: NITSDensity) -> None:
    answer = model.given(city="Oslo")
    rows = answer.marginal(["rain", "city"]).sample(6, random_state=1)
    pandas.testing.assert_frame_equal(rows, answer.sample(6, 1)[["rain", "city"]])
    assert repr(answer.marginal(["rain"])) == f"<rain of {answer!r}>"


def test_a_column_of_times_may_be_given_missing() -> None:
    table = mixed(80)
    table.loc[::5, "seen"] = pandas.NaT
    model = small(max_steps=2).fit(table)
    answer = model.given(seen=nits.missing)
    assert answer.sample(5, random_state=0)["seen"].isna().all()
    empty = table.assign(seen=np.nan)  # a column in which all values are missing has no type
    nowhere = table.assign(seen=pandas.NaT)
    np.testing.assert_array_equal(model.score_samples(empty), model.score_samples(nowhere))


@pytest.mark.parametrize("none", [None, math.nan])
def test_a_distribution_function_needs_a_value(model: NITSDensity, none: Any) -> None:
    message = "'rain' must be compared with a value, but with (None|nan); name one"
    for answer in (model.given(), model.given_rows(mixed(20)[["price"]])):
        with pytest.raises(ValueError, match=message):
            answer.cdf("rain", none)


def test_categories_without_an_order_have_no_quantiles(model: NITSDensity) -> None:
    told = "column 'city' has categories without an order, so it has no quantiles"
    with pytest.raises(ValueError, match=told):
        model.given().quantiles("city")
    with pytest.raises(ValueError, match=told):
        model.given_rows(mixed(20)[["price"]]).quantiles("city")


def test_an_estimate_shows_the_digits_that_its_error_leaves() -> None:
    assert str(Estimate(0.1955049, 0.00015, 3000.2)) == (
        "0.19550 ± 0.00015 (effective sample size 3000)"
    )
    assert str(Estimate(1467.36, 12.0, 99.0)) == "1467 ± 12 (effective sample size 99)"
    assert str(Estimate(0.25, 0.0, math.inf)) == "0.25 (exact)"
    assert (
        str(Estimate(3.598e-8, 6.8e-10, 99.0)) == "3.598e-08 ± 6.8e-10 (effective sample size 99)"
    )
    assert str(Estimate(4000.0, 7e-13, 9.0)) == "4000.00000000000 ± 7e-13 (effective sample size 9)"
    time = np.datetime64("2024-01-01")
    assert str(Estimate(time, 864_000.0, 9.0)) == "2024-01-01 ± 10 days (effective sample size 9)"
    assert str(Estimate(time, 20.0, 9.0)) == "2024-01-01 ± 20 seconds (effective sample size 9)"
