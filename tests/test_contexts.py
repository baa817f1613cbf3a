"""What is given: leading values and contexts that a model has never seen, or cannot have."""

import datetime
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from mixed_table import mixed, small
from nits.tables.estimator import NITSDensity
from nits.tables.validate import TableWarning

GIVEN = ["city", "count", "size"]


@cache
def conditional() -> NITSDensity:
    return small(context=GIVEN, max_steps=2, support={"count": (0, 60)}).fit(mixed())


@cache
def joint() -> NITSDensity:
    return small(order=["city", "member", "count", "size", "rain", "seen", "price"]).fit(mixed())


def row(**changes: Any) -> dict[str, list[Any]]:
    every: dict[str, Any] = {"city": "Oslo", "count": 3, "size": 50.0} | changes
    return {name: [value] for name, value in every.items()}


NEVER: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown level": ({"city": "Paris"}, "'city' never had 'Paris'"),
    "a hole": ({"count": None}, "'count' never had a missing value"),
    "far away": ({"size": 1e30}, "'size' never came near 1e\\+30"),
    "far below": ({"size": -1e30}, "'size' never had -1e\\+30"),
}


@pytest.mark.parametrize("name", NEVER)
def test_a_context_never_seen_is_told_of_and_cannot_be_sampled(name: str) -> None:
    changes, message = NEVER[name]
    with pytest.raises(ValueError, match=f"must be like the training rows, but {message}"):
        conditional().sample(2, given=row(**changes))
    table = mixed().iloc[:3].assign(**changes)
    with pytest.warns(TableWarning, match=f"in training {message}: the model reads the nearest"):
        assert np.isfinite(conditional().score_samples(table)).all()


def test_a_usual_context_is_not_told_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        conditional().score_samples(mixed(seed=5))
        assert len(conditional().sample(2, given=row(city=None))) == 2


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_contexts_are_refused(value: float) -> None:
    message = "column 'size' has 1 infinite values; drop those rows, or make them missing."
    with pytest.raises(ValueError, match=message):
        conditional().sample(2, given=row(size=value))
    with pytest.raises(ValueError, match=message):
        conditional().score_samples(mixed().iloc[:1].assign(size=value))


def test_contexts_outside_the_support_are_refused() -> None:
    with pytest.raises(ValueError, match="for 'count' must lie in its support, but is 61; drop"):
        conditional().sample(2, given=row(count=61))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown level": ({"city": "Paris"}, "given for 'city' must be one .* but is 'Paris'"),
    "a fraction": ({"count": 3.5}, "given for 'count' must be one .* but is 3.5"),
    "infinity": ({"count": np.inf}, "given for 'count' must be one .* but is inf"),
    "a hole": ({"count": np.nan}, "given for 'count' must be one .* but is nan"),
    "a word": ({"count": "many"}, "column 'count' must hold numbers"),
    "too large a float": ({"count": 1e30}, "given for 'count' must be one that"),
    "too large": ({"count": 10**30}, "given for 'count' must hold integers of 64 bits"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_be_given(name: str) -> None:
    changes, message = REFUSED[name]
    good: dict[str, Any] = {"city": "Oslo", "member": True, "count": 3}
    with pytest.raises((ValueError, TypeError), match=message):
        joint().sample(2, given=good | changes)


@pytest.mark.parametrize(("text", "value"), [("false", False), ("TRUE", True), (0, False)])
def test_booleans_may_be_spelled(text: Any, value: bool) -> None:
    drawn = joint().sample(3, given={"city": "Oslo", "member": text}, random_state=0)
    assert drawn["member"].tolist() == [value] * 3


@pytest.mark.parametrize("day", [np.datetime64("2024-01-03"), datetime.date(2024, 1, 3)])
def test_times_may_be_given(day: Any) -> None:
    model = small(order=["seen"], max_steps=2).fit(mixed()[["seen"]])
    drawn = model.sample(2, given={"seen": day})
    assert drawn["seen"].astype(str).tolist() == ["2024-01-03"] * 2


def test_values_of_a_context_stand_in_lists() -> None:
    with pytest.raises(TypeError, match=r"^column 'city' must be a list of values, but is of the "):
        conditional().sample(2, given={"city": "Oslo", "count": [3], "size": [50.0]})


def test_given_must_be_a_mapping() -> None:
    with pytest.raises(TypeError, match="given must map columns to their values, but is a DataF"):
        joint().sample(2, given=mixed())
