"""Conditions: from Python values and from text, and one sentence for each that is none."""

import math
from pathlib import Path

import numpy as np
import pytest

import nits
from mixed_table import mixed, small
from nits import NITSDensity
from nits.tables.questions.conditions import (
    Among,
    Condition,
    Other,
    Range,
    Value,
    condition,
    gathered,
    missing,
)
from nits.tables.questions.parser import option, parse


@pytest.fixture(scope="module")
def model() -> NITSDensity:
    table = mixed(200).assign(level=1.0)
    with pytest.warns(UserWarning, match="set aside: 'level'"):
        return small(max_steps=2, support={"rain": (0, math.inf)}).fit(table)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("delay > 30", [("delay", Range("30", None, from_low=False))]),
        ("delay >= -3e2", [("delay", Range("-3e2", None))]),
        ("30 <= age < 40", [("age", Range("30", "40"))]),
        ("40 > age >= 30", [("age", Range("30", "40"))]),
        ("30 < `my age`", [("my age", Range("30", None, from_low=False))]),
        ("age=30:40", [("age", Range("30", "40"))]),
        ("age=:40", [("age", Range(None, "40"))]),
        ("carrier == 'UA'", [("carrier", Value("UA"))]),
        ("carrier = UA", [("carrier", Value("UA"))]),
        ('carrier != "O\'Hare"', [("carrier", Other(("O'Hare",)))]),
        ("origin in {'JFK', LGA}", [("origin", Among(("JFK", "LGA")))]),
        ("origin={JFK, LGA}", [("origin", Among(("JFK", "LGA")))]),
        ("origin not in ['JFK']", [("origin", Other(("JFK",)))]),
        ("size is missing", [("size", missing)]),
        ("size == missing", [("size", missing)]),
        ("size is not missing", [("size", Range())]),
        ("seen > 2024-01-05T12:30", [("seen", Range("2024-01-05T12:30", None, from_low=False))]),
        ("a > 1 and b == 'x and y'", [("a", Range("1", from_low=False)), ("b", Value("x and y"))]),
    ],
)
def test_texts(text: str, wanted: list[tuple[str, Condition]]) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("education=Some college", [("education", Value("Some college"))]),
        ("age=30:40", [("age", Range("30", "40"))]),
        (
            "delay > 30 and age=3",
            [("delay", Range("30", None, from_low=False)), ("age", Value("3"))],
        ),
        ("x='a:b'", [("x", Value("a:b"))]),
        ("x={a, b}", [("x", Among(("a", "b")))]),
        ("seen=2024-01-05T12:30", [("seen", Value("2024-01-05T12:30"))]),
        ("size=missing", [("size", missing)]),
    ],
)
def test_options_of_the_command_line(text: str, wanted: list[tuple[str, Condition]]) -> None:
    assert option(text) == wanted


def random_condition(source: np.random.Generator) -> Condition:
    """Returns any condition, with values as texts."""
    words = ["30", "-1.5", "UA", "New York", "it's", "1e-3", "a:b", "and", "missing", "x=y"]
    one, two = (words[k] for k in source.integers(len(words), size=2))
    kinds: list[Condition] = [
        Value(one),
        Range(one, None, from_low=bool(source.integers(2))),
        Range(None, two, to_high=bool(source.integers(2))),
        Among((one, two)),
        Other((one,)),
        Other((one, two)),
        Range(),
    ]
    return kinds[source.integers(len(kinds))]


