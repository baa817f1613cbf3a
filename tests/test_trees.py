"""Boosted trees as plain numbers, and networks that read what they guess."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor

import nits
from nits.cli.main import main
from nits.model import side_by_side
from nits.tables import members, sharing, stacking, tasks, teaching, trees
from nits.tables.guessing import Guessed
from nits.tables.trees import Trees
from nits.training.progress import Reporter


def stairs(rows: int, seed: int = 0) -> pandas.DataFrame:
    """Returns a target that steps with an interaction of two columns, a class, and a hole."""
    source = np.random.default_rng(seed)
    x = pandas.DataFrame(source.uniform(-1, 1, (rows, 3)), columns=["a", "b", "c"])
    x["d"] = source.choice(["u", "v", "w"], rows)
    level = 5.0 * (np.floor(3 * x["a"]) % 2 + np.floor(2 * x["b"]) % 2) + 2.0 * (x["d"] == "v")
    x["y"] = level + source.normal(0, 0.2, rows)
    x["k"] = np.where(x["c"] > 0, "yes", "no")
    x.loc[::17, "a"] = np.nan
    return x


def boosted(x: Any, y: Any, **settings: Any) -> Any:
    return HistGradientBoostingRegressor(random_state=0, max_iter=20, **settings).fit(x, y)


def test_numbers_say_what_the_trees_say() -> None:
    source = np.random.default_rng(0)
    x = source.normal(size=(500, 4)).astype(np.float32).astype(np.float64)
    y = np.stack([x[:, 0] * x[:, 1], np.floor(x[:, 2])], 1)
    models = [[boosted(x, y[:, k]), boosted(x[:300], y[:300, k])] for k in range(2)]
    new = source.normal(size=(400, 4)).astype(np.float32)
    expected = [np.mean([m.predict(new.astype(np.float64)) for m in pair], 0) for pair in models]
    found = Trees.of(models)(torch.from_numpy(new))
    np.testing.assert_allclose(found.numpy(), np.stack(expected, 1), atol=1e-5)
    assert Trees.of(models)(torch.empty(0, 4)).shape == (0, 2)


def test_rows_are_followed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    found, read = Trees.of([[boosted(x, x[:, 0])]]), torch.from_numpy(x.astype(np.float32))
    whole = found(read)
    monkeypatch.setattr(trees, "VISITED_AT_ONCE", 50)
    assert torch.equal(found(read), whole)


def test_guesses_of_rows_come_from_trees_that_have_not_seen_them() -> None:
    source = np.random.default_rng(0)
    x, noise = source.normal(size=(600, 5)), source.normal(size=(600, 1))
    found, guesses = trees.grown(x, noise, None, 0)
    seen = found(torch.from_numpy(x.astype(np.float32))).numpy()
    assert abs(np.corrcoef(guesses[:, 0], noise[:, 0])[0, 1]) < 0.15
    assert np.corrcoef(seen[:, 0], noise[:, 0])[0, 1] > 0.5


def test_missing_targets_are_left_out_and_weights_count() -> None:
    source = np.random.default_rng(0)
    x = source.uniform(size=(400, 1))
    y = np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
    y[::5] = np.nan
    weight = np.where(y[:, 0] > 0, 9.0, 1.0)
    assert np.isfinite(trees.grown(x, y, None, 0)[1]).all()
    assert trees.grown(x, y, weight, 0)[1].mean() == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    ("name", "number"),
    [("feature", 4), ("left", 0), ("right", 10**6), ("roots", -1), ("output", 1)],
)
def test_trees_that_lead_nowhere_are_refused(name: str, number: int) -> None:
    x = np.random.default_rng(0).normal(size=(200, 4))
    found = Trees.of([[boosted(x, x[:, 0])]])
    found.refuse_malformed(4)
    getattr(found, name)[1] = number
    with pytest.raises(ValueError, match="lead nowhere"):
        found.refuse_malformed(4)


def test_a_model_with_trees_is_saved_and_asked_as_any_other(tmp_path: Path) -> None:
    table, new = stairs(400), stairs(200, 1)
    model = nits.NITSDensity(
        context=["a", "b", "c", "d"], trees=True, max_steps=150, random_state=0
    ).fit(table)
    reading = model.context_reading_
    assert isinstance(reading, Guessed)
    assert len(reading.guesses.heads) == 2  # y, and whether k is "yes"
    scores = model.score_samples(new)
    model.save(tmp_path / "m.nits")
    loaded = nits.load(tmp_path / "m.nits")
    np.testing.assert_array_equal(loaded.score_samples(new), scores)
    pandas.testing.assert_frame_equal(
        loaded.sample(2, random_state=0, given=new[["a", "b", "c", "d"]]),
        model.sample(2, random_state=0, given=new[["a", "b", "c", "d"]]),
    )
    one = new.iloc[1]
    told = loaded.given(a=one["a"], b=one["b"], c=one["c"], d=one["d"])
    assert told.quantiles("y", [0.001, 0.999]).ravel()[0] < one["y"]


def test_trees_help_where_a_target_has_steps() -> None:
    table, new = stairs(1500).drop(columns="k"), stairs(600, 1).drop(columns="k")
    same: dict[str, Any] = {"context": ["a", "b", "c", "d"], "max_steps": 150, "random_state": 0}
    without, with_trees = (
        nits.NITSDensity(trees=trees, **same).fit(table).score(new) for trees in (False, True)
    )
    assert with_trees > without + 0.08


def test_there_are_trees_only_if_they_are_wanted_and_something_is_given() -> None:
    table = stairs(60)[["a", "y"]]
    model = nits.NITSDensity(context=["a"], members=2, max_steps=2).fit(table)
    assert not isinstance(model.context_reading_, Guessed)
    few = nits.NITSDensity(context=["a"], trees=True, max_steps=2).fit(table[:40])
    assert not isinstance(few.context_reading_, Guessed)


def test_by_default_networks_with_trees_compete_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all networks hear the guesses, and each that has a weight is kept in a file."""
    monkeypatch.setattr(stacking, "weights", lambda scores, *_: np.full(scores.shape[1], 1 / 7))
    seen: list[tasks.Task] = []
    taught = teaching.taught_together

    def watching(team: sharing.Team, reporter: Reporter) -> list[tasks.Learned]:
        seen.extend(task._replace(max_steps=2) for task in team)
        return taught(tuple(task._replace(max_steps=2) for task in team), reporter)

    monkeypatch.setattr(members, "taught_together", watching)
    monkeypatch.setattr(sharing, "cores", lambda *_: 1)
    table, new = stairs(120), stairs(30, 1)
    model = nits.NITSDensity(context=["a", "b", "c", "d"], random_state=0).fit(table)
    reading = model.context_reading_
    assert isinstance(reading, Guessed)
    heard = {task.sort: side_by_side.network(task.density) for task in seen if task.recipe}
    widths = {sort: net.context for sort, net in heard.items() if net is not None}
    more = sum(head.inputs for head in reading.guesses.heads)
    assert widths["guided networks with trees"] - widths["guided networks"] == more == 18
    assert widths["networks"] == widths["guided networks"]
    assert {m["sort"] for m in model.members_} >= set(widths)
    model.save(tmp_path / "m.nits")
    loaded = nits.load(tmp_path / "m.nits")
    np.testing.assert_array_equal(loaded.score_samples(new), model.score_samples(new))
    given = new[["a", "b", "c", "d"]]
    pandas.testing.assert_frame_equal(
        loaded.sample(2, random_state=0, given=given), model.sample(2, random_state=0, given=given)
    )


