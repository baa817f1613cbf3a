"""Hostile tables: each case is a number, from which the table and the file's format follow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import csv, parquet

from campaign.columns import COLUMNS, REFUSED, arrow

NAMES = (
    "a b",
    " lead",
    "trail ",
    "größe",
    "日本",
    "x\x1b[2Jy",
    "line\nbreak",
    "tab\t",
    'quo"te',
    "comma,name",
    "log_density",
    "=1+1",
    "[red]name",
    "{0}",
    "$a_b$",
    "%s",
    "x" * 200,
    "__class__",
    "0",
    "nan",
    "NA",
    "file",
    "Unnamed: 0",
    "'",
    "\u202eabc",
)

FORMATS = ("parquet", "csv", "csv.gz", "tsv")


@dataclass(frozen=True)
class Table:
    """A table to attack with.

    columns: The names of the generators, by column.
    refusable: Columns that may be refused, by name.
    """

    case: int
    table: Any
    columns: dict[str, str]
    format: str
    refusable: tuple[str, ...]

    @property
    def told(self) -> str:
        """What it is, in a line."""
        made = ", ".join(f"{name[:20]!a}: {kind}" for name, kind in list(self.columns.items())[:12])
        return f"{self.table.num_rows} rows, {self.format}, {{{made}}}"

    def write(self, folder: Path) -> str:
        """Writes the file and returns its path."""
        path = folder / f"table.{self.format}"
        if self.format == "parquet":
            parquet.write_table(self.table, path)
            return str(path)
        options = csv.WriteOptions(delimiter="\t" if self.format == "tsv" else ",")
        compression = "gzip" if self.format.endswith("gz") else None
        with pyarrow.output_stream(str(path), compression=compression) as stream:
            csv.write_csv(self.table, stream, write_options=options)
        return str(path)


def made(case: int) -> Table:
    """Returns the table of a case."""
    rng = np.random.default_rng([20, case])
    rows = int(rng.choice([1, 2, 3, 10, 40, 120, 300], p=[0.02, 0.03, 0.05, 0.15, 0.3, 0.3, 0.15]))
    wide = rng.random() < 0.02
    count = int(rng.integers(15, 40)) if wide else int(rng.integers(1, 6))
    kinds = [str(kind) for kind in rng.choice(list(COLUMNS), count)]
    if rng.random() < 0.04:
        kinds.insert(int(rng.integers(len(kinds) + 1)), str(rng.choice(list(REFUSED))))
    names = _names(rng, len(kinds))
    arrays = [_array(kind, rng, rows) for kind in kinds]
    if rng.random() < 0.1 and rows > 3:  # duplicated rows
        twice = pyarrow.array(rng.integers(0, rows // 2, rows))
        arrays = [array.take(twice) for array in arrays]
    form = str(rng.choice(FORMATS, p=[0.5, 0.3, 0.1, 0.1]))
    if form != "parquet":
        arrays = [_as_text(array) for array in arrays]
    refusable = [name for name, kind in zip(names, kinds, strict=True) if kind in REFUSED]
    made_of = dict(zip(names, kinds, strict=True))
    return Table(case, pyarrow.table(arrays, names), made_of, form, tuple(refusable))


def _array(kind: str, rng: np.random.Generator, rows: int) -> Any:
    return arrow((COLUMNS | REFUSED)[kind](rng, rows))


def _names(rng: np.random.Generator, count: int) -> list[str]:
    plain = [f"c{i}" for i in range(count)]
    if rng.random() < 0.6:
        return plain
    wild = [str(name) for name in rng.permutation(NAMES)[: rng.integers(1, 4)]]
    return (wild + plain)[:count]


def _as_text(array: Any) -> Any:
    """Returns an array that Arrow can write as CSV."""
    if pyarrow.types.is_dictionary(array.type):
        return array.cast(array.type.value_type)
    odd = pyarrow.types.is_nested(array.type) or pyarrow.types.is_binary(array.type)
    return pyarrow.array([str(one) for one in array.to_pylist()]) if odd else array
