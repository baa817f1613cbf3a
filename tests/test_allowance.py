"""Sizes in a file are held against what the file has."""

from typing import Any

import pytest

from nits.weights.allowance import BLOCKS, COLUMNS, OVERHEAD, SPARE, TIMES, Allowance, share, size

MLP = {"hidden": 8, "blocks": 2, "context": 0, "dropout": 0.1, "codes": None}


def test_what_a_file_has_numbers_for_is_allowed() -> None:
    allowance = Allowance(500)
    allowance.masked_mlp(MLP, [3, 3], [25, 25])
    needed = 8 * (6 + 0 + 4 * 8) + 8 * 50
    assert allowance.left == TIMES * 500 + SPARE - needed - OVERHEAD


def test_many_small_networks_are_counted_too() -> None:
    allowance = Allowance(100)
    for _ in range(200):
        allowance.masked_mlp(MLP, [3, 3], [25, 25])
    allowance.left = OVERHEAD  # as after some more
    with pytest.raises(ValueError, match=r"it asks for a network of more than \d+ numbers, but"):
        allowance.masked_mlp(MLP, [3, 3], [25, 25])


@pytest.mark.parametrize(
    "change",
    [{"hidden": 0}, {"hidden": 501}, {"blocks": BLOCKS + 1}, {"context": -1}, {"codes": True}],
)
def test_sizes_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be an integer from"):
        Allowance(500).masked_mlp({**MLP, **change}, [3, 3], [25, 25])


def test_lines_read_features_that_there_are() -> None:
    about = {"context": 2, "straight": [0, 1], "heard": [2]}
    with pytest.raises(ValueError, match="heard must be an integer from 0 to 1, but is 2"):
        Allowance(500).lines(about, [3, 3])
    Allowance(500).lines({**about, "heard": []}, [3, 3])


CONV: dict[str, Any] = {"size": (4, 2, (1,), 0.0), "context": 0}


def test_images() -> None:
    Allowance(500).causal_conv(CONV, (1, 4, 4), 3, 25)
    with pytest.raises(ValueError, match="the number of columns must be an integer from 1"):
        Allowance(500).causal_conv(CONV, (1, COLUMNS, COLUMNS), 3, 25)
    with pytest.raises(ValueError, match="a dilation must be an integer from 1"):
        Allowance(500).causal_conv({**CONV, "size": (4, 2, (2**31,), 0.0)}, (1, 4, 4), 3, 25)


@pytest.mark.parametrize("value", [None, True, 1.0, "3", [3], 7, -1])
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(ValueError, match="knots must be an integer from 0 to 6, but is"):
        size(value, "knots", 6)
    assert size(6, "knots", 6) == 6


@pytest.mark.parametrize("value", [None, True, 1.0, -0.1, float("nan"), "0"])
def test_what_is_no_share(value: Any) -> None:
    with pytest.raises(ValueError, match=r"dropout must be a number in \[0, 1\), but is"):
        share(value, "dropout")
    share(0, "dropout")
