"""Schemas: what columns are decided to be and why, and that decoding undoes encoding."""

import json
import math
import re
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from nits.heads import Atoms, Categorical, Cells, Continuous, Inflated
from nits.tables import frames
from nits.tables.columns import Categories, Codes, Column, Gridded, Ordered, Real
from nits.tables.frames import Values
from nits.tables.schema import Schema, infer

rng = np.random.default_rng(0)
N = 1000


def holed(values: Any, every: int = 7) -> Any:
    """The values with a hole in each seventh row."""
    found = pandas.Series(values)
    return found.mask(np.arange(len(found)) % every == 0)


MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep"]
COLUMNS: dict[str, Any] = {
    "height": rng.normal(170, 10, N),
    "city": rng.choice(["Oslo", "Rome", "Lima"], N),
    "member": rng.random(N) < 0.3,
    "rain": np.where(rng.random(N) < 0.6, 0.0, rng.gamma(2.0, 3.0, N)),
    "carat": np.round(rng.gamma(4, 0.2, N), 2),
    "seen": np.datetime64("2024-01-01") + (rng.random(N) * 1e9).astype("timedelta64[ms]"),
    "day": np.datetime64("2024-01-01") + rng.integers(0, 3000, N).astype("timedelta64[D]"),
    "wait": (rng.random(N) * 1e5).astype("timedelta64[s]"),
    "code": rng.choice([10115, 10117, 20095, 80331], N, p=[0.3, 0.1, 0.3, 0.3]),
    "income": rng.lognormal(8, 2, N),
    "share": rng.beta(0.5, 0.5, N),
    "large": rng.integers(2**64 - 5000, 2**64 - 1, N, dtype=np.uint64),
    "tiny": rng.integers(-128, 127, N).astype(np.int8),
    "month": pandas.Series(pandas.Categorical(rng.choice(MONTHS, N), MONTHS, ordered=True)),
    "holed height": holed(rng.normal(170, 10, N)),
    "holed rain": holed(np.where(rng.random(N) < 0.6, 0.0, rng.gamma(2.0, 3.0, N))),
    "holed count": holed(rng.poisson(40, N)).astype("Int16"),
    "holed code": holed(rng.choice([3, 17, 40], N, p=[0.6, 0.1, 0.3])),
    "holed city": holed(rng.choice(["Oslo", "Rome", "Lima"], N)),
    "holed member": holed(rng.random(N) < 0.3).astype("boolean"),
    "holed day": holed(np.datetime64("2024-01-01") + rng.integers(0, 9000, N)),
}
KINDS: dict[str, type[Column]] = {
    "height": Real,
    "city": Categories,
    "member": Categories,
    "rain": Real,
    "carat": Gridded,
    "seen": Real,
    "day": Gridded,
    "wait": Gridded,
    "code": Codes,
    "income": Real,
    "share": Real,
    "large": Gridded,
    "tiny": Gridded,
    "month": Codes,
    "holed height": Real,
    "holed rain": Real,
    "holed count": Gridded,
    "holed code": Codes,
    "holed city": Categories,
    "holed member": Categories,
    "holed day": Gridded,
}
HEADS: dict[str, type[Any]] = {
    "height": Continuous,
    "rain": Atoms,
    "carat": Cells,
    "code": Categorical,
    "city": Categorical,
    "holed height": Atoms,
    "holed count": Inflated,
    "holed city": Categorical,
}


@pytest.fixture(scope="module")
def schema() -> Schema:
    found, idle = infer(frames.read(COLUMNS))
    assert not idle.columns
    return found


def column(values: Any, **options: Any) -> Column:
    """The only column of a table."""
    found, idle = infer(frames.read({"a": values}), **options)
    assert not idle.columns
    return found.columns[0]


def never(n: int, columns: int) -> NDArray[np.float64]:
    """The tails of rows of which no entry lies beyond the training values."""
    return np.full((n, columns), np.nan)


def decoded(schema: Schema, numbers: NDArray[np.float32]) -> dict[str, Values]:
    return schema.decode(numbers, never(*numbers.shape), np.random.default_rng(0))


def test_what_columns_are_decided_to_be(schema: Schema) -> None:
    assert {column.name: type(column) for column in schema.columns} == KINDS
    reasons = {column.name: column.reason for column in schema.columns}
    assert reasons["height"].startswith("real numbers")
    assert reasons["rain"].startswith("real numbers with 1 frequent value, never negative; ")
    assert reasons["carat"].startswith("multiples of 0.01, never negative; ")
    assert reasons["income"].startswith("real numbers on a log scale, never negative")
    assert reasons["share"].startswith("real numbers on a logit scale, a share")
    assert reasons["city"] == "3 categories"
    assert [c.optional for c in schema.columns] == ["holed" in name for name in KINDS]


