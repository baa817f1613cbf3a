"""NITSRegressor and NITSClassifier: scikit-learn's contract, several targets, missing values."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import nits
from nits import NITSClassifier, NITSRegressor
from nits.cli.main import main

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "a weight of two and a row twice are shuffled "
    "differently, so the same optimum is approached along another path",
}
"""scikit-learn's checks that cannot hold, and why."""

BY_LUCK = {
    "check_methods_subset_invariance": "float32: products of one row and of many round differently",
    "check_methods_sample_order_invariance": "float32: rows at other places round differently",
}
"""Those that hold on some machines only."""

QUICK = [
    "get_params_invariance",
    "set_params",
    "no_attributes_set_in_init",
    "parameters_default_constructible",
    "requires_y_none",
    "estimators_unfitted",
]
"""Those that run with every test."""


def regressor(**options: Any) -> NITSRegressor:
    return NITSRegressor(**{"max_steps": 40, "random_state": 0, **options})


def classifier(**options: Any) -> NITSClassifier:
    return NITSClassifier(**{"max_steps": 40, "random_state": 0, **options})


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [NITSRegressor(max_steps=5), NITSClassifier(max_steps=40)],
    expected_failed_checks=lambda e: EXPECTED,
)
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    if check.func.__name__ in BY_LUCK:
        pytest.skip(BY_LUCK[check.func.__name__])
    check(estimator)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("kind", [NITSRegressor, NITSClassifier])
def test_quick_parts_of_the_contract(kind: Any, name: str) -> None:
    getattr(estimator_checks, f"check_{name}")(kind.__name__, kind(max_steps=3))


@pytest.fixture(scope="module")
def table() -> Any:
    """Numbers with holes and strings; y depends on both."""
    rng = np.random.default_rng(0)
    x = pandas.DataFrame({"a": rng.normal(size=300), "b": rng.choice(["u", "v"], 300)})
    x["y"] = 2 * x["a"] + (x["b"] == "u") + rng.normal(0, 0.3, 300)
    x.loc[::9, "a"] = np.nan
    return x


@pytest.fixture(scope="module")
def fitted(table: Any) -> NITSRegressor:
    return regressor().fit(table[["a", "b"]], table["y"])


def test_a_regressor_predicts_the_whole_law(fitted: NITSRegressor, table: Any) -> None:
    x, y = table[["a", "b"]], table["y"]
    known = x["a"].notna()
    assert fitted.predict(x).shape == (300,)
    assert fitted.score(x[known], y[known]) > 0.8
    low, high = fitted.predict_interval(x, coverage=0.8).T
    assert 0.6 < ((low <= y) & (y <= high)).mean() < 0.97
    middle = fitted.predict_quantiles(x, 0.5)[:, 0]
    np.testing.assert_allclose(fitted.cdf(x, middle), 0.5, atol=1e-3)
    drawn = fitted.sample(x[:2], 4000, random_state=0)
    assert drawn.shape == (2, 4000)
    np.testing.assert_allclose(drawn.mean(1), fitted.predict(x[:2]), atol=0.1)
    np.testing.assert_array_equal(drawn, fitted.sample(x[:2], 4000, random_state=0))


def test_log_prob_is_the_slope_of_the_cdf(fitted: NITSRegressor, table: Any) -> None:
    x = table[["a", "b"]][:20]
    y = fitted.predict_quantiles(x, [0.4])[:, 0]
    slope = (fitted.cdf(x, y + 1e-3) - fitted.cdf(x, y - 1e-3)) / 2e-3
    np.testing.assert_allclose(np.exp(fitted.log_prob(x, y)), slope, rtol=0.05)


def test_columns_are_found_by_name_and_holes_are_taken(fitted: NITSRegressor, table: Any) -> None:
    x = table[["a", "b"]]
    np.testing.assert_array_equal(fitted.predict(table[["y", "b", "a"]]), fitted.predict(x))
    with pytest.raises(ValueError, match="the table must have the column 'a'"):
        fitted.predict(table[["b"]])


@pytest.mark.filterwarnings("ignore:in training .x0. never had a missing value")
def test_a_hole_where_there_was_none_does_not_depend_on_other_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    model = regressor(max_steps=5).fit(x, x.sum(1) + rng.normal(size=100))
    x[3, 0] = np.nan
    alone = model.predict(x[3:4])
    np.testing.assert_allclose(model.predict(x)[3], alone[0], rtol=1e-5)
    np.testing.assert_allclose(model.predict(x[2:4])[1], alone[0], rtol=1e-5)


