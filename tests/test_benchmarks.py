"""The benchmarks: settings of every model, whole records of short runs, weights kept and mixed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import ablation
import image_run
import members
import mix
import models
import numpy as np
import pytest
import rescore
import results
import run
import scores
import tables
import torch
from models import fitted, ours

import nits
from nits import datasets
from nits.datasets import Split
from nits.tables import defaults

TINY: dict[str, Any] = {"members": 1, "whiten": False, "pnn": [4, 4], "hidden": 16, "dropout": 0.0}


def rows(count: int, seed: int, columns: int = 3) -> fitted.Points:
    """Columns that depend on each other, read-only as a memory-mapped file is."""
    noise = np.random.default_rng(seed).standard_normal((count, columns))
    values = noise.cumsum(1).astype(np.float32)
    values.flags.writeable = False
    return values


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Split:
    """Rows that every data set loads; those of test were trained on, but for one outside."""
    test = rows(1000, 0)[:300].copy()
    test[0, 0] = 100.0
    found = Split("diamonds", rows(1000, 0), rows(200, 1), test, ("a", "b", "c"))
    monkeypatch.setattr(datasets, "load", lambda name: found)
    return found


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of our model that a second is enough for."""
    original = models.settings
    monkeypatch.setattr(models, "settings", lambda *given: {**original(*given), **TINY})


@pytest.fixture
def record(split: Split, tiny: None, tmp_path: Path) -> dict[str, Any]:
    """What a run of `run.py` for a second has written."""
    kept = ["--save", str(tmp_path / "weights.safetensors"), "--half"]
    assert run.main(["diamonds", "--minutes", "0.02", "--seed", "3", *kept], tmp_path) == 0
    (found,) = results.read(tmp_path, "diamonds-nits-mlp-0.02m-seed3.json")
    return found


def test_settings_and_tables_know_every_data_set() -> None:
    assert set(tables.DATASETS) == set(datasets.names())
    for dataset in tables.DATASETS:
        for model in (models.OURS, *models.RIVALS):
            settings = models.settings(dataset, model)
            assert settings.keys() == models.settings("base", model).keys()
            assert settings["source"]


def test_settings_are_the_base_then_the_data_set_then_the_kind() -> None:
    base, usual = (models.settings(name, models.OURS) for name in ("base", "power"))
    pair = models.settings("power", models.OURS, "pair")
    assert [s["learning_rate"] for s in (base, usual, pair)] == [3e-3, 6e-3, 6e-3]
    assert [s["hidden"] for s in (base, usual, pair)] == [256, 256, 128]
    for name in image_run.LOADERS:
        assert [models.settings(name, "images", h)["pnn"] for h in image_run.HEADS] == [
            [8, 8],
            [10],
        ]
    with pytest.raises(ValueError, match=r"diamonds.toml has no table \[pair.nits-mlp\]"):
        models.settings("diamonds", models.OURS, "pair")
    model = "nflows-rq-autoregressive"  # rivals have another kind only if it is FREE
    assert models.settings("power", model, "hours") == models.settings("power", model)
    assert models.settings("power", model, models.FREE)["optimizer"] == "schedule-free"


def test_commands_name_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = results.ROOT / "benchmarks" / "run.py"
    monkeypatch.setattr(sys, "argv", [str(script), "no-such-file", "--path", str(tmp_path)])
    expected = f"python benchmarks/run.py no-such-file --path {tmp_path.name}"
    assert results.circumstances()["command"] == expected


def test_a_record_is_whole(record: dict[str, Any]) -> None:
    about = "command commit date hardware versions settings parameters epochs steps"
    assert all(record[name] for name in (*about.split(), "training_seconds"))
    assert record["test_nats"] is None
    assert record["test_rows_outside"] == 1
    assert math.isfinite(record["test_nats_inside"])
    assert record["test_two_standard_errors"] > 0
    best = max(look["validation_nats"] for look in record["history"])
    assert record["validation_nats_inside"] == pytest.approx(best, abs=0.02)  # from half weights