def test_heads_follow(schema: Schema) -> None:
    heads = {column.name: type(column.head((4,), 3)) for column in schema.columns}
    assert {name: heads[name] for name in HEADS} == HEADS


def test_the_heads_have_a_place_for_every_number(schema: Schema) -> None:
    """No training row is impossible or fixed, whatever the weights are."""
    import torch

    coded = schema.encode(frames.read(COLUMNS))
    assert not coded.fixed.any()
    assert not coded.unseen.any()
    assert np.isfinite(coded.log_prob).all()
    for i, one in enumerate(schema.columns):
        head = one.head((4,), 3)
        law = head.distribution(torch.zeros(head.weights), head.low, head.high)
        x = torch.from_numpy(coded.numbers[:, i])
        assert law.log_prob(x).isfinite().all(), one.name


def test_a_table_is_encoded_some_rows_at_a_time(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frames.read(COLUMNS)
    whole = schema.encode(frame)
    monkeypatch.setattr("nits.tables.schema.ENCODED_AT_ONCE", 17)
    parts = schema.encode(frame)
    numbers, units = schema.numbers(frame)
    for name in ("numbers", "log_prob", "fixed", "unseen"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name)), name
    assert np.array_equal(numbers, whole.numbers)
    np.testing.assert_allclose(units, whole.log_prob.sum(1))


@pytest.mark.parametrize("name", COLUMNS)
def test_numbers_stand_for_values(schema: Schema, name: str) -> None:
    values = frames.read(COLUMNS).columns[name]
    part = schema.select([name])
    back = decoded(part, part.encode(frames.read(COLUMNS)).numbers)[name]
    assert np.array_equal(back.missing, values.missing)
    assert back.dtype == values.dtype
    assert (back.levels, back.ordered) == (values.levels, values.ordered)
    if KINDS[name] is Real:
        x, y = (v.known.astype(np.float64) for v in (values, back))
        np.testing.assert_allclose(y, x, rtol=3e-6, atol=1e-6 * float(np.std(x)))
        if "rain" in name:
            assert np.array_equal(x == 0, y == 0)
    else:
        assert np.array_equal(back.known, values.known)
        assert back.known.dtype == values.known.dtype


def test_numbers_are_of_ordinary_size(schema: Schema) -> None:
    numbers = schema.encode(frames.read(COLUMNS)).numbers
    for i, one in enumerate(schema.columns):
        if isinstance(one, Real):
            assert 0.2 < numbers[:, i].std() < 5, one.name
            assert np.abs(numbers[:, i]).max() < 20, one.name


def test_densities_are_in_the_tables_units(schema: Schema) -> None:
    """Per unit on linear scales, per second for times; probabilities have no unit."""
    coded = schema.encode(frames.read(COLUMNS))
    log_prob = dict(zip(schema.names, coded.log_prob.T, strict=True))
    left = {c.name: c.log_left + math.log(c.beyond.left) for c in schema.columns}
    for name, column in zip(schema.names, schema.columns, strict=True):
        for end in column.beyond[:2]:  # the outermost values have less
            outer = coded.numbers[:, schema.names.index(name)]
            at = (
                (outer > np.float32(end.outer[0])) & (outer <= np.float32(end.outer[1])) & bool(end)
            )
            log_prob[name] = log_prob[name] + at * math.log(column.beyond.left / end.left)
    scale: dict[str, Any] = {c.name: c.ruler.scale for c in schema.columns if isinstance(c, Real)}
    for name in ("height", "rain"):
        density = ~np.isclose(log_prob[name], left[name], atol=1e-12)
        assert np.allclose(log_prob[name][density], left[name] - math.log(scale[name].width))
    probable = np.isclose(log_prob["rain"], left["rain"], atol=1e-12)
    assert np.array_equal(probable, COLUMNS["rain"] == 0)
    for name in ("city", "carat", "day", "wait", "code", "large", "holed count"):
        assert np.allclose(log_prob[name], left[name], atol=1e-12), name
    log, seconds = scale["income"], scale["seen"].width / 1e9
    slope = 1 / (log.width * (COLUMNS["income"] - log.offset))
    np.testing.assert_allclose(log_prob["income"], left["income"] + np.log(slope))
    assert np.allclose(log_prob["seen"], left["seen"] - math.log(seconds))


