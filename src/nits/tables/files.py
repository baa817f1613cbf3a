"""Reads and writes CSV, gzipped CSV and Parquet files, whole or in batches.

The ending of the name tells the format; `-` is standard input or output. A file is written under a
temporary name and renamed when it is complete.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow
from pyarrow import csv, parquet

from nits import atomic
from nits.tables import csv_columns
from nits.tables.csv_columns import types_of

__all__ = ["Writer", "batches", "kind", "read_table", "types_of", "written"]

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
STREAM = "-"
BLOCK_BYTES = 2**23
BATCH_ROWS = 65536
HEADER_BYTES = 2**16
MISSING = [*csv.ConvertOptions().null_values, "<NA>", "NaT"]
"""Text that stands for a missing value, in columns of strings, too."""

Types = Mapping[str, pyarrow.DataType]


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


def _delimiter(path: str) -> str:
    return "\t" if ".tsv" in Path(path).name.lower() else ","


class _Resumed(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        some = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(some)] = some
        return len(some)


class _Text:
    """A CSV file, or standard input, whose header is known before the rest is read.

    again: Whether it can be opened more than once, for which standard input is kept in memory.
    """

    def __init__(self, path: str, *, again: bool) -> None:
        self.path = path
        self.delimiter = _delimiter(path)
        self._kept = sys.stdin.buffer.read() if again and path == STREAM else None
        if path == STREAM and not again:
            self._line = sys.stdin.buffer.readline()
        else:
            with self.open() as source:
                self._line = _first_line(source)
        self._header = self._names()
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(self._header)]

    def open(self) -> Any:
        """Returns the text from its beginning."""
        if self._kept is not None:
            return pyarrow.BufferReader(self._kept)
        if self.path == STREAM:
            resumed = io.BufferedReader(_Resumed(self._line, sys.stdin.buffer), BLOCK_BYTES)
            return pyarrow.PythonFile(resumed, "r")
        gzipped = self.path.lower().endswith(".gz")
        return pyarrow.input_stream(self.path, compression="gzip" if gzipped else None)

    def _names(self) -> list[str]:
        options = csv.ParseOptions(delimiter=self.delimiter)
        try:
            head = csv.read_csv(pyarrow.BufferReader(self._line), parse_options=options)
        except pyarrow.ArrowInvalid:
            return []
        return list(head.column_names)

    def options(self, types: Types | None) -> dict[str, Any]:
        """Returns how to read it: in types that are told, as text where none is, or as seen."""
        read = dict.fromkeys(self.names if types is not None else (), pyarrow.string())
        told = {n: kind for n, kind in (types or {}).items() if not csv_columns.as_text(kind)}
        return {
            "read_options": self._read_options(),
            # In a file of one column, an empty line is a missing value.
            "parse_options": csv.ParseOptions(
                delimiter=self.delimiter, ignore_empty_lines=len(self.names) != 1
            ),
            "convert_options": csv.ConvertOptions(
                strings_can_be_null=True, null_values=MISSING, column_types=read | told
            ),
        }

    def _read_options(self) -> csv.ReadOptions:
        """Names a column without a name, as pandas saves an index, as pandas reads it."""
        if self.names == self._header:
            return csv.ReadOptions(block_size=BLOCK_BYTES)
        return csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names, skip_rows=1)


def _first_line(source: Any) -> bytes:
    found = b""
    while len(found.splitlines()) < 2 and (more := source.read(HEADER_BYTES)):
        found += more
    return (found.splitlines() or [b""])[0] + b"\n"


def read_table(path: str, types: Types | None = None) -> pyarrow.Table:
    """Reads a whole file.

    types: Those of a CSV file's columns, from `types_of`; by default they are seen in the text.
    """
    with _one_sentence(path):
        if kind(path) == "parquet":
            return parquet.read_table(path)
        text = _Text(path, again=True)
        with text.open() as source:
            table = csv.read_csv(source, **text.options(types))
        _refuse_other_separators(path, table.column_names)
        table = _large(text, table) if types is None else table
    if not table.num_rows:
        raise ValueError(f"{path} must have at least one row below its header, but has none.")
    return csv_columns.seen(table) if types is None else csv_columns.converted(table, types)


def _large(text: _Text, table: pyarrow.Table) -> pyarrow.Table:
    """Returns integers of 2⁶³ and more, which Arrow took for floats, with all their digits."""
    names = csv_columns.large(table)
    if not names:
        return table
    options = text.options(None)
    options["convert_options"].include_columns = names
    options["convert_options"].column_types = dict.fromkeys(names, pyarrow.string())
    with text.open() as source:
        again = csv.read_csv(source, **options)
    for name in names:
        found = csv_columns.unsigned(again.column(name))
        if found is not None:
            table = table.set_column(table.column_names.index(name), name, found)
    return table


def _refuse_other_separators(path: str, names: list[str]) -> None:
    """Refuses a file that seems to have one column because another separator was used."""
    found = [mark for mark in ";\t|" if len(names) == 1 and mark in names[0]]
    if found:
        raise ValueError(
            f"{path} must be separated by commas, or by tabs if it is a .tsv, "
            f"but seems to be separated by {found[0]!r}; convert it."
        )


def batches(path: str, types: Types | None = None) -> Iterator[pyarrow.Table]:
    """Yields a file's rows, tens of thousands at a time, in constant memory.

    types: As for `read_table`; without them the first rows decide for all.
    """
    with _one_sentence(path):
        if kind(path) == "parquet":
            file = parquet.ParquetFile(path)
            for batch in file.iter_batches(BATCH_ROWS):
                yield pyarrow.Table.from_batches([batch])
            return
        text = _Text(path, again=False)
        with text.open() as source, csv.open_csv(source, **text.options(types)) as reader:
            for batch in reader:
                if batch.num_rows:
                    table = pyarrow.Table.from_batches([batch])
                    yield csv_columns.converted(table, types or {})


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
            self.writer = self._made(table.schema)
        self.writer.write_table(table)

    def _made(self, schema: pyarrow.Schema) -> Any:
        if kind(self.path) == "parquet":
            return parquet.ParquetWriter(self.target, schema)
        options = csv.WriteOptions(delimiter=_delimiter(self.path))
        return csv.CSVWriter(self.target, schema, write_options=options)

    def close(self) -> None:
        """Completes the file."""
        if self.writer is not None:
            self.writer.close()

    def abandon(self) -> None:
        """Ends the writer of a file that nobody will want, which would complain by itself later."""
        with suppress(Exception):
            self.close()


@contextmanager
def written(path: str) -> Iterator[Writer]:
    """Yields a writer; the file appears under its name when it is complete, or not at all."""
    kind(path)
    if path == STREAM:
        if sys.stdout is None:
            raise ValueError("standard output is closed, so nothing can go there; name a file.")
        sys.stdout.flush()
        with _completed(Writer(path, pyarrow.output_stream(sys.stdout.buffer))) as writer:
            yield writer
        sys.stdout.buffer.flush()
        return
    with atomic.temporary(Path(path)) as place:
        stream = pyarrow.output_stream(
            str(place), compression="gzip" if path.lower().endswith(".gz") else None
        )
        with stream, _completed(Writer(path, stream)) as writer:
            yield writer


@contextmanager
def _completed(writer: Writer) -> Iterator[Writer]:
    """Completes what was written if the block raises nothing."""
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.abandon()
        raise
