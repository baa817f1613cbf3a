"""Every data set by name."""

from pathlib import Path

import pytest

from nits import datasets
from nits.datasets.catalogue import load, names


@pytest.mark.parametrize("name", names())
def test_every_loader_says_what_it_misses(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"must hold .*; docs/data\.md says where to get it"
    ):
        load(name, tmp_path, cache=tmp_path / "cache")


def test_unknown_name() -> None:
    with pytest.raises(
        ValueError, match="There is no data set 'mnist'; the known ones are power, gas"
    ):
        load("mnist")


@pytest.mark.parametrize(
    "name", ["power", "gas", "hepmass", "miniboone", "bsds300", "table", "load", "names"]
)
def test_the_package_offers_functions(name: str) -> None:
    assert callable(getattr(datasets, name))
