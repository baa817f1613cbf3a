"""GAS, HEPMASS and MINIBOONE, from the files and by the rules of Papamakarios et al. (2017)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.datasets.cache import cached
from nits.datasets.source import data_file, data_root
from nits.datasets.split import Matrix, Split, cut, cut_tail, make_split, standardize

VERSION = 1
NOT_SENSORS = ("Meth", "Eth", "Time")
MAX_CORRELATION = 0.98
MAX_REPEATS = 5


def gas(root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns GAS, the sensors of a gas mixture without those that nearly repeat another.

    root: Folder with gas/ethylene_CO.npy, made from the published pickle as docs/data.md says.
    """
    return cached(f"gas-v{VERSION}", lambda: _prepare_gas(root), cache)


def hepmass(root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns HEPMASS, the features of particle collisions of class 1 that are not discrete.

    root: Folder with hepmass/1000_train.csv and hepmass/1000_test.csv.
    """
    return cached(f"hepmass-v{VERSION}", lambda: _prepare_hepmass(root), cache)


def miniboone(root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns MINIBOONE, the features of neutrino events.

    root: Folder with miniboone/data.npy.
    """
    return cached(f"miniboone-v{VERSION}", lambda: _prepare_miniboone(root), cache)


def _prepare_gas(root: Path | None) -> Split:
    records = _load(_gas_file(root))
    names = records.dtype.names or ()
    absent = [name for name in NOT_SENSORS if name not in names]
    if absent:
        raise ValueError(
            f"ethylene_CO.npy must have a column {absent[0]!r}, "
            f"but has {', '.join(names) or 'no names'}; docs/data.md says how to make it."
        )
    sensors = [name for name in names if name not in NOT_SENSORS]
    rows = np.column_stack([records[name].astype(np.float64) for name in sensors])
    kept = uncorrelated(rows)
    rows, columns = rows[:, kept], tuple(sensors[i] for i in kept)
    return make_split("gas", standardize(cut(rows), rows, columns, ddof=1), columns)


def _gas_file(root: Path | None) -> Path:
    folder = data_root(root) / "gas"
    if (folder / "ethylene_CO.pickle").is_file() and not (folder / "ethylene_CO.npy").is_file():
        raise FileNotFoundError(
            f"{folder} must hold ethylene_CO.npy, but holds only the pickle, which could run code "
            "when read; docs/data.md says how to convert it."
        )
    return data_file(root, "gas", "ethylene_CO.npy")


def uncorrelated(rows: Matrix) -> list[int]:
    """Returns the columns that remain when the first that correlates with another is dropped.

    This is repeated until no two columns correlate by more than 0.98.
    """
    close: NDArray[np.bool_] = np.atleast_2d(np.corrcoef(rows, rowvar=False)) > MAX_CORRELATION
    kept = list(range(rows.shape[1]))
    while True:
        # Every column is close to itself, so a count of one is its own.
        counts = close[np.ix_(kept, kept)].sum(axis=1)
        if not (counts > 1).any():
            return kept
        del kept[int(np.argmax(counts > 1))]


def _prepare_hepmass(root: Path | None) -> Split:
    train_file, test_file = (
        data_file(root, "hepmass", f"1000_{part}.csv") for part in ("train", "test")
    )
    names = _header(train_file)
    if names != _header(test_file)[:-1]:
        raise ValueError(
            f"{test_file} must have the columns of {train_file.name} and one more, but has others; "
            "download both files again."
        )
    signal = _signal(train_file, len(names))
    test = _signal(test_file, len(names))
    train, validation = cut_tail(signal)
    kept = undiscrete(signal)
    parts = train[:, kept], validation[:, kept], test[:, kept]
    columns = tuple(names[1 + i] for i in kept)
    return make_split("hepmass", standardize(parts, signal[:, kept], columns, ddof=1), columns)


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [name.strip() for name in file.readline().split(",")]


def _signal(path: Path, width: int) -> Matrix:
    """Returns the features of the rows whose label, the first column, is 1."""
    rows = np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(width), ndmin=2)
    return rows[rows[:, 0] == 1, 1:]


def undiscrete(rows: Matrix) -> list[int]:
    """Returns the columns whose smallest value occurs at most five times.

    The protocol means the most common value, but the published program counts the smallest one, and
    papers report on the columns that it keeps.
    """
    repeats = (rows == rows.min(axis=0)).sum(axis=0)
    return [int(i) for i in np.flatnonzero(repeats <= MAX_REPEATS)]


def _prepare_miniboone(root: Path | None) -> Split:
    path = data_file(root, "miniboone", "data.npy")
    stored = _load(path)
    if stored.ndim != 2 or stored.dtype.kind != "f":
        raise ValueError(
            f"{path} must hold real numbers of shape (N, D), but holds {stored.dtype} of shape "
            f"{stored.shape}; download it again."
        )
    rows = stored.astype(np.float64)
    columns = tuple(f"feature_{i}" for i in range(rows.shape[1]))
    return make_split("miniboone", standardize(cut(rows), cut_tail(rows)[0], columns), columns)


def _load(path: Path) -> NDArray[Any]:
    """Reads a .npy file, but no pickle inside one."""
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{path} must be a plain .npy file, but is not ({error}); make it again."
        ) from None
    return array
