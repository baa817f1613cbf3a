"""The benchmark harness: settings of every model, the whole record of a short run, tables."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import ablation
import measure
import mix
import models
import rescore
import run
import scale
import tables
from models import fitted, nits_conv, nits_mlp, nits_training, orders, untold

from nits import datasets
from nits.datasets import Split
from nits.tables import defaults

BENCHMARKS = Path(run.__file__).parent

RIVALS = [name for name in models.FAMILIES if name not in models.ALL_OURS]
MODULES = {
    "zuko_flows": "zuko",
    "nflows_flows": "nflows",
    "flowjax_flows": "flowjax",
    "sklearn_models": "sklearn",
}

SMALL: dict[str, dict[str, Any]] = {
    "nits-mlp": {
        "members": 1,
        "whiten": False,
        "knots": 32,
        "pnn": [4, 4],
        "hidden": 16,
        "blocks": 1,
        "dropout": 0.0,
        "batch_size": 64,
    },
    "zuko-nsf": {"transforms": 1, "hidden": [16], "batch_size": 64},
    "zuko-maf": {"transforms": 1, "hidden": [16], "batch_size": 64},
    "zuko-naf": {
        "transforms": 1,
        "hidden": [16],
        "signal": 4,
        "monotone_hidden": [8],
        "batch_size": 64,
    },
    "nflows-rq-autoregressive": {"transforms": 1, "hidden": 16, "blocks": 1, "batch_size": 64},
    "nflows-rq-coupling": {"transforms": 1, "hidden": 16, "blocks": 1, "batch_size": 64},
    "flowjax-nsf": {"transforms": 1, "hidden": 16, "depth": 1, "batch_size": 64},
    "gaussian-mixture": {"components": [1, 2]},
    "kernel-density": {"bandwidths": [0.5, 0.2]},
}


def small(dataset: str, model: str, kind: str = "two-core") -> dict[str, Any]:
    return {**models.settings(dataset, model, kind), **SMALL[model]}


def rows(count: int, seed: int, columns: int = 3) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Columns that depend on each other, read-only as a memory-mapped file is."""
    values = (
        np.random.default_rng(seed).standard_normal((count, columns)).cumsum(1).astype(np.float32)
    )
    values.flags.writeable = False
    return values


@pytest.fixture
def split() -> Split:
    """The test rows are training rows, all inside the support, but for the first."""
    test = rows(1000, 0)[:300].copy()
    test[0, 0] = 100.0
    return Split("diamonds", rows(1000, 0), rows(200, 1), test, ("a", "b", "c"))