def test_a_target_may_have_the_name_of_a_column_and_an_index_is_read() -> None:
    """A running number is no identifier where it is given, nor where it is asked for."""
    count = np.arange(200)
    noise = np.random.default_rng(0).normal(0, 5, 200)
    x = pandas.DataFrame({"t": count})
    model = regressor().fit(x, pandas.Series(count + noise, name="t"))
    assert model.targets_ == ["t (target)"]
    assert model.score(x, count + noise) > 0.9
    assert regressor().fit(x, count).score(x, count) > 0.9


def test_several_targets_are_joint(table: Any) -> None:
    """A later target's law given X alone is that of joint draws."""
    x = table[["a", "b"]]
    y = pandas.DataFrame({"p": table["y"], "q": np.round(3 * table["y"]).astype(int)})
    model = regressor().fit(x, y)
    some = x[1:4]
    assert model.predict_quantiles(some, [0.1, 0.9]).shape == (3, 2, 2)
    assert model.predict_interval(some).shape == (3, 2, 2)
    assert model.cdf(some, y[1:4]).shape == (3, 2)
    drawn = model.sample(some, 1000, random_state=0)
    assert drawn.shape == (3, 1000, 2)
    spread = drawn.std(1)
    np.testing.assert_array_less(np.abs(model.predict(some) - drawn.mean(1)), 0.15 * spread)
    assert np.corrcoef(drawn[0].T)[0, 1] > 0.6
    assert np.isfinite(model.log_prob(some, y[1:4])).all()
    with pytest.raises(ValueError, match=re.escape("y must have 2 columns, as it had in training")):
        model.log_prob(some, y["p"][1:4])


def test_a_classifier_tells_strings_numbers_and_booleans(table: Any) -> None:
    x, positive = table[["a", "b"]], (table["y"] > 0).to_numpy()
    for y in (np.where(positive, "yes", "no"), np.where(positive, 7, 2), positive):
        model = classifier().fit(x, y)
        assert model.classes_.tolist() == sorted({*y.tolist()})
        shares = model.predict_proba(x)
        np.testing.assert_allclose(shares.sum(1), 1)
        np.testing.assert_array_equal(model.predict(x), model.classes_[shares.argmax(1)])
        known = x["a"].notna()
        assert model.score(x[known], y[known]) > 0.75
        at = (model.classes_ == y[:, None]).argmax(1)
        own = np.exp(model.log_prob(x, y))
        # a class never seen has a probability in the density, and none here
        np.testing.assert_allclose(own, shares[np.arange(300), at] * (1 - 1 / 302 / 3), rtol=1e-4)
        assert {*model.sample(x[:5], 50, random_state=0).ravel().tolist()} <= {*y.tolist()}


def test_classes_without_an_order_have_no_quantiles(table: Any) -> None:
    model = classifier(max_steps=3).fit(table[["a", "b"]], np.where(table["y"] > 0, "yes", "no"))
    told = "has categories without an order, so it has no quantiles; ask for predict_proba"
    for asked in (model.predict_quantiles, model.predict_interval):
        with pytest.raises(ValueError, match=told):
            asked(table[["a", "b"]][:3])


def test_several_classes_at_once_are_lists(table: Any) -> None:
    y = np.stack([np.where(table["y"] > 0, "yes", "no"), table["b"].to_numpy(str)], 1)
    model = classifier().fit(table[["a"]], y)
    assert model.predict(table[["a"]][:4]).shape == (4, 2)
    assert [shares.shape for shares in model.predict_proba(table[["a"]])] == [(300, 2), (300, 2)]
    assert [classes.tolist() for classes in model.classes_] == [["no", "yes"], ["u", "v"]]


def test_files_hold_the_same_kind_of_model(
    fitted: NITSRegressor, table: Any, tmp_path: Path
) -> None:
    x = table[["a", "b"]]
    labels = np.where(table["y"] > 0, "yes", "no")
    for model in (fitted, classifier(max_steps=5).fit(x, labels)):
        nits.save(model, tmp_path / "model.nits")
        again = nits.load(tmp_path / "model.nits")
        assert type(again) is type(model)
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict(x), model.predict(x))
        assert pickle.loads(pickle.dumps(model)).targets_ == again.targets_
    assert again.classes_.tolist() == ["no", "yes"]


def test_models_are_cloned_and_validated(table: Any) -> None:
    model = regressor(max_steps=10, kinds="continuous")
    assert clone(model).get_params() == model.get_params()
    known = table.dropna()
    scores = cross_val_score(model, known[["a"]], known["y"], cv=2)
    assert (scores > 0.3).all()


