"""The four tables: columns by the stated rule, rows without gaps, noise over the rounding step."""

import csv
import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest

from nits.datasets.continuous import TABLES, complete_rows, table

HEADER = ["carat", "cut", "color", "clarity", "depth", "table", "price", "x", "y", "z"]
REAL = pytest.mark.skipif(not os.environ.get("NITS_DATA"), reason="NITS_DATA is not set")


def write_table(root: Path, name: str, header: list[str], rows: list[list[str]]) -> None:
    (root / "tables").mkdir()
    with gzip.open(root / "tables" / f"{name}.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def diamonds(n: int) -> list[list[str]]:
    """Returns n rows; in every tenth a value is missing, not always in a column that is kept."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        numbers = [f"{v:.2f}" for v in rng.random(6) * 10]
        row = [
            numbers[0],
            "Ideal",
            "E",
            "SI2",
            *numbers[1:3],
            str(rng.integers(300, 9000)),
            *numbers[3:],
        ]
        if i % 10 == 4:
            row[i // 10 % 10] = ["", "NA", "?", "nan"][i // 10 % 4]
        rows.append(row)
    return rows


def test_table_is_complete_shuffled_dequantized_and_standardized(tmp_path: Path) -> None:
    lines = diamonds(200)
    write_table(tmp_path, "diamonds", HEADER, lines)
    split = table("diamonds", tmp_path, cache=tmp_path / "cache")
    kept = [
        [float(line[i]) for i in (0, 4, 5, 6, 7, 8, 9)]
        for i_, line in enumerate(lines)
        if i_ % 10 != 4
    ]
    rng = np.random.default_rng(0)
    order, noise = rng.permutation(180), rng.random((180, 7))
    rows = np.array([kept[i] for i in order]) + noise * [0.01, 0.1, 1, 1, 0.01, 0.01, 0.01]
    expected = (rows - rows[:144].mean(0)) / rows[:144].std(0)
    for part, reference in zip(
        (split.train, split.validation, split.test), np.split(expected, [144, 162]), strict=True
    ):
        np.testing.assert_allclose(part, reference, rtol=1e-5, atol=1e-6)
    assert split.columns == ("carat", "depth", "table", "price", "x", "y", "z")


def test_table_errors(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"There is no table 'iris'; the known ones are gas_turbine"
    ):
        table("iris", tmp_path)
    write_table(tmp_path, "diamonds", HEADER[:-1], [])
    with pytest.raises(
        ValueError, match=r"must have a column 'z', but has carat, cut, .*; download it again"
    ):
        table("diamonds", tmp_path, cache=tmp_path / "cache")


def test_table_needs_ten_rows(tmp_path: Path) -> None:
    write_table(tmp_path, "diamonds", HEADER, diamonds(9))
    with pytest.raises(
        ValueError, match="must have at least 10 complete rows, but has 8; download it again"
    ):
        table("diamonds", tmp_path, cache=tmp_path / "cache")


@pytest.mark.slow
@REAL
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gas_turbine", 36_733),
        ("beijing_air", 382_168),
        ("diamonds", 53_940),
        ("magic_gamma", 19_020),
    ],
)
def test_published_table(name: str, count: int, tmp_path: Path) -> None:
    split = table(name, cache=tmp_path)
    tenth = count // 10
    assert [len(p) for p in (split.train, split.validation, split.test)] == [
        count - 2 * tenth,
        tenth,
        tenth,
    ]
    train = np.asarray(split.train, dtype=np.float64)
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(train.std(0), 1, atol=1e-6)


@pytest.mark.slow
@REAL
@pytest.mark.parametrize("name", TABLES)
def test_columns_and_steps_follow_the_rule(name: str) -> None:
    path = Path(os.environ["NITS_DATA"]) / "tables" / f"{name}.csv.gz"
    with gzip.open(path, "rt") as file:
        header = file.readline().strip().split(",")
    numeric = tuple(c for c in header if c not in {"wd", "station", "cut", "color", "clarity"})
    rows = complete_rows(path, numeric)
    chosen = {}
    for column, x in zip(numeric, rows.T, strict=True):
        values, counts = np.unique(x, return_counts=True)
        if len(values) >= 100 and counts.max() <= len(x) / 2:
            chosen[column] = smallest_gap(values) if name == "magic_gamma" else decimal_step(x)
    assert chosen == pytest.approx(TABLES[name], rel=1e-5)


def smallest_gap(values: np.ndarray) -> float:
    return float(np.diff(values).min())


def decimal_step(x: np.ndarray) -> float:
    """Returns the largest power of ten of which four fifths of the numbers are multiples."""
    for power in range(3, -9, -1):
        scaled = x / 10.0**power
        if (np.abs(scaled - np.rint(scaled)) < 1e-6).mean() >= 0.8:
            return 10.0**power
    return math.nan
