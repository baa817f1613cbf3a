"""POWER: the electricity of one household by the minute, as Papamakarios et al. (2017) have it."""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from nits.datasets.cache import cached
from nits.datasets.source import data_file
from nits.datasets.split import Matrix, Split, cut, make_split, standardize

VERSION = 1
MEMBER = "household_power_consumption.txt"
HEADER = (
    "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;"
    "Sub_metering_1;Sub_metering_2;Sub_metering_3"
)
COLUMNS = (
    "active_power",
    "voltage",
    "sub_metering_1",
    "sub_metering_2",
    "sub_metering_3",
    "minute",
)


def power(root: Path | None = None, *, cache: Path | None = None) -> Split:
    """Returns POWER, six columns.

    1,659,917 rows are to train on, 184,435 to validate and 204,928 to test.

    root: Folder with power/household_power_consumption.zip.
    """
    return cached(f"power-v{VERSION}", lambda: _prepare(root), cache)


def _prepare(root: Path | None) -> Split:
    rows = dequantized(complete_rows(data_file(root, "power", "household_power_consumption.zip")))
    parts = cut(rows)
    return make_split("power", standardize(parts, rows[: -len(parts[2])], COLUMNS), COLUMNS)


def complete_rows(path: Path) -> Matrix:
    """Returns seven measurements and the minute of the day of every complete row, shape (N, 8)."""
    try:
        with ZipFile(path) as archive, archive.open(MEMBER) as binary:
            lines = TextIOWrapper(binary, encoding="ascii")
            header = lines.readline().rstrip("\n")
            if header != HEADER:
                raise ValueError(
                    f"{path} must begin with {HEADER}, but begins with {header}; download it again."
                )
            # 16/12/2006;17:24:00;4.216;… becomes 16/12/2006;17;24;00;4.216;…
            table = np.loadtxt(
                _complete(lines), delimiter=";", usecols=(1, 2, *range(4, 11)), ndmin=2
            )
    except (BadZipFile, KeyError) as error:
        raise ValueError(
            f"{path} must be a zip file with {MEMBER}, but is not ({error}); download it again."
        ) from None
    return np.column_stack([table[:, 2:], 60 * table[:, 0] + table[:, 1]])


def _complete(lines: TextIOWrapper) -> Iterator[str]:
    for line in lines:
        if "?" not in line and not line.endswith(";\n"):
            yield line.replace(":", ";")


def dequantized(rows: Matrix) -> Matrix:
    """Returns shuffled rows, without reactive power and intensity, with noise in place of rounding.

    The legacy generator, its seed and the order of the draws are the published ones. `rows` is
    shuffled in place.
    """
    rng = np.random.RandomState(42)
    rng.shuffle(rows)
    n = len(rows)
    voltage = 0.01 * rng.rand(n, 1)
    active_power = 0.001 * rng.rand(n, 1)
    sub_meterings = rng.rand(n, 3)
    noise = np.hstack([active_power, voltage, sub_meterings, np.zeros((n, 1))])
    # The last bit of the published mean depends on contiguous rows, so columns are deleted singly.
    kept = np.delete(np.delete(rows, 3, axis=1), 1, axis=1)
    noisy: Matrix = kept + noise
    return noisy
