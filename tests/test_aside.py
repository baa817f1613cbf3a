"""Columns set aside: constants, empty ones, identifiers, saved indices; and those that are not."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import aside
from nits.tables.evidence.aside import Constant, Empty, Identifier, Index

rng = np.random.default_rng(0)
WORDS = np.array([f"w{i}" for i in range(10_000)], object)


@pytest.mark.parametrize(
    ("known", "name", "found"),
    [
        (np.empty(0), "", Empty()),
        (np.full(9, 2.5), "", Constant(2.5)),
        (np.array(["a", "a"], object), "", Constant("a")),
        (np.array([True, True]), "", Constant(True)),
        (np.full(4, np.datetime64("1970-01-02", "s")), "", Constant(86_400, "datetime64[s]")),
        (np.arange(60), "", Index(0)),
        (np.arange(1.0, 61), "", Index(1)),
        (rng.permutation(60)[:40], "Unnamed: 0", Index(0)),
        (rng.permutation(60) + 7, "", Identifier(7, 60, 60)),
        (rng.permutation(100)[:80] * 10 + 10, "", Identifier(10, 80, 80)),
        (WORDS, "", Identifier(None, 10_000, 10_000)),
        (np.append(WORDS, WORDS[:50]), "", Identifier(None, 10_000, 10_050)),
    ],
)
def test_set_aside(known: NDArray[Any], name: str, found: aside.Aside) -> None:
    assert aside.find(known, name) == found


@pytest.mark.parametrize(
    "known",
    [
        rng.choice(WORDS[:3], 50),
        rng.choice(WORDS[:5000], 10_000),
        rng.random(1000) < 0.3,
        rng.normal(size=1000),
        rng.integers(0, 10**9, 1000),
        np.arange(7),
        rng.poisson(3, 50),
        np.datetime64("2024-01-01") + np.arange(500),
        np.arange(100) / 4,
    ],
)
def test_kept(known: NDArray[Any]) -> None:
    assert aside.find(known) is None


def test_reasons_are_a_few_words() -> None:
    assert Empty().reason == "empty"
    assert Constant("x").reason == "constant at 'x'"
    assert Constant(86_400, "datetime64[s]").reason == "constant at 1970-01-02T00:00:00"
    assert Constant(90, "timedelta64[ms]").reason == "constant at 90 milliseconds"
    assert Index(0).reason == "a saved index"
    assert Identifier(None, 9, 9).reason == "an identifier: all 9 values differ"
    assert Identifier(None, 9, 10).reason == "an identifier: 9 of 10 values differ"
