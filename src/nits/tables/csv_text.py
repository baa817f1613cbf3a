"""The text of a CSV file, standard input or a pipe: its header, and how Arrow is to read it."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import pyarrow
from pyarrow import csv

from nits import atomic

STREAM = "-"
BLOCK_BYTES = 2**23
HEADER_BYTES = 2**16
MISSING = [*csv.ConvertOptions().null_values, "<NA>", "NaT"]
"""Text that stands for a missing value, in columns of strings, too, unless it is in quotes."""


def delimiter(path: str) -> str:
    """Returns what separates the columns of a file."""
    return "\t" if ".tsv" in Path(path).name.lower() else ","


def is_stream(path: str) -> bool:
    """Returns whether a path can be read only once: standard input, a pipe or a device."""
    return path == STREAM or atomic.is_stream(Path(path))


class Text:
    """A CSV file, standard input or a pipe, whose header is known before the rest is read.

    again: Whether it can be opened more than once, for which a stream is kept in memory.

    names: The columns, as pandas names those without a name.
    quoted: Whether a name is in quotes.
    """

    def __init__(self, path: str, *, again: bool) -> None:
        self.path = path
        self.delimiter = delimiter(path)
        self._stream = _opened(path) if is_stream(path) else None
        self._kept = None
        if self._stream is not None and again:
            self._kept = self._stream.read()
            _close(self._stream)
            self._stream = None
        if self._stream is not None:
            head = _head(self._stream)
        else:
            with self.open() as source:
                head = _head(source)
        self._head = head
        self.quoted = b'"' in _header(head)
        self._header = self._names(head)
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(self._header)]

    def open(self) -> Any:
        """Returns the text of what is no stream from its beginning."""
        if self._kept is not None:
            return pyarrow.BufferReader(self._kept)
        return pyarrow.input_stream(self.path, compression=_compression(self.path))

    def parts(self, options: dict[str, Any]) -> Iterator[pyarrow.Table]:
        """Yields the rows, some at a time; what the first ones are decides for all.

        A stream is read here, not by Arrow, whose threads would still wait for more of it, and need
        Python, when an error or Ctrl-C has ended it.
        """
        if self._stream is None:
            with self.open() as source, csv.open_csv(source, **options) as reader:
                for batch in reader:
                    yield pyarrow.Table.from_batches([batch])
            return
        try:
            for block in _blocks(self._head, self._stream, self.delimiter):
                table = csv.read_csv(pyarrow.BufferReader(block), **options)
                options = options | {"read_options": self._read_options(later=True)}
                if table.num_rows:
                    options["convert_options"].column_types = table.schema
                    yield table
        finally:
            _close(self._stream)

    def _names(self, head: bytes) -> list[str]:
        options = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        try:
            first = csv.read_csv(pyarrow.BufferReader(_header(head)), parse_options=options)
        except pyarrow.ArrowInvalid:
            return []
        return list(first.column_names)

    def options(self, text: Sequence[str], columns: Sequence[str] = ()) -> dict[str, Any]:
        """Returns how to read it.

        text: Columns to read as text; what others are is seen in the first block.
        columns: The only ones to read, if any are named.
        """
        return {
            "read_options": self._read_options(),
            # In a file of one column, an empty line is a missing value.
            "parse_options": csv.ParseOptions(
                delimiter=self.delimiter,
                ignore_empty_lines=len(self.names) != 1,
                newlines_in_values=True,
            ),
            "convert_options": csv.ConvertOptions(
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=MISSING,
                column_types=dict.fromkeys(text, pyarrow.string()),
                include_columns=list(columns),
            ),
        }

    def _read_options(self, *, later: bool = False) -> csv.ReadOptions:
        """Names a column without a name, as pandas saves an index, as pandas reads it.

        later: Whether the header was read before.
        """
        if later:
            return csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names)
        if self.names == self._header:
            return csv.ReadOptions(block_size=BLOCK_BYTES)
        return csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names, skip_rows=1)


def _blocks(head: bytes, stream: IO[bytes], delimiter: str) -> Iterator[bytes]:
    """Yields a stream whose beginning was read already, in pieces of whole rows."""
    quoted = re.compile(rf'(?<![^{delimiter}\r\n])"(?:[^"]|"")*+(?:"|\Z)'.encode())
    rest, first = head, True
    while more := stream.read(BLOCK_BYTES):
        rest += more
        if end := _end_of_rows(rest, quoted):
            yield rest[:end]
            rest, first = rest[end:], False
    if rest or first:
        yield rest


def _end_of_rows(text: bytes, quoted: re.Pattern[bytes]) -> int:
    """Returns where the last whole row ends; line breaks in quotes end none.

    quoted: A value in quotes, which may lack its end.
    """
    spans = [one.span() for one in quoted.finditer(text)] if b'"' in text else []
    stop = len(text)
    for start, end in reversed(spans):
        if (at := text.rfind(b"\n", end, stop)) >= 0:
            return at + 1
        stop = start
    return text.rfind(b"\n", 0, stop) + 1


def _close(stream: IO[bytes]) -> None:
    """Closes a stream that is not standard input."""
    if stream is not sys.stdin.buffer:
        stream.close()


def _compression(path: str) -> str | None:
    return "gzip" if path.lower().endswith(".gz") else None


def _opened(path: str) -> IO[bytes]:
    if path == STREAM:
        return sys.stdin.buffer
    found: Any = gzip.open(path, "rb") if _compression(path) else open(path, "rb")  # noqa: SIM115
    return cast("IO[bytes]", found)


def _head(source: Any) -> bytes:
    """Returns the first bytes, the header and the line after it at least."""
    found = b""
    while not _header(found).endswith(b"\n") and (more := source.read(HEADER_BYTES)):
        found += more
    return found


def _header(found: bytes) -> bytes:
    """Returns the first line that is not empty; line breaks between quotes do not end it."""
    line = b""
    for part in found.splitlines(keepends=True):
        line += part
        if line.count(b'"') % 2 == 0:
            if line.strip():
                return line
            line = b""
    return line.rstrip(b"\r\n")