def test_a_hole_has_a_probability_and_not_a_density(schema: Schema) -> None:
    frame = frames.read(COLUMNS)
    coded = schema.encode(frame)
    for i, one in enumerate(schema.columns):
        missing = frame.columns[one.name].missing
        left = one.log_left + math.log(one.beyond.left)
        assert np.allclose(coded.log_prob[missing, i], left)
        assert len(np.unique(coded.numbers[missing, i])) == one.optional
        low, high = one.within
        inside = (coded.numbers[:, i] > low) & (coded.numbers[:, i] <= high)
        assert np.array_equal(inside, ~missing), one.name


def test_json_keeps_every_kind_of_column(schema: Schema) -> None:
    extra, _ = infer(
        frames.read({"a": rng.choice([1.0, 2.5, 9.0, 31.0], N), "b": rng.random(N)}),
        {"a": "ordered"},
        {"b": (0.0, 1.0)},
    )
    assert isinstance(extra.columns[0], Ordered)
    for one in (schema, extra):
        words = json.dumps(one.to_dict(), allow_nan=False)
        again = Schema.from_dict(json.loads(words))
        assert again.columns == one.columns
        assert again.form == one.form
        assert json.dumps(again.to_dict()) == json.dumps(one.to_dict())


def test_a_restored_schema_gives_the_same_numbers(schema: Schema) -> None:
    frame = frames.read(COLUMNS)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict()))).encode(frame)
    coded = schema.encode(frame)
    assert np.array_equal(again.numbers, coded.numbers)
    assert np.array_equal(again.log_prob, coded.log_prob)


@pytest.mark.parametrize("key", ["b", 1])
def test_kinds_and_support_are_by_name_or_position(key: str | int) -> None:
    frame = frames.read({"a": rng.normal(size=200), "b": rng.integers(0, 9, 200)})
    for kind, expected in (
        ("categorical", Categories),
        ("ordered", Ordered),
        ("integer", Gridded),
        ("continuous", Real),
    ):
        found, _ = infer(frame, {key: kind})
        assert type(found.columns[1]) is expected, kind
        assert type(found.columns[0]) is Real
    limited, _ = infer(frame, None, {key: (0, 20)})
    assert limited.columns[1].ruler.hard  # type: ignore[attr-defined]
    assert limited.columns[1].ruler.high == 20  # type: ignore[attr-defined]
    assert not limited.columns[0].ruler.hard  # type: ignore[attr-defined]


def test_one_kind_for_all_numbers() -> None:
    """Continuous columns have no atoms; strings and booleans stay what they are."""
    table = {"city": ["a", "b"] * 100, "rain": COLUMNS["rain"][:200], "n": rng.poisson(2, 200)}
    found, idle = infer(frames.read(table), "continuous")
    assert not idle.columns
    assert [type(one) for one in found.columns] == [Categories, Real, Real]
    assert [one.atoms for one in found.columns[1:]] == [(), ()]  # type: ignore[attr-defined]


def test_a_frequent_value_is_an_atom_and_one_row_is_none() -> None:
    x = np.random.default_rng(1).gamma(2.0, 3.0, 60)
    assert column(x).atoms == ()  # type: ignore[attr-defined]
    many = np.where(np.arange(N) % 20 == 0, 4.5, np.random.default_rng(1).gamma(2.0, 3.0, N))
    assert column(many).atoms == (4.5,)  # type: ignore[attr-defined]


def test_values_never_leave_a_stated_support() -> None:
    found = column(rng.random(100), support={"a": (0.0, 1.0)})
    head: Any = found.head((4,), 0)
    ends = np.array([head.low, head.high], np.float32).astype(np.float64)
    back = found.decode(ends, np.random.default_rng(0)).array
    u = np.array([0.0, 0.5, 1.0])
    beyond = [found.drawn_beyond(side, u) for side in (-1, 1)]
    every = np.concatenate([back, *beyond])
    assert every.min() >= 0
    assert every.max() <= 1


def test_rare_categories_are_pooled_if_asked() -> None:
    table = {"a": ["a"] * 50 + ["b"] * 30 + ["x"] * 3 + ["y"] * 1}
    values = frames.read(table).columns["a"]
    found: Any = column(table["a"], pool_below=10)
    assert found.reason == "2 categories, 2 rare ones pooled"
    assert (found.levels, found.pooled, found.shares) == (("a", "b"), ("x", "y"), (0.75, 0.25))
    coded = found.encode(values)
    assert set(coded.numbers.tolist()) == {0, 1, 2}
    assert np.exp(coded.log_prob - found.log_left)[[0, 60, 82, 83]].tolist() == pytest.approx(
        [1, 1, 0.75, 0.25]
    )
    drawn = found.decode(np.array([0.0, 1.0, *[2.0] * 400]), np.random.default_rng(0)).array
    assert drawn[:2].tolist() == ["a", "b"]
    assert abs(drawn.tolist().count("x") - 300) < 45  # five standard deviations
    assert column(table["a"]).levels == ("a", "b", "x", "y")  # type: ignore[attr-defined]


