"""Reads and writes CSV, gzipped CSV and Parquet files, whole or in batches.

The ending of the name tells the format; `-` is standard input or output. A file is written under a
temporary name and renamed when it is complete.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import csv, parquet

from nits import atomic
from nits.tables import csv_columns, csv_safe
from nits.tables.csv_columns import Wanted, types_of
from nits.tables.csv_text import STREAM, Text, delimiter, is_stream
from nits.tables.stream.named import CSV, PARQUET

__all__ = [
    "Writer",
    "batches",
    "kind",
    "named",
    "read_table",
    "rows",
    "types_of",
    "written",
]

BATCH_ROWS = 65536

STDOUT = "standard output"

Types = Mapping[str, Wanted]


def kind(path: str) -> str:
    """Returns "csv" or "parquet", by the ending of a path."""
    name = Path(path).name.lower()
    if name.endswith(PARQUET):
        return "parquet"
    if name.endswith(CSV) or is_stream(path):
        return "csv"
    raise ValueError(
        f"a table's file must end in {', '.join((*CSV, *PARQUET))}, "
        f"but is {Path(path).name!r}; rename or convert it."
    )


def read_table(path: str, types: Types | None = None) -> pyarrow.Table:
    """Reads a whole file.

    types: How to read columns, from `types_of`: the only ones that are read if the file has them
        all. By default all are read, and what those of a CSV file hold is seen in the text.
    """
    with _one_sentence(path):
        if kind(path) == "parquet":
            names = parquet.read_schema(path).names
            return listing(parquet.read_table(path, columns=known(names, types)), names, types)
        text = Text(path, again=True)
        table = _read(text, _told(text, types))
        _refuse_other_separators(text)
        table = _exact(text, table) if types is None else table
    if not table.num_rows:
        raise ValueError(f"{path} must have at least one row below its header, but has none.")
    table = csv_columns.seen(table) if types is None else csv_columns.converted(table, types, path)
    pyarrow.default_memory_pool().release_unused()  # blocks of text, and columns that were replaced
    return table


def known(names: Sequence[str], types: Types | None) -> list[str] | None:
    """Returns those of a file's columns that are to be read; None for all."""
    return None if types is None else [name for name in names if name in types]


def lacking(names: Sequence[str], types: Types | None) -> list[str]:
    """Returns the columns that are needed and that a file has not."""
    return [name for name, one in (types or {}).items() if one.needed and name not in names]


def listing(table: pyarrow.Table, names: Sequence[str], types: Types | None) -> pyarrow.Table:
    """Returns a table in which errors find the names of all columns, if one that is needed lacks.

    Nothing is in those that were not read, so that only what is needed can be at fault.
    """
    if lacking(names, types):
        for name in names:
            if name not in table.column_names:
                table = table.append_column(name, pyarrow.nulls(table.num_rows))
    return table


def _told(text: Text, types: Types | None, *, whole: bool = False) -> dict[str, Any]:
    if types is None:
        return text.options([])
    every = whole or lacking(text.names, types)
    return text.options(text.names, [] if every else known(text.names, types) or [])


def _read(text: Text, options: dict[str, Any]) -> pyarrow.Table:
    with text.open() as source:
        return csv.read_csv(source, **options)


def _exact(text: Text, table: pyarrow.Table) -> pyarrow.Table:
    """Returns what Arrow took for floats or times of day, but has another text, from that text."""
    names = csv_columns.inexact(table)
    if not names:
        return table
    again = _read(text, text.options(names, names))
    for name in names:
        found = csv_columns.exact(table.column(name), again.column(name))
        table = table.set_column(table.column_names.index(name), name, found)
    return table


def _refuse_other_separators(text: Text) -> None:
    """Refuses a file that seems to have one column because another separator was used."""
    alone = len(text.names) == 1 and not text.quoted
    found = [mark for mark in ";\t|" if alone and mark in text.names[0]]
    if found:
        raise ValueError(
            f"{text.path} must be separated by commas, or by tabs if it is a .tsv, "
            f"but seems to be separated by {found[0]!r}; convert it."
        )


