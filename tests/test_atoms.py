"""Atoms: spikes that a smooth model does not explain, and no others."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import atoms
from nits.tables.evidence.scales import Linear
from nits.tables.evidence.views import Cells

rng = np.random.default_rng(0)
SMOOTH = np.bincount(np.clip(np.round(rng.normal(50, 12, 5000)), 0, 99).astype(int), minlength=100)
FLAT = np.full(24, 200)


def found(counts: NDArray[np.int64]) -> list[int]:
    x = np.flatnonzero(counts).astype(float)
    view = Cells.on(Linear(50.0, 12.0), x, 1.0)
    mask = atoms.find(view, counts[counts > 0], np.full(len(x), np.log(100)))
    return [int(value) for value in x[mask]]


def spiked(spikes: dict[int, int], counts: NDArray[np.int64] = SMOOTH) -> NDArray[np.int64]:
    higher = counts.copy()
    for place, rows in spikes.items():
        higher[place] += rows
    return higher


@pytest.mark.parametrize("counts", [SMOOTH, SMOOTH // 50, FLAT])
def test_smooth_counts_have_none(counts: NDArray[np.int64]) -> None:
    assert found(counts) == []


@pytest.mark.parametrize(
    "spikes",
    [{0: 300}, {0: 60_000}, {0: 60_000, 99: 40}, {20: 150, 80: 150}, {0: 500, 30: 2000, 80: 400}],
)
def test_spikes_are_found(spikes: dict[int, int]) -> None:
    assert found(spiked(spikes)) == list(spikes)


def test_chance_makes_none() -> None:
    for seed in range(40):
        draws = np.round(np.random.default_rng(seed).normal(50, 12, 300)).astype(int)
        assert found(np.bincount(draws, minlength=100)) == []


def test_there_are_at_most_so_many() -> None:
    comb = np.where(np.arange(1000) % 5 == 0, 500, 5)
    assert len(found(comb)) == atoms.MOST_ATOMS


def test_some_values_are_left_to_the_smooth_model() -> None:
    assert len(found(np.array([1000, 1, 1, 900, 1]))) <= 2
    assert found(np.array([1000, 1, 900])) == []