def test_a_run_goes_on_from_weights_and_counts_their_minutes(
    record: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["diamonds", "--minutes", "1e-5", "--start", str(tmp_path / "weights.safetensors")]
    assert run.main(told, tmp_path) == 0
    (further,) = results.read(tmp_path, "diamonds-nits-mlp-0.02001m-seed0.json")
    assert further["start"] == record["command"]
    assert further["test_nats_inside"] == pytest.approx(record["test_nats_inside"], abs=0.05)
    assert run.main([*told[:-1], str(tmp_path / "others.safetensors")], tmp_path) == 2
    assert "others.safetensors; run it with --save" in capsys.readouterr().err


def test_half_weights_give_the_figure(record: dict[str, Any], split: Split, tmp_path: Path) -> None:
    model = nits.load(tmp_path / "weights.safetensors")
    again = scores.nats(fitted.score(model.log_prob, split.test))
    assert again["nats_inside"] == pytest.approx(record["test_nats_inside"], abs=1e-6)
    path = tmp_path / "diamonds-nits-mlp-0.02m-seed3.json"
    assert rescore.main([str(path)]) == 0
    path.write_text(json.dumps({**record, "test_nats_inside": record["test_nats_inside"] + 0.01}))
    assert rescore.main([str(path)]) == 1


def test_a_mixture_is_scored_from_its_members(
    record: dict[str, Any], split: Split, tmp_path: Path
) -> None:
    path, other = tmp_path / "weights.safetensors", tmp_path / "other.safetensors"
    model = nits.load(path)
    first = fitted.score(model.log_prob, split.test)
    for parameter in model.parameters():
        parameter.data.mul_(0.9)
    nits.save(model, other)
    second = fitted.score(model.log_prob, split.test)
    parts = [mix.member_scores({"settings": {}}, one, split, "test") for one in (path, other)]
    found = mix.mixture_score(parts, [0.5, 0.5])
    np.testing.assert_allclose(found, np.logaddexp(first, second) - math.log(2), atol=1e-9)
    assert found[0] == -math.inf
    few = mix.member_scores({"settings": {"scored_rows": 8}}, path, split, "test")
    at = np.linspace(0, len(first) - 1, 8).round().astype(int)
    np.testing.assert_allclose(few, first[at], rtol=1e-5)
    unequal = mix.mixture_score(parts, [0.9, 0.1])
    one, two = (np.exp(scores[1:]) for scores in (first, second))
    np.testing.assert_allclose(unequal[1:], np.log(0.9 * one + 0.1 * two))
    kept = tmp_path / "scores"
    before = mix.kept_scores({"settings": {}}, path, split, "validation", kept)
    path.unlink()
    again = mix.kept_scores({"settings": {}}, path, split, "validation", kept)
    np.testing.assert_array_equal(again, before)


def test_scores_of_a_run_are_kept_for_mixtures(split: Split, tmp_path: Path) -> None:
    told = scores.held_out(lambda x: x[:, 0].astype(float), split, 1.5, "weights", tmp_path)
    found = mix.kept_scores({}, Path("weights.safetensors"), split, "test", tmp_path)
    np.testing.assert_allclose(found, split.test[:, 0] + 1.5)
    assert told["test_nats_inside"] == pytest.approx(found[np.isfinite(found)].mean())
    assert (tmp_path / "weights-validation.npy").exists()


def test_some_rows_are_spread_over_all() -> None:
    x = rows(1000, 0)
    some = run.spread(x, 100)
    assert len(some) == 100
    np.testing.assert_array_equal(some[[0, -1]], x[[0, -1]])
    assert run.spread(x, 1000) is x


def test_members_trained_at_once_take_the_minutes_of_the_longest() -> None:
    hardware = {"threads": 1, "cores": 2}
    first = {"minutes": 10.0, "date": "2026-11-16T21:00:00+00:00", "hardware": hardware}
    second = {**first, "minutes": 9.0, "date": "2026-11-16T21:00:04+00:00"}
    assert mix.minutes([first, second], at_once=False) == 19
    assert mix.minutes([first, second], at_once=True) == 10
    later = {**second, "date": "2026-11-16T21:05:00+00:00"}
    wide = {**second, "hardware": {**hardware, "threads": 2}}
    for member, message in ((later, "began 300 s apart, with 2 threads"), (wide, "3 threads on 2")):
        with pytest.raises(ValueError, match=message):
            mix.minutes([first, member], at_once=True)


def test_set_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("models.fitted.time.monotonic", lambda: now)
    clock = fitted.Clock(minutes=2.0)
    now = 130.0
    assert (clock.progress, clock.minutes_left) == (0.25, 1.5)
    now = 400.0
    assert clock.progress > 1
    assert 0 < clock.minutes_left < 1e-3


@pytest.mark.parametrize(
    ("argv", "message"),
    [("0", "--minutes must be positive"), ("1 --half", "there is no --save")],
)
def test_user_errors(argv: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run.main(["power", "--minutes", *argv.split()])
    assert message in capsys.readouterr().err


def test_rivals_are_imported_only_when_used() -> None:
    names = ("zuko", "nflows", "sklearn")
    code = f"import run, tables, rescore, sys; sys.exit(any(n in sys.modules for n in {names}))"
    folder = results.ROOT / "benchmarks"
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, check=False).returncode == 0


@pytest.mark.parametrize("model", models.RIVALS)
@pytest.mark.filterwarnings("default")  # what the rivals warn of is theirs
def test_a_rival_trains(model: str, split: Split) -> None:
    pytest.importorskip(models.PACKAGES[models.MODULES[model]].replace("scikit-learn", "sklearn"))
    settings = {**models.settings("diamonds", model), "transforms": 1, "batch_size": 64}
    trained = models.fit(model)(split, settings, 0.005, 0)
    assert models.versions(model)
    assert min(trained.parameters, trained.steps, len(trained.history)) > 0
    assert np.isfinite(trained.log_prob(split.validation)).all()


def test_our_support_is_the_range_widened(split: Split) -> None:
    low, high = ours.support(split.train)
    least, most = split.train.min(0), split.train.max(0)
    assert low == pytest.approx(least - 0.02 * (most - least), rel=1e-6)
    assert high == pytest.approx(most + 0.02 * (most - least), rel=1e-6)


@pytest.mark.parametrize("order", [[], [2, 0, 1]])
def test_members_share_the_minutes_and_are_mixed(
    order: list[int], split: Split, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[list[int]] = []
    parts: list[fitted.Fitted] = []
    one = ours.fit_one

    def noted(split: Split, settings: fitted.Settings, minutes: float, seed: int) -> fitted.Fitted:
        orders.append(settings["order"])
        parts.append(one(split, settings, minutes, seed))
        return parts[-1]

    monkeypatch.setattr(ours, "fit_one", noted)
    settings = {**models.settings("diamonds", models.OURS), "order": order, "epochs": 1}
    made = ours.fit(split, {**settings, "members": 3}, 0.5, 0)
    assert orders == [order] * 3 if order else len(set(map(tuple, orders))) > 1
    assert made.epochs == pytest.approx(3, abs=0.3)
    expected = np.logaddexp.reduce([p.log_prob(split.train) for p in parts]) - math.log(3)
    np.testing.assert_allclose(made.log_prob(split.train), expected, atol=1e-4)


def test_patches_go_through_convolutions() -> None:
    x = rows(400, 0, 63)
    split = Split("patches", x[:300], x[300:350], x[350:], tuple(map(str, range(63))))
    chosen = {"pnn": [3], "filters": 4, "blocks": 2, "batch_size": 32, "epochs": 1}
    made = ours.fit(split, {**models.settings("bsds300", "nits-conv"), **chosen}, 0.5, 0)
    assert made.epochs == pytest.approx(1, abs=0.1)
    assert np.isfinite(made.log_prob(split.test)).all()


def test_patches_go_through_windows_and_are_gone_on_with(tmp_path: Path) -> None:
    x = rows(400, 0, 64)
    x = (x - x.mean(1, keepdims=True))[:, :-1]
    split = Split("patches", x[:300], x[300:350], x[350:], tuple(map(str, range(63))))
    own = {"pnn": [3], "hidden": 4, "blocks": 1, "epochs": 2, "checkpoint": tmp_path / "kept"}
    chosen = {**models.settings("bsds300", "nits-window"), **own, "batch_size": 32}
    made = ours.fit(split, chosen, 0.5, 0)
    again = ours.fit(split, chosen, 0.5, 0)
    assert made.epochs == again.epochs == pytest.approx(2, abs=0.1)
    np.testing.assert_array_equal(made.log_prob(split.test), again.log_prob(split.test))


def test_scores_in_bfloat16_are_those_of_a_network_that_rounds() -> None:
    x = rows(400, 0, 64)
    x = (x - x.mean(1, keepdims=True))[:, :-1]
    split = Split("patches", x[:300], x[300:350], x[350:], tuple(map(str, range(63))))
    own = {"pnn": [3], "hidden": 64, "blocks": 1, "epochs": 2, "batch_size": 32}
    made = ours.fit(split, {**models.settings("bsds300", "nits-window"), **own}, 0.5, 0)
    exact = made.log_prob(split.test)
    low = run.lowered(made.log_prob, "bfloat16")(split.test)
    assert 0 < np.abs(low - exact).max() < 0.5
    told = run.rounding(made, "bfloat16", split.test)
    assert told["ahead_of_float32"] == pytest.approx((low - exact).mean())


def test_columns_that_are_turned_have_one_scale() -> None:
    x = rows(200, 0, 3) * np.array([1.0, 5.0, 9.0], np.float32) + 1
    split = Split("table", x[:100], x[100:150], x[150:], ("a", "b", "c"))
    found, shift = scores.scaled(split, alike=True)
    ratio = np.asarray(split.train, np.float64) / found.train
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)
    assert shift == pytest.approx(-3 * math.log(ratio[0, 0]), rel=1e-5)


def test_an_order_is_spelled_out() -> None:
    def spelled(order: object, seed: int = 0) -> list[int]:
        found: list[int] = ours.ordered({"order": order}, rows(9, 0), seed)["order"]
        return found

    assert (spelled("reversed"), spelled("1,2,0"), spelled([])) == ([2, 1, 0], [1, 2, 0], [])
    drawn = [spelled("random", seed) for seed in range(9)]
    assert all(sorted(order) == [0, 1, 2] for order in drawn)
    assert drawn[0] == spelled("random")
    assert len(set(map(tuple, drawn))) > 1


def test_another_scale_is_counted() -> None:
    wide = Split("wide", 10 * rows(1000, 0), 10 * rows(200, 1), 10 * rows(300, 2), ("a", "b", "c"))
    seen, shift = scores.scaled(wide)
    assert np.allclose(seen.train.std(0), 1, atol=1e-3)
    assert shift == pytest.approx(-np.log(wide.train.std(0)).sum(), rel=1e-5)
    assert scores.scaled(seen) == (seen, 0.0)


def test_every_change_of_the_recipe_is_a_setting(split: Split) -> None:
    settings = models.settings("power", models.OURS, "search")
    for name, change in ablation.CHANGES.items():
        changed = change(settings)
        assert set(changed) <= set(settings)
        assert name in (ablation.BASE, ablation.AGAIN) or {**settings, **changed} != settings
        whole = ours.ordered({**settings, **changed}, split.train, 0)
        assert ours.mlp(([0.0] * 3, [1.0] * 3), whole).columns == 3


def test_a_search_measures_each_change_once_and_from_the_same_settings(
    split: Split, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, argv = "ablation-diamonds-0.01m.json", ["diamonds", "--minutes", "0.01", "--only"]
    argv += [ablation.BASE, "no hats"]
    assert ablation.main(argv, tmp_path, tmp_path) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert ablation.main([*argv, "1 block"], tmp_path, tmp_path) == 0
    assert capsys.readouterr().out.startswith("1 block: ")
    (found,) = results.read(tmp_path, name)
    assert found["results"]["no hats"]["change"] == {"knots": 0}
    base, without = (found["results"][name] for name in (ablation.BASE, "no hats"))
    assert without["parameters"] < base["parameters"]
    table = tables.ablation_tables(tmp_path).splitlines()
    gain = without["validation_nats"] - base["validation_nats"]
    assert table[0] == "| change | diamonds, 0.01 minutes |"
    assert f"({gain:+.3f})".replace("-", "−") in table[3]
    assert (tmp_path / name).with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    (axes,) = ablation.drawn(found).axes
    values = [v for _, v in base["history"]]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), values)
    with pytest.raises(ValueError, match="was searched from another knots than 9"):
        ablation.kept(tmp_path / name, {**found["settings"], "knots": 9})


def test_a_search_starts_from_the_estimators_defaults(split: Split) -> None:
    settings = ablation.estimator_defaults(split)
    assert set(settings) == set(models.settings("power", models.OURS))
    assert (settings["hidden"], settings["knots"], settings["batch_size"]) == (64, 8, 32)
    style = defaults.plan(*split.train.shape).styles[0]
    assert (settings["members"], settings["pnn"]) == (1, list(style.pnn))
    assert all(settings[n] == style._asdict()[n] for n in ("dropout", "weight_decay", "activation"))
    assert ours.mlp(ours.support(split.train), settings).columns == 3


def test_members_are_timed_in_every_way() -> None:
    first, second = (members.tasks(60, 2, 2, 2) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        state = other.density.state_dict()
        assert all(torch.equal(t, state[name]) for name, t in one.density.state_dict().items())
    figures = members.measured(1, 60, 2, 2, 2)
    assert set(figures["seconds"]) == {
        members.SIDE_BY_SIDE,
        members.TOGETHER,
        members.ONE_THREAD,
        members.ALL_THREADS,
    }
    assert all(ratio["median"] > 0 for ratio in figures["times_as_fast_as"].values())