def batches(
    path: str, types: Types | None = None, *, whole: bool = False
) -> Iterator[pyarrow.Table]:
    """Yields a file's rows, tens of thousands at a time, in constant memory.

    types: As for `read_table`; without them the first rows decide for all.
    whole: Whether all columns are read; those of CSV files that have no type here are text.
    """
    with _one_sentence(path):
        if kind(path) == "parquet":
            file = parquet.ParquetFile(path)
            names = file.schema_arrow.names
            columns = None if whole else known(names, types)
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                yield listing(pyarrow.Table.from_batches([batch]), names, types)
            return
        text = Text(path, again=False)
        for table in text.parts(_told(text, types, whole=whole)):
            if table.num_rows:
                yield csv_columns.converted(table, types or {}, path)


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
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from None


def rows(path: str) -> int | None:
    """Returns how many rows a file has, None if that is not known before it is read."""
    if kind(path) != "parquet":
        return None
    with _one_sentence(path):
        return int(parquet.read_metadata(path).num_rows)


@contextmanager
def named(path: str) -> Iterator[None]:
    """Puts a file's name before the sentence of an error about its table."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except TypeError as error:
        raise TypeError(f"{path}: {error}") from None


class Writer:
    """Writes tables one after another to a CSV or Parquet file, or to standard output.

    changes: What is done to each table before.
    """

    def __init__(
        self, path: str, target: Any, changes: Sequence[Callable[[Any], Any]] = ()
    ) -> None:
        self.path = path
        self.name = STDOUT if path == STREAM else path
        self.target = target
        self.changes = changes
        self.writer: Any = None

    def write(self, table: pyarrow.Table) -> None:
        """Appends a table; the first one decides the columns."""
        for change in self.changes:
            table = change(table)
        with atomic.naming(self.name):
            if self.writer is None:
                self.writer = self._made(table.schema)
            self.writer.write_table(table)

    def _made(self, schema: pyarrow.Schema) -> Any:
        if kind(self.path) == "parquet":
            return parquet.ParquetWriter(self.target, schema)
        options = csv.WriteOptions(delimiter=delimiter(self.path))
        return csv.CSVWriter(self.target, schema, write_options=options)

    def close(self) -> None:
        """Completes the file."""
        if self.writer is not None:
            with atomic.naming(self.name):
                self.writer.close()

    def abandon(self) -> None:
        """Ends the writer of a file that nobody will want, which would complain by itself later."""
        with suppress(Exception):
            self.close()


@contextmanager
def written(path: str, *, safe: bool = False) -> Iterator[Writer]:
    """Yields a writer; the file appears under its name when it is complete, or not at all.

    safe: Whether text that spreadsheets take for formulas is guarded, in CSV.
    """
    if kind(path) == "parquet" and safe:
        raise ValueError(f"--safe-csv is for CSV files, but {path} is Parquet; leave it out.")
    changes = [csv_safe.safe] if safe else []
    if path == STREAM:
        if sys.stdout is None:
            raise ValueError("standard output is closed, so nothing can go there; name a file.")
        if sys.stdout.isatty():
            changes.append(csv_safe.shown)
        sys.stdout.flush()
        with _completed(Writer(path, pyarrow.output_stream(sys.stdout.buffer), changes)) as writer:
            yield writer
        with atomic.naming(STDOUT):
            sys.stdout.buffer.flush()
        return
    with atomic.temporary(Path(path)) as place:
        with atomic.naming(path):
            stream = pyarrow.output_stream(
                str(place), compression="gzip" if path.lower().endswith(".gz") else None
            )
        try:
            with _completed(Writer(path, stream, changes)) as writer:
                yield writer
        except BaseException:
            with suppress(OSError):  # the first error counts
                stream.close()
            raise
        with atomic.naming(path):
            stream.close()


@contextmanager
def _completed(writer: Writer) -> Iterator[Writer]:
    """Completes what was written if the block raises nothing."""
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.abandon()
        raise
