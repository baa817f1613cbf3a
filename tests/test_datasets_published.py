"""GAS, HEPMASS and MINIBOONE on small files of the published formats."""

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.datasets.published import gas, hepmass, miniboone, uncorrelated, undiscrete

Table = NDArray[np.float64]


def scaled(rows: Table, by: Table, ddof: int) -> NDArray[np.float32]:
    columns = []
    for x, reference in zip(rows.T, by.T, strict=True):
        mean = sum(reference) / len(reference)
        variance = sum((reference - mean) ** 2) / (len(reference) - ddof)
        columns.append((x - mean) / variance**0.5)
    return np.array(columns, dtype=np.float32).T


def save_gas(root: Path, columns: dict[str, Table]) -> None:
    (root / "gas").mkdir()
    records = np.empty(len(columns["Time"]), dtype=[(name, np.float64) for name in columns])
    for name, values in columns.items():
        records[name] = values
    np.save(root / "gas" / "ethylene_CO.npy", records)


def test_gas_drops_copies_and_standardizes_by_all_rows(tmp_path: Path) -> None:
    a, b, noise = np.random.default_rng(0).normal(size=(3, 211))
    near, mirror = a + 0.01 * noise, -a
    columns = {
        "Time": noise,
        "Meth": noise,
        "Eth": noise,
        "s1": a,
        "s2": b,
        "s3": near,
        "s4": mirror,
    }
    save_gas(tmp_path, columns)
    split = gas(tmp_path, cache=tmp_path / "cache")
    # Of two copies the first goes; a correlation of −1 is not above 0.98.
    assert split.columns == ("s2", "s3", "s4")
    rows = np.stack([b, near, mirror], 1)
    expected = scaled(rows, rows, ddof=1)
    assert (len(split.train), len(split.validation), len(split.test)) == (171, 19, 21)
    got = np.concatenate([split.train, split.validation, split.test])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_uncorrelated_recounts_after_each_column() -> None:
    a, b, c = np.random.default_rng(1).normal(size=(3, 500))
    rows = np.stack([a, a + 0.01 * b, c, a + 0.01 * c, c + 0.01 * a], 1)
    assert uncorrelated(rows) == [3, 4]


def test_gas_is_not_read_from_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "gas").mkdir()
    (tmp_path / "gas" / "ethylene_CO.pickle").write_bytes(pickle.dumps([1]))
    with pytest.raises(
        FileNotFoundError, match="holds only the pickle, which could run code when read"
    ):
        gas(tmp_path, cache=tmp_path / "cache")
    np.save(tmp_path / "gas" / "ethylene_CO.npy", np.array([{}], dtype=object))
    with pytest.raises(
        ValueError, match=r"must be a plain \.npy file, but is not .*; make it again\."
    ):
        gas(tmp_path, cache=tmp_path / "cache")


def test_gas_needs_named_columns(tmp_path: Path) -> None:
    save_gas(tmp_path, {"Time": np.zeros(3), "Meth": np.zeros(3), "s1": np.zeros(3)})
    with pytest.raises(ValueError, match="must have a column 'Eth', but has Time, Meth, s1; docs"):
        gas(tmp_path, cache=tmp_path / "cache")


def save_hepmass(root: Path, part: str, rows: Table, extra: bool) -> None:
    (root / "hepmass").mkdir(exist_ok=True)
    names = ["# label", *(f"f{i}" for i in range(rows.shape[1] - 1)), *(["mass"] if extra else [])]
    rows = np.column_stack([rows, np.full(len(rows), 1000.0)]) if extra else rows
    path = root / "hepmass" / f"1000_{part}.csv"
    np.savetxt(path, rows, fmt="%.18e", delimiter=",", header=",".join(names), comments="")


def collisions(n: int, seed: int) -> Table:
    """Returns label, a continuous feature, a coin, and one with many ties above its minimum."""
    rng = np.random.default_rng(seed)
    tied = np.where(rng.random(n) < 0.5, 7.0, rng.random(n))
    return np.column_stack([rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 2, n), tied])


def test_hepmass_keeps_the_signal_and_drops_what_the_published_program_drops(
    tmp_path: Path,
) -> None:
    train, test = collisions(300, 0), collisions(90, 1)
    save_hepmass(tmp_path, "train", train, extra=False)
    save_hepmass(tmp_path, "test", test, extra=True)
    split = hepmass(tmp_path, cache=tmp_path / "cache")
    # The coin's smallest value repeats; that of the tied feature does not, though its commonest
    # does.
    assert split.columns == ("f0", "f2")
    signal, held = (rows[rows[:, 0] == 1][:, [1, 3]] for rows in (train, test))
    expected, tail = scaled(signal, signal, ddof=1), int(0.1 * len(signal))
    np.testing.assert_allclose(split.train, expected[:-tail], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(split.validation, expected[-tail:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(split.test, scaled(held, signal, ddof=1), rtol=1e-5, atol=1e-6)


def test_undiscrete_counts_the_smallest_value() -> None:
    rows = np.random.default_rng(2).integers(0, 12, (60, 20)).astype(np.float64)
    expected = [i for i, x in enumerate(rows.T) if sorted(Counter(x).items())[0][1] <= 5]
    assert 0 < len(expected) < 20
    assert undiscrete(rows) == expected


def test_hepmass_files_must_match(tmp_path: Path) -> None:
    save_hepmass(tmp_path, "train", collisions(40, 0), extra=False)
    save_hepmass(tmp_path, "test", collisions(40, 0), extra=False)
    with pytest.raises(ValueError, match=r"must have the columns of 1000_train\.csv and one more"):
        hepmass(tmp_path, cache=tmp_path / "cache")


def save_miniboone(root: Path, rows: NDArray[np.generic]) -> None:
    (root / "miniboone").mkdir()
    np.save(root / "miniboone" / "data.npy", rows)


def test_miniboone_is_cut_as_stored_and_standardized_without_test(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).normal(size=(123, 4)) * [1, 2, 3, 4] + 5
    save_miniboone(tmp_path, rows)
    split = miniboone(tmp_path, cache=tmp_path / "cache")
    assert (len(split.train), len(split.validation), len(split.test)) == (100, 11, 12)
    got = np.concatenate([split.train, split.validation, split.test])
    np.testing.assert_allclose(got, scaled(rows, rows[:111], ddof=0), rtol=1e-5, atol=1e-6)
    assert split.columns == ("feature_0", "feature_1", "feature_2", "feature_3")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            np.zeros(5),
            r"must hold real numbers of shape \(N, D\), "
            r"but holds float64 of shape \(5,\); download",
        ),
        (
            np.zeros((5, 2), dtype=int),
            r"must hold real numbers .* but holds int64 of shape \(5, 2\)",
        ),
        (
            np.random.default_rng(0).random((9, 2)),
            r"there must be at least 10 rows, but there are 9",
        ),
        (np.ones((20, 2)), r"every column must be finite and vary, but 'feature_0' does not"),
        (
            np.full((20, 1), np.nan),
            r"every column must be finite and vary, but 'feature_0' does not",
        ),
    ],
)
def test_miniboone_errors(tmp_path: Path, rows: NDArray[np.generic], message: str) -> None:
    save_miniboone(tmp_path, rows)
    with pytest.raises(ValueError, match=message):
        miniboone(tmp_path, cache=tmp_path / "cache")
