"""The text of a CSV file, standard input or a pipe: its header, and how Arrow is to read it."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Sequence
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

    def close(self) -> None:
        if self._rest is not sys.stdin.buffer:
            self._rest.close()
        super().close()


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
            with _Resumed(b"", self._stream) as whole:
                self._kept = whole.readall()
            self._stream = None
        if self._stream is not None:
            head = _head(self._stream)
            self._stream = io.BufferedReader(_Resumed(head, self._stream), BLOCK_BYTES)
        else:
            with self.open() as source:
                head = _head(source)
        self.quoted = b'"' in _header(head)
        self._header = self._names(head)
        self.names = [name or f"Unnamed: {i}" for i, name in enumerate(self._header)]

    def open(self) -> Any:
        """Returns the text from its beginning."""
        if self._kept is not None:
            return pyarrow.BufferReader(self._kept)
        if self._stream is not None:
            return pyarrow.PythonFile(self._stream, "r")
        return pyarrow.input_stream(self.path, compression=_compression(self.path))

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

    def _read_options(self) -> csv.ReadOptions:
        """Names a column without a name, as pandas saves an index, as pandas reads it."""
        if self.names == self._header:
            return csv.ReadOptions(block_size=BLOCK_BYTES)
        return csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names, skip_rows=1)


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
