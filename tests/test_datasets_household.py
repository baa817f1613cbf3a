"""POWER against the published protocol, step by step, on a small file of the same format."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.datasets.household import COLUMNS, HEADER, power

FOLDER, NAME = "power", "household_power_consumption"


def write_zip(
    root: Path, lines: list[str], header: str = HEADER, member: str = f"{NAME}.txt"
) -> None:
    (root / FOLDER).mkdir()
    with zipfile.ZipFile(root / FOLDER / f"{NAME}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, "".join(f"{line}\r\n" for line in [header, *lines]))


def household(n: int) -> tuple[list[str], NDArray[np.float64]]:
    """Returns n lines, every seventh with missing values, and the numbers of the complete ones."""
    rng = np.random.default_rng(1)
    lines, rows = [], []
    for i in range(n):
        hour, minute = divmod(1000 + i, 60)
        stamp = f"16/12/2006;{hour % 24:02d}:{minute:02d}:00"
        if i % 7 == 3:
            lines.append(f"{stamp};?;?;?;?;?;?;")
            continue
        values = [f"{v:.3f}" for v in [*rng.random(4) * [9, 1, 250, 30], *rng.integers(0, 40, 3)]]
        lines.append(";".join([stamp, *values]))
        rows.append([*map(float, values), 60.0 * (hour % 24) + minute])
    return lines, np.array(rows)


def protocol(rows: NDArray[np.float64]) -> list[NDArray[np.float32]]:
    """Returns train, validation and test as published."""
    rng = np.random.RandomState(42)
    rng.shuffle(rows)
    n = len(rows)
    rows = rows[:, [0, 2, 4, 5, 6, 7]].copy()
    rows[:, 1] += 0.01 * rng.rand(n)
    rows[:, 0] += 0.001 * rng.rand(n)
    rows[:, 2:5] += rng.rand(n, 3)
    held = n - int(0.1 * n)
    first = held - int(0.1 * held)
    scaled = (rows - rows[:held].mean(0)) / rows[:held].std(0)
    return [part.astype(np.float32) for part in np.split(scaled, [first, held])]


def test_power_follows_the_published_protocol(tmp_path: Path) -> None:
    lines, rows = household(600)
    write_zip(tmp_path, lines)
    split = power(tmp_path, cache=tmp_path / "cache")
    expected = protocol(rows)
    for part, reference in zip((split.train, split.validation, split.test), expected, strict=True):
        np.testing.assert_allclose(part, reference, rtol=1e-6, atol=1e-7)
    assert (split.name, split.columns) == ("power", COLUMNS)


def test_power_needs_the_published_header(tmp_path: Path) -> None:
    write_zip(tmp_path, household(20)[0], header="Date;Time")
    with pytest.raises(
        ValueError,
        match=r"must begin with Date;Time;Global_.*, but begins with Date;Time; download",
    ):
        power(tmp_path, cache=tmp_path / "cache")


def test_power_needs_the_text_in_the_zip(tmp_path: Path) -> None:
    write_zip(tmp_path, [], member="other.txt")
    with pytest.raises(ValueError, match=r"must be a zip file with household_.*\.txt, but is not"):
        power(tmp_path, cache=tmp_path / "cache")


def test_power_needs_a_zip(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / f"{NAME}.zip").write_text("no zip")
    with pytest.raises(ValueError, match=r"must be a zip file .*; download it again\."):
        power(tmp_path, cache=tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NITS_DATA"), reason="NITS_DATA is not set")
def test_published_power(tmp_path: Path) -> None:
    split = power(cache=tmp_path)
    sizes = len(split.train), len(split.validation), len(split.test)
    assert sizes == (1_659_917, 184_435, 204_928)
    both = np.concatenate([split.train, split.validation]).astype(np.float64)
    np.testing.assert_allclose(both.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(both.std(0), 1, atol=1e-6)
