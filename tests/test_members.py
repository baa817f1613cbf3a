"""Several networks as one model: folds, the mixture's scores, samples and conditionals, files."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest
import scipy.special
import scipy.stats
import torch

import nits
from mixed_table import mixed, small
from nits import Mixture, NITSDensity
from nits.model.density import Density
from nits.tables import (
    calibration,
    members,
    networks,
    preparing,
    sharing,
    stacking,
    tasks,
    teaching,
    told,
)
from nits.tables.defaults import FEW_STYLES, MANY_STYLES, affordable, plan
from nits.tables.stacking import Numbers
from nits.training.likelihood import start_from_data
from nits.training.progress import Reporter
from nits.training.recipe import Recipe
from nits.training.rows import Rows


@pytest.fixture(scope="module")
def table() -> Any:
    return mixed(240)


class Trained(NamedTuple):
    """A model, and what its members were taught, each with the density that came of it."""

    model: NITSDensity
    seen: list[tuple[tasks.Task, Density]]


def watched(patch: pytest.MonkeyPatch) -> list[tuple[tasks.Task, Density]]:
    """Returns a list that what is taught from now on, in this process, is added to."""
    seen: list[tuple[tasks.Task, Density]] = []
    taught = teaching.taught_together

    def watching(team: sharing.Team, reporter: Reporter) -> list[tasks.Learned]:
        found = taught(team, reporter)
        seen.extend((task, one.density) for task, one in zip(team, found, strict=True))
        seen.sort(key=lambda pair: (pair[0].recipe is None, pair[0].seed))
        return found

    patch.setattr(members, "taught_together", watching)
    return seen


def fit(
    table: Any,
    weights: list[float] | None,
    weight: Any = None,
    curves: bool = False,
    **options: Any,
) -> Trained:
    """Fits a small model; its sorts have these weights instead of those by held-out rows.

    curves: Whether it is made narrower or broader, whatever that is worth.
    """
    with pytest.MonkeyPatch.context() as patch:
        seen = watched(patch)
        patch.setattr(calibration, "WORTH", -np.inf if curves else np.inf)
        if weights is not None:
            patch.setattr(stacking, "weights", lambda *_: np.array(weights))
        return Trained(small(**options).fit(table, sample_weight=weight), seen)


SORTS = [*(style.name for style in FEW_STYLES), *networks.SIMPLE]
WEIGHTS = [0.4, 0.0, 0.3, 0.2, 0.1, 0.0]


@pytest.fixture(scope="module")
def trained(table: Any) -> Trained:
    """Three styles on two folds, of which one style has no weight."""
    return fit(table, WEIGHTS, members=6, max_steps=8)


@pytest.fixture(scope="module")
def fitted(trained: Trained) -> NITSDensity:
    return trained.model


def scored(model: NITSDensity, density: Density, table: Any) -> Numbers:
    """Returns what one member says of rows, in the table's units."""
    one = NITSDensity.__new__(NITSDensity)
    one.__dict__ = {**model.__dict__, "model_": density}
    return one.score_samples(table)


def held_out_scores(trained: Trained, table: Any, folds: list[int]) -> tuple[Numbers, Any]:
    """Returns what each sort says of the rows that it held out, and which these are."""
    parts, rows = [], []
    for fold in folds:
        here = {task.sort: (task, density) for task, density in trained.seen if task.fold == fold}
        kept = here[SORTS[0]][0].held_out.numpy()
        columns = [scored(trained.model, here[sort][1], table.iloc[kept]) for sort in SORTS]
        parts.append(np.stack(columns, 1))
        rows.append(kept)
    return np.concatenate(parts), np.concatenate(rows)


@pytest.mark.parametrize(("number", "fraction", "each"), [(4, 0.2, 20), (20, 0.2, 5), (1, 0.2, 20)])
def test_no_row_is_in_two_folds_and_all_are_learned_from(
    number: int, fraction: float, each: int
) -> None:
    parts = tasks.folds(100, number, fraction, 0)
    held_out = torch.cat([part[1] for part in parts]).tolist()
    assert len(held_out) == len(set(held_out)) == number * each
    for fitted, kept in parts:
        assert sorted([*fitted.tolist(), *kept.tolist()]) == list(range(100))
    if number > 1:
        assert set(torch.cat([part[0] for part in parts]).tolist()) == set(range(100))
    again, other = (tasks.folds(100, number, fraction, seed) for seed in (0, 1))
    assert all(torch.equal(a, b) for a, b in zip(parts[0], again[0], strict=True))
    assert not torch.equal(parts[0][1], other[0][1])