def test_pooled_numbers_are_categories_too() -> None:
    x = np.array([1] * 50 + [2] * 40 + [3] * 2 + [4] * 1)
    found: Any = column(x, kinds={"a": "categorical"}, pool_below=10)
    assert (found.levels, found.pooled) == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (
            {"a": [1.0, math.inf]},
            {},
            "column 'a' has 1 infinite values; drop those rows, or make them missing.",
        ),
        (
            {"a": [1.0, 2.5]},
            {"kinds": {"b": "integer"}},
            "there is no column 'b' among a; check the spelling.",
        ),
        (
            {"a": [1.0, 2.5]},
            {"kinds": {"a": "number"}},
            "the kind of 'a' must be continuous, integer, ordered or categorical, but is 'number'.",
        ),
        (
            {"a": [1.0, 2.5]},
            {"kinds": "number"},
            "the kind of every column must be continuous, integer, ordered or categorical, "
            "but is 'number'.",
        ),
        (
            {"a": ["x", "y"]},
            {"kinds": {"a": "integer"}},
            "column 'a' must be categorical, since it holds strings, but was named integer; "
            "leave its kind out.",
        ),
        (
            {"a": [True, False]},
            {"kinds": {"a": "continuous"}},
            "column 'a' must be categorical, since it holds booleans, but was named continuous;",
        ),
        (
            {"a": np.sqrt(np.arange(2.0, 60.0)).tolist()},
            {"kinds": {"a": "integer"}},
            "column 'a': the values must be multiples of one step to be integer, but are not; "
            "leave the kind out.",
        ),
        (
            {"a": [0.5, 2.5, 7.25]},
            {"support": {"a": (0, 5)}},
            "column 'a': the values must lie in the support [0, 5], but go from 0.5 to 7.25; "
            "widen it, or drop those rows.",
        ),
        (
            {"a": [0.5, 2.5, 7.25]},
            {"support": {"a": (5, 0)}},
            "low must be below high",
        ),
    ],
)
def test_what_cannot_be_modelled(values: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        infer(frames.read(values), **options)


def test_tables_must_have_the_columns_they_had(schema: Schema) -> None:
    other = {name: values for name, values in COLUMNS.items() if name != "city"}
    with pytest.raises(
        ValueError, match="the table must have the column 'city', but has height, member"
    ):
        schema.encode(frames.read(other))
    text = {**COLUMNS, "height": np.array(["tall"] * N)}
    with pytest.raises(
        ValueError,
        match="column 'height' must hold numbers, as it did in training, but holds strings;",
    ):
        schema.encode(frames.read(text))
    numbers = {**COLUMNS, "day": np.arange(N)}
    with pytest.raises(
        ValueError, match="column 'day' must hold times, as it did in training, but holds int64;"
    ):
        schema.encode(frames.read(numbers))


def test_all_that_is_wrong_with_a_table_is_told_at_once(schema: Schema) -> None:
    wrong = {**COLUMNS, "height": np.array(["tall"] * N), "day": np.arange(N)}
    told = "column 'height' must hold numbers, .* column 'day' must hold times"
    with pytest.raises(ValueError, match=told):
        schema.encode(frames.read(wrong))
    del wrong["city"]
    with pytest.raises(ValueError, match=f"must have the column 'city', .* {told}"):
        schema.encode(frames.read(wrong))


def test_columns_are_found_by_name(schema: Schema) -> None:
    turned = {name: COLUMNS[name] for name in reversed(COLUMNS)} | {"extra": np.arange(N)}
    assert np.array_equal(
        schema.encode(frames.read(turned)).numbers, schema.encode(frames.read(COLUMNS)).numbers
    )


def test_a_retyped_table_is_the_same_table(schema: Schema) -> None:
    """Numbers spelled as strings, integers as floats, times in another unit, booleans as text."""
    frame = frames.read(COLUMNS)
    coded = schema.encode(frame)
    retyped = {
        **COLUMNS,
        "height": np.array([repr(float(x)) for x in COLUMNS["height"]], object),
        "code": COLUMNS["code"].astype(np.float64),
        "tiny": COLUMNS["tiny"].astype(np.float32),
        "day": COLUMNS["day"].astype("datetime64[us]"),
        "member": np.where(COLUMNS["member"], "True", "False").astype(object),
    }
    again = schema.encode(frames.read(retyped))
    assert np.array_equal(again.numbers, coded.numbers)
    assert np.array_equal(again.log_prob, coded.log_prob)