def test_conditions_are_read_as_they_are_written() -> None:
    source = np.random.default_rng(0)
    for _ in range(300):
        told = [(f"c{k}", random_condition(source)) for k in range(source.integers(1, 4))]
        text = " and ".join(f"`{name}` {one}" for name, one in told)
        assert parse(text) == told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a clause is empty"),
        ("a > 3,000", "',' is no comparison"),
        ("a > 1 and", "a clause is empty"),
        ("a > 1 or b > 2", "'or' cannot join clauses"),
        ("not a > 1", "'not' cannot join clauses"),
        ("a", "'a' is none"),
        ("a > > 2", "is none"),
        ("1 < a > 0", "must point the same way"),
        ("a in 3", "must be followed by values in braces"),
        ("a in {3 4}", "must be separated by commas"),
        ("a is big", "'is' must be followed by 'missing'"),
        ("a = ", "'=' must be followed by a value"),
        ("a == 'b", "is no part of one"),
    ],
)
def test_texts_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="a condition must look like") as error:
        parse(text)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_nothing_is_evaluated(tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    with pytest.raises(ValueError, match="a condition must look like"):
        parse(f"a > __import__('pathlib').Path('{harm}').touch()")
    assert not harm.exists()


def test_python_values() -> None:
    assert condition("a", 3) == Value(3)
    assert condition("a", (1, None)) == Range(1, None)
    assert condition("a", (math.nan, 2)) == Range(None, 2)
    assert condition("a", slice(1, 2)) == Range(1, 2)
    assert condition("a", {"x", "y"}) == Among(("x", "y"))
    assert condition("a", ["y", "x"]) == Among(("y", "x"))
    assert condition("a", nits.missing) is missing
    assert condition("a", np.array(3)) == Value(3)
    assert gathered({0: 3, "b": 4}, ["a", "b"]) == {"a": [Value(3)], "b": [Value(4)]}
    with pytest.raises(ValueError, match=r"a range of 'a' must be a pair \(low, high\)"):
        condition("a", (1, 2, 3))
    with pytest.raises(ValueError, match="'a' must be given as a value, but is None"):
        condition("a", None)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("town == 'Oslo'", "there is no column 'town' among size, count"),
        ("city == 'Paris'", "'city' must be one of Lima, Oslo, Rome, but is given 'Paris'."),
        ("city > 'Lima'", "'city' has categories without an order, so a range of it means nothing"),
        ("size > tall", "'size' must be given a number, but is given 'tall'."),
        ("seen > soon", "'seen' must be given a time, but is given 'soon'."),
        ("count is missing", "'count' cannot be missing, since no value of it was missing"),
        ({"count": (8, 3)}, "the range of 'count' must hold a value, but count >= 8 and < 3 has"),
        ({"count": (2.2, 2.8)}, "the range of 'count' must hold a value"),
        ({"price": 2.55}, "'price' must be given a value that it can have, but 2.55 is none"),
        ({"count": set()}, "the values of 'count' must be at least one, but there is none."),
        ("count > 3 and count < 2", "the conditions on 'count' must leave a value"),
        ("level == 1", "column 'level' was set aside in training"),
        ("rain < 0", "the range of 'rain' must hold a value, but rain < 0 has none."),
    ],
)
def test_what_cannot_be_given(model: NITSDensity, told: object, message: str) -> None:
    with pytest.raises(ValueError, match="a") as error:
        model.given(told)  # type: ignore[call-overload]
    assert message in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize("told", [2**70, [1, 2**70], (0, 2**70), 1j, b"3"])
def test_what_no_column_can_hold_is_told_with_its_name(model: NITSDensity, told: object) -> None:
    with pytest.raises(TypeError, match=r"^the value given for 'count' must hold "):
        model.given(count=told)


def test_a_number_is_no_condition(model: NITSDensity) -> None:
    with pytest.raises(TypeError, match="given must map columns to their values, or be a text"):
        model.given(5)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("size == 50.123", "'size' has a density, so the single value 50.123 has probability zero"),
        ("town > 3", "there is no column 'town'"),
    ],
)
def test_what_has_no_probability(model: NITSDensity, event: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.probability(event)


def test_what_columns_cannot_be_asked(model: NITSDensity) -> None:
    answer = model.given()
    with pytest.raises(ValueError, match="column 'city' is categorical, so it has no mean"):
        answer.mean("city")
    with pytest.raises(ValueError, match="column 'size' is continuous, so it has no categories"):
        answer.proba("size")
    with pytest.raises(ValueError, match="'size' must not be missing for this, but is given so"):
        model.given(size=nits.missing).mean("size")
    with pytest.raises(ValueError, match="levels must lie in"):
        answer.quantiles("size", 5)
    with pytest.raises(ValueError, match="there is no column 'town'"):
        answer.mean("town")


def test_a_model_with_a_context_needs_it(model: NITSDensity) -> None:
    given = small(context=["city"], max_steps=2).fit(mixed(200)[["city", "size", "count"]])
    rows = given.given(city="Oslo", count=(2, 6)).sample(20, random_state=0)
    assert rows["count"].between(2, 5).all()
    with pytest.raises(ValueError, match="this model was fitted given city, so 'city' must be"):
        given.given(count=3)
    with pytest.raises(ValueError, match="'city' is given to this model and not modelled"):
        given.given(city="Oslo").probability("city == 'Lima'")