@pytest.mark.parametrize(("count", "number", "fraction"), [(10, 20, 0.1), (100, 3, 0), (100, 1, 0)])
def test_too_few_rows_are_all_learned_from(count: int, number: int, fraction: float) -> None:
    parts = tasks.folds(count, number, fraction, 0)
    assert len(parts) == number
    assert all(len(fitted) == count and not len(kept) for fitted, kept in parts)


def test_networks_of_all_styles_share_a_fold(trained: Trained, table: Any) -> None:
    tasks = [task for task, _ in trained.seen]
    assert [(task.sort, task.fold) for task in tasks if task.recipe] == [
        (style.name, fold) for fold in (0, 1) for style in FEW_STYLES
    ]
    folds = [next(task.held_out for task in tasks if task.fold == fold) for fold in (0, 1)]
    assert not set(folds[0].tolist()) & set(folds[1].tolist())
    for task in tasks:
        assert torch.equal(task.held_out, folds[task.fold])
        assert isinstance(task.fitted, torch.Tensor)
        assert sorted([*task.fitted.tolist(), *task.held_out.tolist()]) == list(range(len(table)))
    assert len({task.seed for task in tasks if task.recipe}) == 6


@pytest.mark.parametrize(("count", "folds"), [(1, []), (2, [0]), (3, [0]), (4, [0, 1])])
def test_simple_members_are_only_beside_several_networks(
    table: Any, count: int, folds: list[int]
) -> None:
    seen = fit(table, None, members=count, max_steps=1).seen
    assert sum(task.recipe is not None for task, _ in seen) == count
    assert [(task.sort, task.fold) for task, _ in seen if task.recipe is None] == [
        (sort, fold) for fold in folds for sort in networks.SIMPLE
    ]


def test_the_density_is_the_weighted_mixture_of_the_members(
    fitted: NITSDensity, table: Any
) -> None:
    model = fitted.model_
    assert isinstance(model, Mixture)
    weights = [member["weight"] for member in fitted.members_]
    np.testing.assert_allclose(weights, [0.2, 0.15, 0.2, 0.15, 0.2, 0.1])
    np.testing.assert_allclose(model.log_weights.exp().numpy(), weights, rtol=1e-6)
    parts = np.array([scored(fitted, member, table) for member in model.members])
    assert np.std(parts, 0).max() > 1e-3
    expected = scipy.special.logsumexp(parts, axis=0, b=np.array(weights)[:, None])
    np.testing.assert_allclose(fitted.score_samples(table), expected, atol=2e-4)
    shares = fitted.score_samples(table, per_column=True)
    np.testing.assert_allclose(shares.sum(1), expected, atol=2e-4)


def test_a_sort_of_zero_weight_is_not_in_the_mixture(trained: Trained) -> None:
    """Networks are those that were trained on folds; a simple member is one for all rows."""
    model: Any = trained.model.model_
    kept = [density for task, density in trained.seen if task.recipe and task.sort != SORTS[1]]
    assert [member["sort"] for member in trained.model.members_] == [
        *[SORTS[0], SORTS[2]] * 2,
        networks.LINEAR,
        networks.INDEPENDENT,
    ]
    assert len(model.members) == 6
    assert all(a is b for a, b in zip(model.members[:4], kept, strict=True))
    for member, sort in zip(model.members[4:], SORTS[3:5], strict=True):
        alike = networks.simple(trained.model.sketch_, sort)
        start_from_data(alike, trained.seen[0][0].rows)
        state = alike.state_dict()
        assert all(torch.equal(t, state[name]) for name, t in member.state_dict().items())


def test_one_member_alone_is_no_mixture(table: Any) -> None:
    found = fit(table, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0], members=3, max_steps=1).model
    assert not isinstance(found.model_, Mixture)
    (about,) = found.members_
    assert (about["sort"], about["weight"]) == (networks.INDEPENDENT, 1)
    assert len(found.history_["others"]) == 2


def test_the_figure_is_that_of_held_out_rows_under_the_stacked_mixture(
    trained: Trained, table: Any
) -> None:
    scores, _ = held_out_scores(trained, table, [0, 1])
    said = scipy.special.logsumexp(scores, axis=1, b=WEIGHTS)
    assert len(said) == 48
    assert trained.model.held_out_ == pytest.approx(said.mean(), abs=1e-3)
    assert trained.model.held_out_error_ == pytest.approx(scipy.stats.sem(said, ddof=0), rel=1e-3)


