"""Reads and writes CSV, gzipped CSV and Parquet files, whole or in batches.

The ending of the name tells the format; `-` is standard input or output. A file is written under a
temporary name and renamed when it is complete.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import csv, parquet

from nits import atomic

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
STREAM = "-"
BLOCK_BYTES = 2**23
BATCH_ROWS = 65536


def kind(path: str) -> str:
    """Returns "csv" or "parquet", by the ending of a path."""
    name = Path(path).name.lower()
    if path == STREAM or name.endswith(CSV):
        return "csv"
    if name.endswith(PARQUET):
        return "parquet"
    raise ValueError(
        f"a table's file must end in {', '.join((*CSV, *PARQUET))}, "
        f"but is {Path(path).name!r}; rename or convert it."
    )


def _options(path: str, types: Mapping[str, pyarrow.DataType] | None) -> dict[str, Any]:
    delimiter = "\t" if ".tsv" in Path(path).name.lower() else ","
    return {
        "read_options": csv.ReadOptions(block_size=BLOCK_BYTES),
        "parse_options": csv.ParseOptions(delimiter=delimiter),
        "convert_options": csv.ConvertOptions(
            strings_can_be_null=True, column_types=dict(types or {})
        ),
    }


def _source(path: str) -> Any:
    if path == STREAM:
        return pyarrow.input_stream(sys.stdin.buffer)
    return pyarrow.input_stream(path, compression="gzip" if path.lower().endswith(".gz") else None)


def read_table(path: str, types: Mapping[str, pyarrow.DataType] | None = None) -> pyarrow.Table:
    """Reads a whole file."""
    with _one_sentence(path):
        if kind(path) == "parquet":
            return parquet.read_table(path)
        with _source(path) as source:
            table = csv.read_csv(source, **_options(path, types))
    _refuse_other_separators(path, table.column_names)
    if not table.num_rows:
        raise ValueError(f"{path} must have at least one row below its header, but has none.")
    return table


def _refuse_other_separators(path: str, names: list[str]) -> None:
    """Refuses a file that seems to have one column because another separator was used."""
    found = [mark for mark in ";\t|" if len(names) == 1 and mark in names[0]]
    if found:
        raise ValueError(
            f"{path} must be separated by commas, or by tabs if it is a .tsv, "
            f"but seems to be separated by {found[0]!r}; convert it."
        )


def batches(
    path: str, types: Mapping[str, pyarrow.DataType] | None = None
) -> Iterator[pyarrow.Table]:
    """Yields a file's rows, tens of thousands at a time, in constant memory."""
    with _one_sentence(path):
        if kind(path) == "parquet":
            file = parquet.ParquetFile(path)
            for batch in file.iter_batches(BATCH_ROWS):
                yield pyarrow.Table.from_batches([batch])
            return
        with _source(path) as source, csv.open_csv(source, **_options(path, types)) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield pyarrow.Table.from_batches([batch])


@contextmanager
def _one_sentence(path: str) -> Iterator[None]:
    """Turns Arrow's errors into a ValueError of one sentence."""
    try:
        yield
    except pyarrow.ArrowInvalid as error:
        detail = str(error).splitlines()[0]
        raise ValueError(f"{path} is not a table that can be read: {detail}") from None
    except (UnicodeDecodeError, pyarrow.ArrowNotImplementedError, pyarrow.ArrowKeyError) as error:
        raise ValueError(f"{path} is not a table that can be read: {error}") from None


class Writer:
    """Writes tables one after another to a CSV or Parquet file, or to standard output."""

    def __init__(self, path: str, target: Any) -> None:
        self.path = path
        self.target = target
        self.writer: Any = None

    def write(self, table: pyarrow.Table) -> None:
        """Appends a table; the first one decides the columns."""
        if self.writer is None:
            make = csv.CSVWriter if kind(self.path) == "csv" else parquet.ParquetWriter
            self.writer = make(self.target, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Completes the file."""
        if self.writer is not None:
            self.writer.close()


@contextmanager
def written(path: str) -> Iterator[Writer]:
    """Yields a writer; the file appears under its name when it is complete, or not at all."""
    kind(path)
    if path == STREAM:
        sys.stdout.flush()
        writer = Writer(path, pyarrow.output_stream(sys.stdout.buffer))
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with atomic.temporary(Path(path)) as place:
        stream = pyarrow.output_stream(
            str(place), compression="gzip" if path.lower().endswith(".gz") else None
        )
        with stream:
            writer = Writer(path, stream)
            yield writer
            writer.close()
