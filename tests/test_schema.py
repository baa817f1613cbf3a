"""Schemas: what columns are taken for and why, and that decoding undoes encoding."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest

from nits.heads import Atoms, Categorical, Continuous, Integer
from nits.tables import frames
from nits.tables.columns import Levels, Real, Whole
from nits.tables.schema import Schema, deviation, guess

rng = np.random.default_rng(0)
N = 2000
COLUMNS: dict[str, Any] = {
    "height": rng.normal(170, 10, N),
    "children": rng.poisson(2, N),
    "city": rng.choice(["Oslo", "Rome", "Lima"], N),
    "member": rng.random(N) < 0.3,
    "rain": np.where(rng.random(N) < 0.6, 0.0, rng.gamma(2.0, 3.0, N)),
    "carat": np.round(rng.gamma(4, 0.2, N), 2),
    "seen": np.datetime64("2024-01-01") + (rng.random(N) * 1e9).astype("timedelta64[ms]"),
}


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.infer(frames.read(COLUMNS))


def test_what_columns_are_taken_for(schema: Schema) -> None:
    kinds = {column.name: (type(column), column.reason) for column in schema.columns}
    assert kinds == {
        "height": (Real, "real numbers"),
        "children": (Whole, "integers"),
        "city": (Levels, "strings or booleans"),
        "member": (Levels, "strings or booleans"),
        "rain": (Real, kinds["rain"][1]),
        "carat": (Whole, "multiples of 0.01"),
        "seen": (Real, "real numbers"),
    }
    assert re.fullmatch(
        r"real numbers; 1 values in \d\d% of the rows have probabilities of their own",
        kinds["rain"][1],
    )


def test_heads_follow(schema: Schema) -> None:
    heads = [column.head((4,), 3) for column in schema.columns]
    assert [type(head) for head in heads] == [
        Continuous,
        Integer,
        Categorical,
        Categorical,
        Atoms,
        Integer,
        Continuous,
    ]


def test_numbers_stand_for_values(schema: Schema) -> None:
    frame = frames.read(COLUMNS)
    numbers = schema.encode(frame).astype(np.float32).astype(np.float64)
    back = schema.decode(numbers)
    for name in ("children", "city", "member", "carat"):
        assert np.array_equal(back[name], frame.columns[name].array), name
    np.testing.assert_allclose(back["height"], COLUMNS["height"], rtol=1e-6)
    np.testing.assert_allclose(back["rain"], COLUMNS["rain"], atol=1e-5)
    assert np.array_equal(back["rain"] == 0, COLUMNS["rain"] == 0)
    assert np.abs(back["seen"] - COLUMNS["seen"].astype("datetime64[ns]")).max() < np.timedelta64(
        1, "s"
    )


def test_numbers_are_of_ordinary_size(schema: Schema) -> None:
    numbers = schema.encode(frames.read(COLUMNS))
    for i in (0, 4, 6):
        assert 0.2 < numbers[:, i].std() < 5


def test_the_measure_is_in_the_users_units(schema: Schema) -> None:
    numbers = schema.encode(frames.read(COLUMNS))
    measure = schema.log_measure(numbers)
    assert np.allclose(measure[:, 0], -math.log(deviation(COLUMNS["height"])))
    assert (measure[:, [1, 2, 3, 5]] == 0).all()
    assert np.array_equal(measure[:, 4] == 0, COLUMNS["rain"] == 0)


def test_json_keeps_it(schema: Schema) -> None:
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again.columns == schema.columns
    assert again.form == schema.form


def test_what_the_user_says_goes() -> None:
    frame = frames.read({"a": rng.normal(size=50), "b": rng.integers(0, 5, 50)})
    schema = Schema.infer(frame, {"b": "categorical"}, {"a": (-10.0, math.inf)})
    assert isinstance(schema.columns[1], Levels)
    assert schema.columns[1].reason == "named by the user"
    head = schema.columns[0].head((4,), 0)
    assert head.high == math.inf
    assert head.low < -5
    assert isinstance(Schema.infer(frame, {"b": "continuous"}).columns[1], Real)


def test_a_value_in_a_twentieth_of_the_rows_is_an_atom() -> None:
    x = np.where(np.arange(N) % 20 == 0, 0.0, np.random.default_rng(1).gamma(2.0, 3.0, N))
    column = guess("rain", frames.read({"rain": x}).columns["rain"])
    assert isinstance(column, Real)
    assert column.atoms == (0.0,)
    assert "1 values in 5% of the rows have probabilities of their own" in column.reason


def test_values_never_leave_a_stated_support() -> None:
    schema = Schema.infer(frames.read({"a": rng.random(100)}), support={"a": (0.0, 1.0)})
    column = schema.columns[0]
    head = column.head((4,), 0)
    ends = np.array([np.float32(head.low), np.float32(head.high)], np.float64)
    back = column.decode(ends)
    assert back.min() >= 0
    assert back.max() <= 1


def test_an_unseen_category_has_no_place() -> None:
    column = guess("city", frames.read({"c": ["a", "b"]}).columns["c"])
    assert column.encode(frames.read({"c": ["b", "z"]}).columns["c"]).tolist() == [1, -1]


def test_rare_categories_are_pooled_if_asked() -> None:
    values = frames.read({"c": ["a"] * 50 + ["b"] * 30 + ["x"] * 3 + ["y"] * 1}).columns["c"]
    column = guess("c", values, pool_below=10)
    assert isinstance(column, Levels)
    assert column.reason == "strings or booleans; 2 rare ones pooled"
    assert (column.levels, column.pooled, column.shares) == (("a", "b"), ("x", "y"), (0.75, 0.25))
    assert set(column.encode(values).tolist()) == {0, 1, 2}
    assert np.exp(column.log_share(values))[[0, 60, 82, 83]].tolist() == pytest.approx(
        [1, 1, 0.75, 0.25]
    )
    drawn = column.decode(np.array([0.0, 1.0, *[2.0] * 400])).tolist()
    assert drawn[:2] == ["a", "b"]
    assert drawn.count("x") == pytest.approx(300, abs=2)
    assert guess("c", values).levels == ("a", "b", "x", "y")  # type: ignore[attr-defined]


def test_what_is_no_multiple_cannot_occur() -> None:
    column = guess("k", frames.read({"k": np.arange(10)}).columns["k"])
    numbers = column.encode(frames.read({"k": [1.0, 1.5]}).columns["k"])
    assert (numbers == np.floor(numbers)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (
            {"a": [None, None]},
            {},
            "column 'a' must have values, but all are missing; drop it.",
        ),
        (
            {"a": [1.5, 1.5]},
            {},
            "column 'a' is constant at 1.5; there is nothing to model, drop it.",
        ),
        (
            {"a": ["x", "x"]},
            {},
            "column 'a' is constant at 'x'; there is nothing to model, drop it.",
        ),
        (
            {"a": [1.0, math.inf]},
            {},
            "column 'a' has 1 infinite values; drop those rows, or make them missing.",
        ),
        (
            {"a": [f"id{i}" for i in range(2000)]},
            {},
            "column 'a' has 2000 different values, more than 1000, as identifiers do; "
            "drop it, or pool rare",
        ),
        (
            {"a": [1.0, 2.5]},
            {"kinds": {"b": "integer"}},
            "there is no column 'b' among a; check the spelling.",
        ),
        (
            {"a": [1.0, 2.5]},
            {"kinds": {"a": "number"}},
            "must be continuous, integer or categorical, but is 'nu",
        ),
        (
            {"a": ["x", "y"]},
            {"kinds": {"a": "integer"}},
            "column 'a' must be categorical, since it holds strings, but was named integer; leave",
        ),
        (
            {"a": [0.123456789, 2.5]},
            {"kinds": {"a": "integer"}},
            "column 'a' must hold multiples of one step to be integer, but does not; "
            "leave its kind out.",
        ),
    ],
)
def test_what_cannot_be_modelled(values: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Schema.infer(frames.read(values), **options)


def test_tables_must_have_the_columns_they_had(schema: Schema) -> None:
    other = {name: values for name, values in COLUMNS.items() if name != "city"}
    with pytest.raises(
        ValueError, match="the table must have the column 'city', but has height, children"
    ):
        schema.encode(frames.read(other))
    holes = {**COLUMNS, "height": np.where(np.arange(N) < 3, np.nan, COLUMNS["height"])}
    with pytest.raises(
        ValueError, match="column 'height' has 3 missing values, but had none in training; fill"
    ):
        schema.encode(frames.read(holes))
    text = {**COLUMNS, "height": np.array(["tall"] * N)}
    with pytest.raises(
        ValueError,
        match="column 'height' must hold numbers, as it did in training, but holds strings;",
    ):
        schema.encode(frames.read(text))