def test_the_figure_is_of_folds_that_all_sorts_held_out(table: Any) -> None:
    """Of five networks two are on the second fold, where one of three styles is missing."""
    found = fit(table, WEIGHTS, members=5, max_steps=1)
    scores, _ = held_out_scores(found, table, [0])
    said = scipy.special.logsumexp(scores, axis=1, b=WEIGHTS)
    assert found.model.held_out_ == pytest.approx(said.mean(), abs=1e-3)
    weights = [member["weight"] for member in found.model.members_]
    np.testing.assert_allclose(weights, [0.2, 0.3, 0.2, 0.2, 0.1])


def test_weights_are_the_best_for_held_out_rows(table: Any) -> None:
    weight = np.random.default_rng(0).uniform(0.5, 4.0, len(table))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "WORTH", -np.inf)  # so that all stay
        patch.setattr(stacking, "SIMPLE_WORTH", -np.inf)
        found = fit(table, None, weight, members=6, max_steps=8)
        scores, rows = held_out_scores(found, table, [0, 1])
        expected = stacking.weights(scores, weight[rows])
    assert (expected > 0.01).sum() > 1
    assert np.abs(expected - stacking._climbed(scores, np.ones(len(rows)))[0]).max() > 0.01
    about = found.model.members_
    sums = [sum(m["weight"] for m in about if m["sort"] == sort) for sort in SORTS]
    np.testing.assert_allclose(sums, expected, atol=1e-3)
    said = scipy.special.logsumexp(scores, axis=1, b=expected)
    share = weight[rows] / weight[rows].sum()
    mean = share @ said
    assert found.model.held_out_ == pytest.approx(mean, abs=1e-3)
    error = np.sqrt(np.sum(share**2 * (said - mean) ** 2))
    assert found.model.held_out_error_ == pytest.approx(error, rel=1e-3)


def test_without_held_out_rows_there_is_no_figure(table: Any) -> None:
    found = fit(table, None, members=6, max_steps=1, validation_fraction=0.0).model
    assert found.held_out_ is None
    assert found.held_out_error_ is None
    np.testing.assert_allclose([m["weight"] for m in found.members_], [1 / 12] * 6 + [1 / 6] * 3)


def test_samples_given_columns_and_files(fitted: NITSDensity, table: Any, tmp_path: Path) -> None:
    drawn = fitted.sample(400, random_state=0)
    assert np.isfinite(fitted.score_samples(drawn)).all()
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    given = fitted.sample(20, random_state=0, given={"size": 40.1})
    assert (given["size"] == 40.1).all()
    assert fitted.sample(50, random_state=0, complete=True).notna().all().all()
    fitted.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert np.array_equal(again.score_samples(table), fitted.score_samples(table))
    pandas.testing.assert_frame_equal(again.sample(30, random_state=1), fitted.sample(30, 1))


def test_conditionals_are_those_of_the_mixture(table: Any) -> None:
    table = table[["city", "size"]].dropna()
    weights = [0.3, 0.3, 0.2, 0.2]
    model = fit(table, weights, context=["city"], members=2, max_steps=8).model
    assert isinstance(model.model_, Mixture)
    quantiles = model.predict_quantiles(table[:5], [0.1, 0.5, 0.9])
    below = [model.cdf(table[:5].assign(size=q)) for q in quantiles.T]
    np.testing.assert_allclose(
        np.array(below), np.array([[0.1], [0.5], [0.9]]) * np.ones(5), atol=0.02
    )
    levels = (np.arange(2000) + 0.5) / 2000
    mean = model.predict_quantiles(table[:5], levels).mean(1)
    np.testing.assert_allclose(model.predict_mean(table[:5]), mean, rtol=0.01)


def test_filled_rows_are_those_of_the_mixture() -> None:
    """Rows from one member each have the mixture's distribution: its transform is uniform."""
    from registry import MODELS

    model = MODELS["mixture"]()
    u = torch.rand(4000, model.columns, generator=torch.Generator().manual_seed(0))
    none = torch.full_like(u, torch.nan)
    with torch.no_grad():
        rows = model.filled(u, none)
        back = model.to_uniform(rows)
        again = model.filled(u, none)
    for column in back.t().numpy():
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-4
    assert torch.equal(rows, again)


