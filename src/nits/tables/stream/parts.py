"""Writes folders of Parquet files, which appear when all of them are complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow
from pyarrow import dataset, parquet

from nits import atomic
from nits.engines import shared

ROWS = 2**20
"""Rows of a file of samples."""


def is_folder(output: str) -> bool:
    """Returns whether a path that is to be written names a folder."""
    return output != "-" and (output.endswith(("/", os.sep)) or Path(output).is_dir())


class Parts:
    """Files of a folder, written one after another.

    by: Columns that tell the folders inside it, as in year=2024/.
    name: What errors call the folder; by default as it is called.
    """

    def __init__(self, folder: Path, by: Sequence[str] = (), name: str | None = None) -> None:
        self.folder, self.by, self.name = folder, list(by), name or str(folder)
        self.writers: dict[str, parquet.ParquetWriter] = {}
        self.rows: list[pyarrow.Table] = []
        self.count = 0

    def append(self, name: str, table: pyarrow.Table) -> None:
        """Appends a table to a file; only one is written at a time."""
        place = name if name.endswith(".parquet") else f"{name}.parquet"
        with atomic.naming(self.name):
            if place not in self.writers:
                self._close()
                whole = self.folder / place
                whole.parent.mkdir(parents=True, exist_ok=True)
                self.writers[place] = parquet.ParquetWriter(whole, table.schema)
            self.writers[place].write_table(table)

    def add(self, table: pyarrow.Table) -> None:
        """Adds rows, of which about a million make a file."""
        self.rows.append(table)
        if sum(one.num_rows for one in self.rows) >= ROWS:
            self._flush()

    def close(self) -> None:
        """Completes the last files."""
        self._flush()
        with atomic.naming(self.name):
            self._close()

    def abandon(self) -> None:
        """Ends the writers of files that nobody will want, which would complain later."""
        with suppress(Exception):
            self._close()

    def _close(self) -> None:
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()

    def _flush(self) -> None:
        if not self.rows:
            return
        table = pyarrow.concat_tables(self.rows, promote_options="permissive")
        unknown = [name for name in self.by if name not in table.schema.names]
        if unknown:
            raise ValueError(
                f"--partition-by must name columns of the model, but {unknown[0]!r} is none; "
                "check the spelling."
            )
        with atomic.naming(self.name):
            dataset.write_dataset(
                _owned(table),
                self.folder,
                format="parquet",
                partitioning=self.by or None,
                partitioning_flavor="hive" if self.by else None,
                basename_template=f"part-{self.count:05}-{{i}}.parquet",
                existing_data_behavior="overwrite_or_ignore",
            )
        self.rows.clear()
        self.count += 1


def _owned(table: pyarrow.Table) -> pyarrow.Table:
    """Returns a copy in memory of Arrow, whose threads may free it when Python has ended already.

    To free memory of NumPy they would need Python, and abort the process.
    """
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all()


@contextmanager
def written(output: str, by: Sequence[str] = ()) -> Iterator[Parts]:
    """Yields what writes the files; the folder appears under its name when they are complete."""
    place = Path(os.path.realpath(output))  # a link stays a link
    if place.is_dir() and any(place.iterdir()):
        raise ValueError(
            f"-o must name a new or an empty folder, but {output} has files; name another."
        )
    with ExitStack() as stack:
        with atomic.naming(output):
            place.parent.mkdir(parents=True, exist_ok=True)
            new = shared.folder(f".{place.name}.", atomic.ENDING, place.parent)
            folder = stack.enter_context(new)
            folder.chmod(0o777 & ~_umask())
        parts = Parts(folder, by, output)
        stack.callback(parts.abandon)
        yield parts
        parts.close()
        with atomic.naming(output):
            if place.is_dir():
                place.rmdir()
            folder.rename(place)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