def test_weights_of_rows_count() -> None:
    x = np.random.default_rng(0).normal(size=(200, 1))
    y = np.repeat([0.0, 5.0], 100) + np.random.default_rng(1).normal(0, 0.1, 200)
    weight = np.repeat([9.0, 1.0], 100)
    assert regressor().fit(x, y, sample_weight=weight).predict(x).mean() < 1.5


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (["u", "v"] * 10, "'y' must hold numbers to regress on, but holds"),
        ([1.0, np.nan] * 10, "Input y contains NaN"),
        (pandas.Series([1, None] * 10, dtype="Int64"), "'y' has 10 such values; drop those rows."),
        ([1.0] * 19, "inconsistent numbers of samples"),
    ],
)
def test_mistakes_are_named(y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        regressor().fit(np.arange(40.0).reshape(20, 2) ** 2, y)


def test_other_mistakes_are_named(fitted: NITSRegressor, table: Any) -> None:
    with pytest.raises(ValueError, match="at least two classes to tell apart, but has only"):
        classifier().fit(table[["a"]], ["u"] * 300)
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1, but is 90"):
        fitted.predict_interval(table, coverage=90)


def predicted(model: Any, table: Any, folder: Path, *options: str) -> Any:
    """What `nits predict` writes."""
    model.save(folder / "model.nits")
    table.to_csv(folder / "table.csv", index=False)
    paths = [str(folder / name) for name in ("model.nits", "table.csv", "out.csv")]
    assert main(["predict", *paths[:2], "-o", paths[2], "--quiet", *options]) == 0
    return pandas.read_csv(folder / "out.csv")


def test_the_command_line_predicts_numbers(
    fitted: NITSRegressor, table: Any, tmp_path: Path
) -> None:
    x = table[["a", "b"]]
    found = predicted(fitted, x, tmp_path, "--levels", "0.1,0.9")
    assert list(found.columns) == ["y", "y q0.1", "y q0.9"]
    assert found.equals(predicted(fitted, x.assign(y="?"), tmp_path, "--levels", "0.1,0.9"))
    np.testing.assert_allclose(found["y"], fitted.predict(x), rtol=1e-4, atol=1e-4)
    quantiles = fitted.predict_quantiles(x, [0.1, 0.9])
    np.testing.assert_allclose(found[["y q0.1", "y q0.9"]], quantiles, rtol=1e-4, atol=1e-4)


def test_the_command_line_predicts_classes(
    table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = table[["a", "b"]]
    model = classifier(max_steps=5).fit(
        x, pandas.Series(np.where(x["b"] == "u", "p", "q"), name="k")
    )
    found = predicted(model, x, tmp_path)
    assert list(found.columns) == ["k", "P(k=p)", "P(k=q)"]
    assert found["k"].tolist() == model.predict(x).tolist()
    np.testing.assert_allclose(found[["P(k=p)", "P(k=q)"]], model.predict_proba(x), atol=1e-5)
    assert main(["info", str(tmp_path / "model.nits")]) == 0
    assert "given, continuous" in capsys.readouterr().out


def test_the_command_line_predicts_any_columns(
    table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nits.NITSDensity(max_steps=2, random_state=0).fit(table)
    found = predicted(model, table[["a"]][:5], tmp_path)
    assert list(found.columns) == ["b", "P(b=u)", "P(b=v)", "y", "y q0.05", "y q0.5", "y q0.95"]
    answers = model.given_rows(table[["a"]][:5])
    np.testing.assert_allclose(found["y"], answers.mean("y"), rtol=1e-5)
    np.testing.assert_allclose(found[["P(b=u)", "P(b=v)"]], answers.proba("b"), atol=1e-5)
    found = predicted(model, table[:5], tmp_path, "--column", "a", "--levels", "0.5")
    assert list(found.columns) == ["a", "a q0.5"]
    wanted = model.given_rows(table[["b", "y"]][:5]).quantiles("a", 0.5)
    np.testing.assert_allclose(found["a q0.5"], wanted[:, 0], rtol=1e-5)
    paths = [str(tmp_path / name) for name in ("model.nits", "table.csv")]
    assert main(["predict", *paths]) == 2
    assert "must lack a column to predict, but has all; name one" in capsys.readouterr().err
    assert main(["predict", *paths, "--column", "z"]) == 2
    assert "there is no column 'z' among a, b, y" in capsys.readouterr().err


def test_columns_to_predict_are_those_of_a_context(
    fitted: NITSRegressor, table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "model.nits")
    table.to_csv(tmp_path / "table.csv", index=False)
    paths = [str(tmp_path / name) for name in ("model.nits", "table.csv")]
    assert main(["predict", *paths, "--column", "a"]) == 2
    assert "--column is for models of all columns" in capsys.readouterr().err
