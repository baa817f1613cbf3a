"""Four public tables, reduced to their continuous columns, with noise in place of rounding.

A column is taken if it is numeric, has at least 100 distinct values, and no value is that of more
than half of the complete rows. docs/data.md says how the rounding steps were found.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from nits.datasets.cache import cached
from nits.datasets.source import data_file
from nits.datasets.split import Matrix, Split, make_split, standardize

VERSION = 1
SEED = 0
MISSING = frozenset({"", "?", "na", "nan"})

TABLES: dict[str, dict[str, float]] = {
    "gas_turbine": {
        "AT": 0.001,
        "AP": 0.1,
        "AH": 0.001,
        "AFDP": 0.0001,
        "GTEP": 0.001,
        "TIT": 0.1,
        "TAT": 0.01,
        "TEY": 0.01,
        "CDP": 0.001,
        "CO": 0.0001,
        "NOX": 0.001,
    },
    "beijing_air": {
        "PM2.5": 1.0,
        "PM10": 1.0,
        "SO2": 1.0,
        "NO2": 1.0,
        "CO": 100.0,
        "O3": 1.0,
        "TEMP": 0.1,
        "PRES": 0.1,
        "DEWP": 0.1,
        "WSPM": 0.1,
    },
    "diamonds": {
        "carat": 0.01,
        "depth": 0.1,
        "table": 1.0,
        "price": 1.0,
        "x": 0.01,
        "y": 0.01,
        "z": 0.01,
    },
    # Stored standardized, so a step is the original one divided by the standard deviation.
    "magic_gamma": {
        "fLength": 2.36045e-06,
        "fWidth": 5.45076e-06,
        "fSize": 2.11596e-04,
        "fConc": 5.47007e-04,
        "fConc1": 9.04889e-04,
        "fAsym": 1.68902e-06,
        "fM3Long": 1.96078e-06,
        "fM3Trans": 4.80136e-06,
        "fAlpha": 3.83089e-06,
        "fDist": 1.33812e-06,
    },
}
"""The continuous columns of each table, and the step to which each was rounded."""


def table(name: str, root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns the continuous columns of a table.

    A tenth of the rows is to validate, a tenth to test, and the rest to train on.

    root: Folder with tables/<name>.csv.gz.
    """
    if name not in TABLES:
        raise ValueError(f"There is no table {name!r}; the known ones are {', '.join(TABLES)}.")
    return cached(f"{name}-v{VERSION}", lambda: _prepare(name, root), cache)


def _prepare(name: str, root: Path | None) -> Split:
    columns = tuple(TABLES[name])
    steps = np.array(list(TABLES[name].values()))
    path = data_file(root, "tables", f"{name}.csv.gz")
    rows = complete_rows(path, columns)
    tenth = len(rows) // 10
    if tenth == 0:
        raise ValueError(
            f"{path} must have at least 10 complete rows, but has {len(rows)}; download it again."
        )
    rng = np.random.default_rng(SEED)
    rows = rows[rng.permutation(len(rows))]
    rows = rows + steps * rng.random(rows.shape)
    train, validation, test = rows[: -2 * tenth], rows[-2 * tenth : -tenth], rows[-tenth:]
    return make_split(name, standardize((train, validation, test), train, columns), columns)


def complete_rows(path: Path, columns: tuple[str, ...]) -> Matrix:
    """Returns the named columns of the rows without missing values, in file order, shape (N, D)."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        absent = [column for column in columns if column not in header]
        if absent:
            raise ValueError(
                f"{path} must have a column {absent[0]!r}, but has {', '.join(header)}; "
                "download it again."
            )
        places = [header.index(column) for column in columns]
        rows = [[float(line[i]) for i in places] for line in lines if _complete(line)]
    return np.array(rows, dtype=np.float64).reshape(-1, len(columns))


def _complete(line: list[str]) -> bool:
    return not any(value.strip().lower() in MISSING for value in line)