@pytest.fixture
def found(split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The record of a run of `run.py` for a second, with one test row outside the support."""
    monkeypatch.setattr(datasets, "load", lambda name: split, raising=False)
    monkeypatch.setattr(nits_training, "CHECKPOINTS", tmp_path / "out")
    original = models.settings
    monkeypatch.setattr(
        models, "settings", lambda *given: {**original(*given), **SMALL["nits-mlp"]}
    )
    weights = tmp_path / "weights.safetensors"
    argv = ["diamonds", "--minutes", "0.02", "--seed", "3", "--save", str(weights), "--half"]
    assert run.main(argv, tmp_path) == 0
    record: dict[str, Any] = json.loads(
        (tmp_path / "diamonds-nits-mlp-0.02m-seed3.json").read_text()
    )
    return record


@pytest.mark.parametrize("dataset", tables.DATASETS)
def test_settings_cover_every_model(dataset: str) -> None:
    for model in (models.OURS, *RIVALS):
        settings = models.settings(dataset, model)
        assert settings["source"]
        assert set(SMALL[model]) <= set(settings), model


def test_commands_name_no_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = measure.ROOT / "benchmarks" / "run.py", tmp_path / "images"
    outside.mkdir()
    monkeypatch.setattr(sys, "argv", [str(inside), "no-such-file", "--path", str(outside)])
    expected = f"python {Path('benchmarks') / 'run.py'} no-such-file --path images"
    assert measure.circumstances()["command"] == expected


def test_settings_and_tables_know_every_data_set() -> None:
    assert set(tables.DATASETS) == set(datasets.names())
    assert {path.stem for path in models.SETTINGS.glob("*.toml")} == set(tables.DATASETS)


def test_settings_of_the_paper() -> None:
    power = models.settings("power", "nits-mlp", "paper")
    assert (power["hidden"], power["blocks"], power["dropout"], power["learning_rate"]) == (
        1024,
        4,
        0.2,
        2e-4,
    )
    with pytest.raises(ValueError, match=r"diamonds.toml has no table \[paper.nits-mlp\]"):
        models.settings("diamonds", "nits-mlp", "paper")


def test_record_is_whole_and_checkpoint_kept(found: dict[str, Any], tmp_path: Path) -> None:
    for name in (
        "command",
        "commit",
        "date",
        "hardware",
        "versions",
        "settings",
        "parameters",
        "epochs",
    ):
        assert found[name], name
    assert found["training_seconds"] > 0
    assert found["steps"] > 0
    assert found["test_nats"] is None
    assert found["test_rows_outside"] == 1
    assert math.isfinite(found["test_nats_inside"])
    assert found["test_two_standard_errors"] > 0
    assert math.isfinite(found["history"][-1]["validation_nats"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == [
        "diamonds-16-0.02m-seed3.safetensors"
    ]


def test_half_weights_give_the_figure(found: dict[str, Any], tmp_path: Path, split: Split) -> None:
    model = nits_mlp.load(tmp_path / "weights.safetensors")
    again = run.nats(nits_training.score(model, split.test))
    assert again["nats_inside"] == pytest.approx(found["test_nats_inside"], abs=1e-6)
    result = tmp_path / "diamonds-nits-mlp-0.02m-seed3.json"
    assert rescore.main([str(result)]) == 0
    result.write_text(json.dumps({**found, "test_nats_inside": found["test_nats_inside"] + 0.01}))
    assert rescore.main([str(result)]) == 1


def test_set_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("models.fitted.time.monotonic", lambda: now)
    clock = fitted.Clock(minutes=2.0)
    now = 130.0
    assert clock.progress == 0.25
    assert clock.minutes_left == 1.5
    now = 400.0
    assert clock.progress > 1
    assert 0 < clock.minutes_left < 1e-3


def test_support_is_the_range_widened(split: Split) -> None:
    low, high = nits_mlp.support(split.train)
    least, most = split.train.min(0), split.train.max(0)
    assert low == pytest.approx(least - 0.02 * (most - least), rel=1e-6)
    assert high == pytest.approx(most + 0.02 * (most - least), rel=1e-6)


def test_user_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, message in (
        (["power", "--minutes", "0"], "--minutes must be positive"),
        (["power", "--minutes", "1", "--half"], "there is no --save"),
        (
            ["power", "--minutes", "1", "--model", "zuko-nsf", "--save", "x"],
            "keeps the weights of nits-mlp",
        ),
    ):
        with pytest.raises(SystemExit, match="2"):
            run.main(argv)
        assert message in capsys.readouterr().err


def nothing_imported() -> str:
    names = ", ".join(repr(name) for name in MODULES.values())
    found = f"any(name in sys.modules for name in ({names}))"
    return f"import run, tables, rescore, sys; sys.exit({found})"


def test_rivals_are_imported_only_when_used() -> None:
    code = subprocess.run([sys.executable, "-c", nothing_imported()], cwd=BENCHMARKS, check=False)
    assert code.returncode == 0


@pytest.mark.parametrize("model", RIVALS)
@pytest.mark.filterwarnings("default")  # what the rivals warn of is theirs
def test_rival_trains(model: str, split: Split) -> None:
    pytest.importorskip(MODULES[models.FAMILIES[model]])
    trained = models.fit(model)(split, small("diamonds", model), 0.005, 0)
    assert models.versions(model)
    assert trained.parameters > 0
    assert trained.steps > 0
    assert trained.history
    value = trained.log_prob(split.validation)
    assert value.shape == (200,)
    assert np.isfinite(value).all()


def project(root: Path, record: dict[str, Any]) -> Path:
    """A project with one result and the files to write tables into."""
    (root / "benchmarks" / "results").mkdir(parents=True)
    (root / "docs").mkdir()
    for name in tables.PLACES:
        (root / name).write_text(f"before\n{tables.BEGIN}\n{tables.END}\nafter\n")
    path = root / "benchmarks" / "results" / "one.json"
    path.write_text(json.dumps(record))
    return path


RECORD: dict[str, Any] = {
    "dataset": "power",
    "model": "nits-mlp",
    "minutes": 60.0,
    "seed": 0,
    "settings_name": "two-core",
    "parameters": 1234567,
    "epochs": 3.21,
    "test_nats": None,
    "test_nats_inside": 0.6123,
    "test_two_standard_errors": 0.0123,
    "test_rows": 204928,
    "test_rows_outside": 2,
}


def test_tables_are_written_and_checked(tmp_path: Path) -> None:
    path = project(tmp_path, RECORD)
    assert tables.main(["--check"], tmp_path) == 1
    assert tables.main([], tmp_path) == 0
    assert tables.main(["--check"], tmp_path) == 0
    for name in ("README.md", "benchmarks/README.md"):
        text = (tmp_path / name).read_text()
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "0.612 ± 0.012 (2 of 204,928 rows outside)" in text
        assert "| 0.66 ± 0.01 |" in text
    for missing in ("gas", "hepmass", "miniboone"):
        assert any(
            line.startswith(f"| {missing} |") and "not run" in line for line in text.splitlines()
        )
    path.write_text(json.dumps({**RECORD, "test_nats_inside": 0.6133}))
    assert tables.main(["--check"], tmp_path) == 1


def test_table_changed_by_hand_is_found(tmp_path: Path) -> None:
    project(tmp_path, RECORD)
    tables.main([], tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text().replace("0.612", "0.712"))
    assert tables.main(["--check"], tmp_path) == 1


def test_best_rival_has_the_same_minutes(tmp_path: Path) -> None:
    path = project(tmp_path, RECORD)
    for model, minutes, value in (
        ("zuko-nsf", 60.0, 0.5),
        ("zuko-maf", 60.0, 0.3),
        ("zuko-naf", 90.0, 0.9),
    ):
        rival = {
            **RECORD,
            "model": model,
            "minutes": minutes,
            "test_nats_inside": value,
            "test_rows_outside": 0,
        }
        path.with_name(f"{model}.json").write_text(json.dumps(rival))
    line = tables.short_table(tables.read(path.parent)).splitlines()[2]
    assert "0.500 ± 0.012, zuko-nsf" in line


def test_readme_has_a_line_per_budget_that_rivals_had_and_for_the_largest(tmp_path: Path) -> None:
    path = project(tmp_path, RECORD)
    others: list[dict[str, Any]] = [
        {"minutes": 10.0, "test_nats_inside": 0.51},
        {"minutes": 10.0, "test_nats_inside": -0.2, "model": "zuko-nsf", "settings_name": "rivals"},
        {"minutes": 20.0, "test_nats_inside": 0.58},
        {"seed": 1, "test_nats_inside": 0.7},
    ]
    for index, other in enumerate(others):
        path.with_name(f"other{index}.json").write_text(json.dumps({**RECORD, **other}))
    lines = tables.short_table(tables.read(path.parent)).splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == ["10", "60"]
    assert "0.510" in lines[0]
    assert "zuko-nsf" in lines[0]
    assert "0.612" in lines[1]  # the first seed, not the best


def test_every_change_of_the_recipe_is_a_setting() -> None:
    settings = models.settings("power", models.OURS, "search")
    other = models.settings("gas_turbine", models.OURS)
    for name, change in ablation.CHANGES.items():
        changed = change({**settings, "columns": 6})
        assert set(changed) <= set(settings)
        news = [all(s[key] != value for key, value in change(s).items()) for s in (settings, other)]
        assert name in (ablation.BASE, ablation.AGAIN) or any(
            news
        )  # what one table has another may lack
        whole = orders.ordered({**settings, **changed}, rows(50, 0, 6), 0)
        assert nits_mlp.build(([0.0] * 6, [1.0] * 6), whole).columns == 6


def test_ablation_measures_each_change_once(
    split: Split,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(datasets, "load", lambda name: split)
    monkeypatch.setattr(nits_training, "CHECKPOINTS", tmp_path / "out")
    original = models.settings
    monkeypatch.setattr(
        models, "settings", lambda *given: {**original(*given), **SMALL["nits-mlp"]}
    )
    argv = ["diamonds", "--minutes", "0.01", "--only", ablation.BASE, "no hats"]
    assert ablation.main(argv, tmp_path, tmp_path) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert ablation.main([*argv, "8 hats"], tmp_path, tmp_path) == 0
    assert capsys.readouterr().out.startswith("8 hats: ")
    path = tmp_path / "ablation-diamonds-0.01m.json"
    found = json.loads(path.read_text())["results"]
    assert found["no hats"]["change"] == {"knots": 0}
    assert (
        found["no hats"]["parameters"]
        < found["8 hats"]["parameters"]
        < found[ablation.BASE]["parameters"]
    )
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    table = tables.ablation_tables(tmp_path).splitlines()
    gain = found["no hats"]["validation_nats"] - found[ablation.BASE]["validation_nats"]
    assert table[0] == "| change | diamonds, 0.01 minutes |"
    assert f"({gain:+.3f})".replace("-", "−") in table[3]


def test_a_search_goes_on_from_the_same_settings_only(tmp_path: Path) -> None:
    path, settings = tmp_path / "ablation.json", models.settings("power", models.OURS, "search")
    assert ablation.kept(path, settings) == {}
    old = {
        name: value for name, value in settings.items() if name != "optimizer"
    }  # not asked for, then
    path.write_text(
        json.dumps({"settings": {**old, "source": "another"}, "results": {"no hats": 1}})
    )
    assert ablation.kept(path, settings) == {"no hats": 1}
    with pytest.raises(
        ValueError, match=r"searched from learning_rate = 0\.003, but now it is 0\.006"
    ):
        ablation.kept(
            path, models.settings("power", models.OURS) | {"floor": 0.0, "average": 0.999}
        )


def test_defaults_are_settings_that_can_be_searched_from(split: Split) -> None:
    untold_settings = untold.settings(split)
    assert set(untold_settings) == set(models.settings("power", models.OURS))
    plan = defaults.plan(1000, 3)
    assert (untold_settings["hidden"], untold_settings["batch_size"]) == (
        plan.hidden,
        plan.batch_size,
    )
    assert nits_mlp.build(nits_mlp.support(split.train), untold_settings).columns == 3


def test_searches_from_the_defaults_have_a_table_of_their_own(tmp_path: Path) -> None:
    search = {
        "dataset": "power",
        "minutes": 2.0,
        "results": {ablation.BASE: {"validation_nats": 0.5}},
    }
    others: list[dict[str, Any]] = [
        {"defaults": True, "dataset": "diamonds"},
        {"defaults": False},
        {},
    ]
    for index, other in enumerate(others):
        (tmp_path / f"ablation-{index}.json").write_text(json.dumps({**search, **other}))
    first, second = tables.ablation_tables(tmp_path).split("NITSDensity")
    assert first.count("power, 2 minutes") == 2
    assert "diamonds" not in first
    assert second.count("diamonds, 2 minutes") == 1


def test_a_mixture_is_scored_from_its_members(
    found: dict[str, Any], split: Split, tmp_path: Path
) -> None:
    path = tmp_path / "weights.safetensors"
    alone = nits_training.score(nits_mlp.load(path), split.test[1:])
    np.testing.assert_allclose(mix.score([path, path], split.test[1:]), alone, atol=1e-12)
    other = tmp_path / "other.safetensors"
    model = nits_mlp.load(path)
    for parameter in model.parameters():
        parameter.data.mul_(0.9)
    nits_mlp.save(model, found["settings"], other, half=False)
    second = nits_training.score(nits_mlp.load(other), split.test[1:])
    expected = np.log((np.exp(alone) + np.exp(second)) / 2)
    np.testing.assert_allclose(mix.score([path, other], split.test[1:]), expected, atol=1e-9)


def test_members_trained_at_once_take_the_minutes_of_the_longest() -> None:
    hardware = {"threads": 1, "cores": 2}
    first = {"minutes": 10.0, "date": "2026-11-16T21:00:00+00:00", "hardware": hardware}
    second = {**first, "minutes": 9.0, "date": "2026-11-16T21:00:04+00:00"}
    assert mix.minutes([first, second], at_once=False) == 19
    assert mix.minutes([first, second], at_once=True) == 10
    later = {**second, "date": "2026-11-16T21:05:00+00:00"}
    with pytest.raises(
        ValueError, match="began 300 s apart, with 2 threads on 2 cores; leave --at-once out"
    ):
        mix.minutes([first, later], at_once=True)
    wide = {**second, "hardware": {**hardware, "threads": 2}}
    with pytest.raises(ValueError, match="began 4 s apart, with 3 threads on 2 cores"):
        mix.minutes([first, wide], at_once=True)


def test_a_mixture_is_ours_and_no_rival(tmp_path: Path) -> None:
    path = project(tmp_path, RECORD)
    mixed = {
        **RECORD,
        "model": "nits-mixture",
        "minutes": 90.0,
        "test_nats_inside": 0.65,
        "test_rows_outside": 0,
    }
    path.with_name("two.json").write_text(json.dumps(mixed))
    lines = tables.short_table(tables.read(path.parent)).splitlines()[2:]
    assert "0.650 ± 0.012, mixture | not run" in lines[0]


def test_tables_of_the_command_line(tmp_path: Path) -> None:
    part = {"nats": -1.234, "two_standard_errors": 0.1, "rows": 1000, "rows_outside": 3}
    whole = {"minutes": 3.0, "all_columns": part, "numeric_columns": part}
    found = {**whole, "gaussian_mixture": {"nats": -2.5, "two_standard_errors": 0.25}}
    (tmp_path / "command-line-diamonds.json").write_text(json.dumps({"results": found}))
    line = tables.command_line_table(tmp_path).splitlines()[2]
    ours = "−1.23 ± 0.10 (3 of 1,000 rows outside)"
    assert line == f"| diamonds | 3 | {ours} | {ours} | −2.50 ± 0.25 |"


def test_missing_markers_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(tmp_path, RECORD)
    (tmp_path / "README.md").write_text("no table here\n")
    assert tables.main([], tmp_path) == 2
    assert "README.md must have the lines" in capsys.readouterr().err


def test_another_scale_is_counted() -> None:
    wide = Split("wide", 10 * rows(1000, 0), 10 * rows(200, 1), 10 * rows(300, 2), ("a", "b", "c"))
    seen, shift = scale.scaled(wide)
    assert np.allclose(seen.train.std(0), 1, atol=1e-3)
    gaussian = -0.5 * (seen.test**2).sum(1) + shift
    mean, deviation = wide.train.mean(0), wide.train.std(0)
    plain = -0.5 * (((wide.test - mean) / deviation) ** 2).sum(1) - np.log(deviation).sum()
    assert np.allclose(gaussian, plain, atol=1e-3)
    assert scale.scaled(seen) == (seen, 0.0)


@pytest.mark.parametrize(
    ("order", "expected"),
    [("reversed", [2, 1, 0]), ("1,2,0", [1, 2, 0]), ([2, 0, 1], [2, 0, 1]), ([], [])],
)
def test_an_order_is_spelled_out(order: str | list[int], expected: list[int]) -> None:
    assert orders.ordered({"order": order}, rows(9, 0), 0)["order"] == expected
    wide = np.zeros((4, 9), np.float32)
    drawn = orders.ordered({"order": "random"}, wide, 0)["order"]
    assert sorted(drawn) == list(range(9))
    assert drawn != orders.ordered({"order": "random"}, wide, 1)["order"]


def test_a_greedy_order_follows_what_columns_say_of_one_another() -> None:
    noise = np.random.default_rng(0).normal(size=(5000, 5))
    hub = noise[:, 0]
    close, far = hub + 0.1 * noise[:, 1], np.exp(hub + 0.5 * noise[:, 2])
    table = np.stack([noise[:, 3], far, hub, close, np.ones(5000)], 1).astype(np.float32)
    assert orders.ordered({"order": "greedy"}, table, 0)["order"][:3] in ([2, 3, 1], [3, 2, 1])


def test_members_share_the_minutes_and_are_mixed() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    split = Split("toy", rows[:300], rows[300:350], rows[350:], ("a", "b", "c"))
    chosen = {**SMALL["nits-mlp"], "epochs": 2, "members": 3, "order": []}
    settings = {**models.settings("diamonds", "nits-mlp"), **chosen}
    made = nits_mlp.fit(split, settings, 0.5, 0)
    assert len(made.chosen["members"]) == 3
    assert made.epochs == pytest.approx(6, abs=0.5)
    grid = (
        np.stack(np.meshgrid(*[np.linspace(-5, 5, 60)] * 3), -1).reshape(-1, 3).astype(np.float32)
    )
    mass = np.exp(made.log_prob(grid)).sum() * (10 / 59) ** 3
    assert mass == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("order", "different"), [([], 2), ([2, 0, 1], 1)])
def test_members_draw_orders_unless_there_is_one(
    order: list[int], different: int, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[int]] = []
    original = nits_mlp.fit_one

    def noted(split: Split, settings: dict[str, Any], minutes: float, seed: int) -> Any:
        seen.append(settings["order"])
        return original(split, settings, minutes, seed)

    monkeypatch.setattr(nits_mlp, "fit_one", noted)
    chosen = {**SMALL["nits-mlp"], "epochs": 1, "members": 4, "order": order}
    nits_mlp.fit(split, {**models.settings("diamonds", "nits-mlp"), **chosen}, 0.5, 0)
    assert len(seen) == 4
    assert len(set(map(tuple, seen))) >= different
    assert not order or seen == [order] * 4


def test_patches_go_through_convolutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nits_training, "CHECKPOINTS", tmp_path)
    rows = np.random.default_rng(0).normal(size=(400, 63)).cumsum(1).astype(np.float32)
    split = Split("toy", rows[:300], rows[300:350], rows[350:], tuple(map(str, range(63))))
    chosen = {"pnn": [3], "filters": 4, "blocks": 2, "batch_size": 32, "epochs": 1}
    made = nits_conv.fit(split, {**models.settings("bsds300", "nits-conv"), **chosen}, 0.5, 0)
    assert made.epochs == pytest.approx(1, abs=0.1)
    assert np.isfinite(made.log_prob(split.test)).all()
    with pytest.raises(ValueError, match="at most 64 pixels, but have 65"):
        nits_conv.build(65, {})