@pytest.mark.parametrize("sets", [[1], [2], [0, 2], [1, 3, 4], [3, 4]])
def test_rows_with_set_values_anywhere_are_those_of_the_mixture(sets: list[int]) -> None:
    """Set values stay, and columns before and after them have the mixture's distribution."""
    from registry import MODELS

    model = MODELS["mixture-context"]()
    u = torch.rand(4000, model.columns, generator=torch.Generator().manual_seed(1))
    context = torch.randn(4000, 2, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        ends = model.from_uniform(torch.full((4000, model.columns), 0.97), context)
        given = torch.full_like(u, torch.nan)
        given[1000:, sets] = ends[1000:, sets]
        given[3000:, sets[-1]] = torch.nan
        rows = model.filled(u, given, context)
        assert torch.equal(rows[~given.isnan()], given[~given.isnan()])
        back = model.to_uniform(rows, context)
    for column, drawn in zip(back.t(), given.isnan().t(), strict=True):
        assert scipy.stats.kstest(column[drawn].numpy(), "uniform").pvalue > 1e-4
    free = back[1000:3000][:, [i for i in range(model.columns) if i not in sets]].numpy()
    assert np.abs(np.corrcoef(free.T) - np.eye(free.shape[1])).max() < 0.1


def test_processes_are_started_if_there_is_work_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "available", lambda: 3)
    rows = nits.Rows(torch.zeros(100, 2))
    index, recipe = torch.arange(0), Recipe()
    task = tasks.Task(nits.NITS.mlp(2), "networks", {}, 0, rows, index, index, recipe, 10, None, 0)
    assert sharing.workers([(task,)] * 4) == 1
    long = task._replace(max_steps=10_000)
    assert sharing.workers([(long,)] * 9) == 3
    assert sharing.workers([(long,)] * 4) == 4  # in three, two cores would wait for the last one
    assert sharing.workers([(long,)] * 7) == 3
    assert sharing.workers([(long,)] * 2) == 2
    assert sharing.workers([(task._replace(max_steps=None, max_minutes=1.0),)] * 2) == 2
    assert sharing.workers([(task._replace(max_steps=None, max_minutes=0.01),)] * 2) == 1
    assert sharing.workers([(long._replace(recipe=None),)] * 4) == 1
    assert sharing.workers([(task,)] * 3, later=60.0) == 3


def test_members_one_after_another_share_the_minutes(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "workers", lambda teams: 1)
    monkeypatch.setattr(sharing, "AT_ONCE", 1)
    seen = watched(monkeypatch)
    small(members=2, max_steps=1, max_minutes=3.0, outliers=False).fit(table)
    assert [task.max_minutes for task, _ in seen if task.recipe] == [1.5, 1.5]


def test_members_that_learn_together_have_all_of_the_minutes(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "cores", lambda *_: 1)
    seen = watched(monkeypatch)
    small(members=2, max_steps=1, max_minutes=3.0, outliers=False).fit(table)
    assert [task.max_minutes for task, _ in seen if task.recipe] == [3.0, 3.0]


def test_teams_are_as_many_as_run_at_a_time() -> None:
    rows, index = nits.Rows(torch.zeros(100, 2)), torch.arange(5)
    other, recipe = torch.arange(4), Recipe(batch_size=32)
    nets = [nits.NITS.mlp(2, hidden=8, blocks=1) for _ in range(6)]
    same = [tasks.Task(n, "", {}, 0, rows, index, index, recipe, 9, None, 0) for n in nets]
    assert [len(team) for team in sharing.teams(same, 1)] == [6]
    assert [len(team) for team in sharing.teams(same, 2)] == [3, 3]
    assert [len(team) for team in sharing.teams(same, 4)] == [2, 2, 1, 1]
    assert [len(team) for team in sharing.teams(same, 9)] == [1] * 6
    wider = nits.NITS.mlp(2, hidden=9, blocks=1)
    for change in (
        {"held_out": other},
        {"density": wider},
        {"recipe": Recipe()},
        {"max_steps": 8},
    ):
        odd = [*same[:2], same[2]._replace(**change)]
        assert [len(team) for team in sharing.teams(odd, 1)] == [2, 1]
    simple = [task._replace(recipe=None) for task in same]
    assert [len(team) for team in sharing.teams(simple, 1)] == [1] * 6


def interrupted_at(patch: pytest.MonkeyPatch, begun: int) -> None:
    """Has an interrupt come when so many members, one by one, have been taught."""
    patch.setattr(sharing, "AT_ONCE", 1)
    left, taught = [begun], teaching.taught_together

    def until(team: sharing.Team, reporter: Reporter) -> list[tasks.Learned]:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return taught(team, reporter)

    patch.setattr(members, "taught_together", until)