def test_what_trees_guess_changes_nothing_for_a_network_that_does_not_hear_it() -> None:
    net = nits.weights.MaskedMLP([1, 1], [6, 6], context=2, hidden=8, blocks=1, generator=0)
    part = nits.weights.Heard(net, context=3, heard=[0, 2])
    features, context = torch.randn(2, 5), torch.randn(3, 5)
    other = context.clone()
    other[1] += 1.0
    for theta in (part(features, context), torch.cat(list(part.parts(features, other, [6, 6])))):
        torch.testing.assert_close(theta, net(features, context[[0, 2]]))
    torch.testing.assert_close(part.stepper(5, other).theta(), part(features, context)[:6])
    with pytest.raises(ValueError, match="must name the 2 features that the model reads, but na"):
        nits.weights.Heard(net, context=3, heard=[0])


def test_trees_without_a_context_or_beyond_memory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no context is named; name a context"):
        nits.NITSDensity(trees=True).fit(stairs(60))
    stairs(60).to_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="read in pieces; leave trees out"):
        nits.NITSDensity(trees=True, context=["b"]).fit(tmp_path)


def test_a_regressor_grows_trees() -> None:
    table = stairs(80)
    model = nits.NITSRegressor(trees=True, max_steps=2, random_state=0)
    model.fit(table[["a", "b", "d"]], table["y"])
    assert isinstance(model.density_.context_reading_, Guessed)
    assert model.predict(table[["a", "b", "d"]]).shape == (80,)


def test_the_command_line_grows_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stairs(80).to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m.nits")
    given = ["--context", "a,b,c,d", "--trees", "--max-steps", "2", "--quiet"]
    assert main(["fit", str(tmp_path / "t.csv"), "-o", model, *given]) == 0
    assert main(["info", model]) == 0
    assert "trees: " in capsys.readouterr().out
