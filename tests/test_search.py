"""The order of the columns by short trials, and members of several orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import nits
from mixed_table import mixed, small
from nits.model.mixture import Mixture
from nits.tables import minutes, orders, preparing, search, stacking, told
from nits.tables.defaults import plan
from nits.tables.search import Search, Trial, chosen, rounds
from nits.tables.tasks import Task
from nits.training.progress import Reporter

EVERY = {orders.TABLE: [0, 1, 2], "greedy": [2, 0, 1], "reversed": [2, 1, 0]}


def labelled(rows: int = 300) -> Any:
    """A real column, and after it the label that decides in which narrow band it lies."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 8, rows)
    places = rng.permutation(8)[label] + 0.01 * rng.normal(size=rows)
    return pandas.DataFrame({"place": places, "label": np.array(list("abcdefgh"))[label]})


def trial(name: str, ahead: float, error: float = 0.1, steps: int = 400) -> Trial:
    return Trial(name, EVERY[name], steps, -3.0 + ahead, ahead, error)


@pytest.fixture(scope="module")
def several() -> Any:
    """Members in several orders, all with the same weight, and the table that they learned."""
    table = mixed(200)[["size", "city", "rain"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "weights", lambda scores, *_: np.full(scores.shape[1], 0.2))
        return small(order="several", members=6, max_steps=2).fit(table), table


def test_an_order_that_is_far_better_is_found() -> None:
    model = small(order="search", max_steps=30).fit(labelled())
    own, other = sorted(model.order_trials_, key=lambda one: one.order)
    assert other.ahead > 2 * other.error > 0
    assert (own.chosen, other.chosen) == (False, True)
    assert model.model_.order.tolist() == [1, 0]


def test_the_better_order_stays_where_it_is_that_of_the_table() -> None:
    model = small(order="search", max_steps=30).fit(labelled()[["label", "place"]])
    assert model.model_.order.tolist() == [0, 1]
    assert [one.chosen for one in model.order_trials_] == [True, False]


@pytest.mark.parametrize("ahead", [-0.5, 0.0, 0.1])
def test_ties_keep_the_order_of_the_table(ahead: float) -> None:
    trials = [trial("greedy", ahead), trial(orders.TABLE, 0.0, 0.0)]
    assert chosen(trials, EVERY, 1).orders == [[0, 1, 2]]


def test_only_the_longest_trials_decide() -> None:
    trials = [
        trial("greedy", 0.5),
        trial(orders.TABLE, 0.0, 0.0),
        trial("reversed", 0.9, steps=200),
    ]
    found = chosen(trials, EVERY, 1)
    assert found.orders == [[2, 0, 1]]
    assert [one.chosen for one in found.trials] == [True, False, False]
    assert chosen(trials, EVERY, 2).orders == [[2, 0, 1], [2, 1, 0]]
    level = [trial("greedy", 0.05), *trials[1:]]
    assert chosen(level, EVERY, 1).orders == [[0, 1, 2]]


def test_members_of_several_orders_have_none_that_is_far_behind() -> None:
    trials = [trial("greedy", 0.5), trial(orders.TABLE, 0.0, 0.0), trial("reversed", -0.3)]
    assert chosen(trials, EVERY, 3).orders == [[2, 0, 1], [0, 1, 2]]
    assert chosen(trials[1:], EVERY, 3).orders == [[0, 1, 2], [2, 1, 0]]


def test_without_trials_the_order_is_that_of_the_table() -> None:
    assert chosen([], EVERY, 1) == ([[0, 1, 2]], [])


def test_rounds_halve_the_orders_and_double_the_steps() -> None:
    assert rounds(9, 50_000) == [(9, 1612), (5, 3224), (3, 6448)]
    assert rounds(2, 10) == [(2, search.LEAST)]
    assert [count for count, _ in rounds(8, 5000)] == [8, 4, 3]
    for budget in (500, 2_000, 10_000):
        found = rounds(9, budget)
        assert sum(count * steps for count, steps in found) <= max(budget, 2 * search.LEAST)
        assert found[-1][0] in (2, search.LAST)


def test_orders_are_tried_by_default_unless_networks_or_steps_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = plan(300, 2)._replace(steps=30)
    monkeypatch.setattr(preparing, "plan", lambda *_: short)
    options: dict[str, Any] = {"hidden": 16, "random_state": 0, "outliers": False}
    model = nits.NITSDensity(**options).fit(labelled())
    assert model.order_ == [1, 0]
    assert len(model.order_trials_) == 2
    for named in ({"order": "table"}, {"members": 12}, {"max_steps": 4}):
        other = nits.NITSDensity(**options, **named)
        rows = nits.Rows(torch.zeros(300, 2))
        assert other.order == "table" or not search.by_default(other, rows, short)
    clocked = nits.NITSDensity(max_minutes=1.0, checkpoint="kept")
    assert not search.by_default(clocked, rows, short)
    assert search.by_default(nits.NITSDensity(max_minutes=1.0), rows, short)


def test_no_held_out_rows_no_trials() -> None:
    model = small(order="search", validation_fraction=0.0).fit(mixed(60))
    assert model.order_trials_ == []
    assert model.model_.order.tolist() == list(range(7))


def test_listed_columns_stay_first_and_the_rest_is_searched() -> None:
    table = labelled(100).assign(noise=lambda t: np.sin(t["place"] * 9))
    model = small(order=np.array(["place"]), max_steps=2).fit(table)
    assert model.model_.order[0] == 0
    assert len(model.order_trials_) == 2
    assert all(one.order[0] == 0 for one in model.order_trials_)


def test_a_search_is_seeded_and_saved(tmp_path: Path) -> None:
    options: dict[str, Any] = {"order": "search", "max_steps": 2}
    first, again = (small(**options).fit(labelled(100)) for _ in range(2))
    assert first.order_trials_ == again.order_trials_
    first.save(tmp_path / "model.nits")
    loaded = nits.load(tmp_path / "model.nits")
    assert loaded.order_trials_ == first.order_trials_
    assert loaded.model_.order.tolist() == first.model_.order.tolist()
    lines = told.orders(loaded.order_trials_, loaded.schema_.names)
    assert len(lines) == 2
    assert sum("taken" in line for line in lines) == 1
    assert all("nats in 2 steps" in line for line in lines)


def test_an_interrupted_search_has_nothing_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(task: Any, reporter: Reporter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "taught", stopped)
    with pytest.raises(KeyboardInterrupt):
        small(order="search").fit(mixed(60))


def test_trials_have_a_tenth_of_the_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Task] = []

    def scores(self: Search, tasks: list[Task]) -> np.ndarray:
        seen.extend(tasks)
        return np.zeros((len(tasks), len(self.held_out)))

    monkeypatch.setattr(Search, "_scores", scores)
    monkeypatch.setattr(search, "available", lambda: 1)
    small(order="search", max_steps=None, max_minutes=0.001, members=1).fit(labelled(100))
    assert sum(task.max_minutes or 0.0 for task in seen) == pytest.approx(0.0001)


