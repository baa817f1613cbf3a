"""CSV files as Parquet in a temporary folder: they are parsed once, and then read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from nits import atomic
from nits.engines import shared
from nits.tables import files

PREFIX = "nits-csv-"

ROWS = 2**16
"""Of a row group."""

WHOLE = 2**28
"""Bytes of a file up to which it is read whole, so that all of its rows tell what a column is."""


@contextmanager
def parquet_copies(
    base: str, paths: Sequence[str], filesystem: Any, types: files.Types | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yields a temporary folder, and Parquet files in it that hold the same rows."""
    if "file" not in _protocols(filesystem):
        raise ValueError(
            f"files that are not on this machine must be Parquet, but {paths[0]} is CSV; "
            "convert it, or fetch it first."
        )
    with shared.folder(PREFIX) as folder:
        made = []
        for path in paths:
            place = folder / (path.removeprefix(base).lstrip("/") + ".parquet")
            with atomic.naming(folder):
                place.parent.mkdir(parents=True, exist_ok=True)
            _convert(path, place, types)
            made.append(str(place))
        yield str(folder), made


def _protocols(filesystem: Any) -> tuple[str, ...]:
    known = filesystem.protocol
    return (known,) if isinstance(known, str) else tuple(known)


def _convert(path: str, place: Path, types: files.Types | None) -> None:
    """Writes one file; the first rows of a very long one decide for all."""
    long = Path(path).stat().st_size > WHOLE
    tables = files.batches(path, types) if long else [files.read_table(path, types)]
    writer: Any = None
    try:
        for table in tables:
            with atomic.naming(place):
                writer = writer or parquet.ParquetWriter(place, table.schema)
                writer.write_table(table, row_group_size=ROWS)
        with atomic.naming(place):
            (writer or parquet.ParquetWriter(place, pyarrow.schema([]))).close()
    except BaseException:
        with suppress(Exception):  # or it would complain by itself later
            writer.close()
        raise