def test_an_interrupt_before_any_member_has_begun_is_one(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        small(members=2, max_steps=8).fit(table)


def test_an_interrupt_leaves_the_members_that_are_done(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, 4)
    monkeypatch.setattr(stacking, "weights", lambda *_: np.array([0.5, 0.25, 0.25]))
    found = small(members=6, max_steps=1).fit(table)
    assert [(m["sort"], m["weight"]) for m in found.members_] == [
        (SORTS[0], 0.25),
        (SORTS[1], 0.25),
        (SORTS[2], 0.25),
        (SORTS[0], 0.25),
    ]
    assert np.isfinite(found.score_samples(table)).all()
    assert found.held_out_ is not None


def test_members_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="members must be"):
        NITSDensity(members=0).fit(np.random.default_rng(0).normal(size=(20, 2)))


def test_users_are_told_the_weight_of_each_sort() -> None:
    tried = [
        {"sort": "networks", "weight": 0.25, "held_out": -2.5},
        {"sort": "straight lines", "weight": 0.75, "held_out": None},
    ]
    assert told.sorts(tried) == [
        "  straight lines   75%",
        "  networks         25%  -2.5000 nats alone",
    ]
    assert told.figure(-1.25, 0.5) == "-1.2500 ± 0.5000"
    assert told.figure(-1.25, None) == "-1.2500"


def test_the_sorts_that_are_kept_learn_from_further_folds(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_the_first(scores: Numbers, *_: Any) -> Numbers:
        first: Numbers = np.eye(scores.shape[1])[0]
        return first

    monkeypatch.setattr(stacking, "weights", only_the_first)
    seen = watched(monkeypatch)
    model = NITSDensity(members=9, max_steps=2, random_state=0).fit(table)
    kept = FEW_STYLES[0].name
    trained = [task for task, _ in seen if task.recipe is not None]
    assert len(trained) == 9
    assert sorted(task.fold for task in trained if task.sort == kept) == [0, 1, 2, 2, 2]
    assert len({task.seed for task in trained}) == 9
    by_fold = {task.fold: task.held_out for task in trained if task.sort == kept}
    held_out = torch.cat(list(by_fold.values()))
    assert len(held_out.unique()) == len(held_out)
    assert [m["sort"] for m in model.members_] == [kept] * 5
    np.testing.assert_allclose([m["weight"] for m in model.members_], 0.2)
    assert [s["weight"] for s in model.sorts_] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert all(s["held_out"] is not None for s in model.sorts_)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [((), 0), ((1000, 1000, 1000), 0), ((500, 400, 300), 4), ((100, 100, 100), 9)],
)
def test_networks_that_stop_early_leave_steps_to_others(
    spent: tuple[int, ...], expected: int
) -> None:
    """There is time for 3,000 steps, which three networks are given, though twelve are wanted."""
    model = NITSDensity(max_steps=1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    short = affordable(plan(6_000, 2)._replace(steps=1000), 3000)
    assert (short.members, short.wanted, short.steps) == (3, 12, 1000)
    course = tasks.Course.of(model, Rows(torch.zeros(6_000, 2)), short, 0)
    first = course.first()
    every = [task.sort for task in first if task.recipe is not None]
    later = [task for task in course.second(every, spent) if task.recipe is not None]
    assert (len(every), len(later)) == (3, expected)
    assert len({task.seed for task in [*first, *later] if task.recipe is not None}) == 3 + expected
    assert [task.fold for task in later] == [1 + k // 3 for k in range(expected)]


def test_networks_that_there_was_no_time_for_leave_their_folds_alone() -> None:
    """Of six networks on two folds there was time for two; the others come on further folds."""
    model = NITSDensity(max_steps=1).fit(np.random.default_rng(0).normal(size=(100, 2)))
    short = plan(2_000, 2)._replace(members=2, fitting=20_000.0)
    course = tasks.Course.of(model, Rows(torch.zeros(2_000, 2)), short, 0)
    assert course.tried == 2
    first = [task for task in course.first() if task.recipe is not None]
    every = [task.sort for task in first]
    later = [task for task in course.second(every, [100, 100]) if task.recipe is not None]
    assert (len(first), len(later)) == (2, short.wanted - 2 * 2)
    assert [task.fold for task in later] == [2 + k // 2 for k in range(len(later))]


def test_networks_of_one_style_learn_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    one = plan(300, 2)._replace(members=3, wanted=3, styles=MANY_STYLES)
    rounds = []

    def run(every: list[tasks.Task], *_: Any) -> Any:
        rounds.append([task.fold for task in every if task.recipe is not None])
        raise KeyboardInterrupt

    monkeypatch.setattr(members, "_run", run)
    monkeypatch.setattr(preparing, "plan", lambda *_: one)
    with pytest.raises(KeyboardInterrupt):
        nits.NITSDensity(members=3).fit(np.random.default_rng(0).normal(size=(300, 2)))
    assert rounds == [[0, 1, 2]]