def test_trials_leave_minutes_to_the_members() -> None:
    model = small(order="search", max_steps=None, max_minutes=0.1)
    model.schema_ = small(max_steps=1).fit(labelled(50)).schema_
    one, several = (plan(100, 3)._replace(members=count) for count in (1, 4))
    model.order_trials_ = []
    assert minutes.of_members(model, one) == 0.1
    # The rest is for outlier scores.
    assert minutes.of_members(model, several) == pytest.approx(0.09)
    model.order_trials_ = [trial("greedy", 0.0)]
    assert minutes.of_members(model, one) == pytest.approx(0.09)
    assert minutes.of_members(model, several) == pytest.approx(0.08)


def test_members_have_the_minutes_that_outlier_scores_cannot_use() -> None:
    model = small(order="search", max_steps=None, max_minutes=100.0)
    model.schema_ = small(max_steps=1).fit(labelled(50)).schema_
    model.order_trials_ = []
    several = plan(100, 3)
    beside = minutes.of_outliers(model, several)
    assert beside is not None
    assert 0.0 < beside < 1.0
    assert minutes.of_members(model, several) == pytest.approx(100.0 - beside)


def test_members_of_several_orders_mix_exactly(several: Any) -> None:
    model, table = several
    assert isinstance(model.model_, Mixture)
    assert not model.model_.has_one_order
    coded = model.schema_.encode(nits.tables.zones.read(table))
    with torch.no_grad():
        joint = model.model_.log_prob(torch.from_numpy(coded.numbers)).double().numpy()
    assert not coded.fixed.any()
    np.testing.assert_allclose(model.score_samples(table), joint + coded.log_prob.sum(1), rtol=1e-5)


def test_members_of_several_orders_are_saved(several: Any, tmp_path: Path) -> None:
    model, table = several
    model.save(tmp_path / "model.nits")
    loaded = nits.load(tmp_path / "model.nits")
    of = [member.order.tolist() for member in model.model_.members]
    assert [member.order.tolist() for member in loaded.model_.members] == of
    np.testing.assert_array_equal(loaded.score_samples(table), model.score_samples(table))


def test_members_of_several_orders_draw_like_the_table(several: Any) -> None:
    model, table = several
    drawn = model.sample(2000, random_state=0)
    assert list(drawn.columns) == list(table.columns)
    assert abs(drawn["size"].mean() - table["size"].mean()) < 2
    assert abs((drawn["rain"] == 0).mean() - (table["rain"] == 0).mean()) < 0.05
    assert abs(drawn["city"].isna().mean() - table["city"].isna().mean()) < 0.05
    assert not model.sample(200, random_state=0, complete=True)["city"].isna().any()
    again = model.sample(2000, random_state=0)
    pandas.testing.assert_frame_equal(drawn, again)


def test_what_needs_one_order_is_refused(several: Any) -> None:
    model, table = several
    message = "must model the columns in the same order for this, but their orders differ; fit with"
    with pytest.raises(ValueError, match=message):
        model.score_samples(table, per_column=True)


def test_columns_can_be_given_to_members_of_several_orders(several: Any) -> None:
    drawn = several[0].sample(30, given={"size": 50.0}, random_state=0)
    assert (drawn["size"] == 50.0).all()
    assert drawn.drop(columns="size").nunique().max() > 1
