"""Tables of many files: a folder, a pattern or an address of Parquet or CSV, opened by Arrow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import dataset, types

from nits.tables.files import Types
from nits.tables.stream import spool
from nits.tables.stream.named import ADDRESS, CSV, PARQUET, PATTERN, is_table

BATCH_ROWS = 2**16
"""Rows that are decoded at once."""


@dataclass(frozen=True)
class Source:
    """A table in pieces, the row groups of its files, in the order of the files' names.

    name: What the user calls it.
    fragments: Arrow's names of the pieces.
    sizes: How many rows each has.
    schema: The columns of all files together, those that are told by folders' names included.
    base: The folder that they lie in.
    """

    name: str
    fragments: tuple[Any, ...]
    sizes: tuple[int, ...]
    schema: pyarrow.Schema
    base: str

    def __len__(self) -> int:
        return sum(self.sizes)

    def read(self, piece: int, columns: Sequence[str] | None = None) -> Iterator[pyarrow.Table]:
        """Yields the rows of a piece, some at a time."""
        wanted = self.schema.names if columns is None else list(columns)
        with _one_sentence(self.name):
            for batch in self.fragments[piece].to_batches(
                schema=self.schema, columns=wanted, batch_size=BATCH_ROWS, use_threads=False
            ):
                if batch.num_rows:
                    yield plain(pyarrow.Table.from_batches([batch]))

    def without(self, names: Sequence[str]) -> Source:
        """Returns the table without some columns."""
        kept = pyarrow.schema([field for field in self.schema if field.name not in names])
        return replace(self, schema=kept)

    def file(self, piece: int) -> str:
        """Returns the path of a piece's file below the folder."""
        path = str(self.fragments[piece].path)
        return path.removeprefix(self.base).lstrip("/")

    def digest(self) -> str:
        """Returns a checksum of the files' names, sizes and columns, not of their values."""
        found = hashlib.sha256(str(self.schema.remove_metadata()).encode())
        for piece, size in enumerate(self.sizes):
            group = self.fragments[piece].row_groups[0]
            found.update(f"{self.file(piece)} {group.id} {size} {group.total_byte_size}".encode())
        return found.hexdigest()


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """Returns a table with the values of dictionaries in their place, but for ordered ones.

    The dictionaries of pieces differ; what their order means must be the same in all.
    """
    for i, field in enumerate(table.schema):
        if types.is_dictionary(field.type) and not field.type.ordered:
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


@contextmanager
def opened(table: Any, told: Types | None = None) -> Iterator[Source]:
    """Yields a table of many files; those of CSV as Parquet in a temporary folder meanwhile.

    told: How to read columns of CSV; see `nits.tables.files.read_table`.
    """
    with ExitStack() as stack:
        if isinstance(table, dataset.Dataset):
            files = getattr(table, "files", ["/"])
            yield _source("the dataset", list(table.get_fragments()), table.schema, _folder(files))
            return
        name = str(table)
        with _one_sentence(name):
            filesystem, base, files = _found(name)
            if files[0].lower().endswith(CSV):
                copies = spool.parquet_copies(base, files, filesystem, told)
                base, files = stack.enter_context(copies)
            whole = dataset.dataset(
                files,
                format="parquet",
                filesystem=filesystem,
                partitioning=dataset.partitioning(flavor="hive"),
                partition_base_dir=base,
            )
            found = _source(name, list(whole.get_fragments()), whole.schema, base)
        yield found


def _source(name: str, fragments: list[Any], schema: Any, base: str) -> Source:
    """Returns the table of some files: every row group is a piece."""
    schema = _unified(name, [each.physical_schema for each in fragments], schema)
    pieces = [piece for each in fragments for piece in each.split_by_row_group()]
    pieces = [piece for piece in pieces if piece.row_groups[0].num_rows]
    sizes = tuple(int(piece.row_groups[0].num_rows) for piece in pieces)
    if not sizes:
        raise ValueError(f"{name} must have at least one row, but has none.")
    return Source(name, tuple(pieces), sizes, schema, base)


def _unified(name: str, schemas: list[Any], whole: Any) -> Any:
    """Returns the columns of all files, numbers in a type that holds those of all."""
    try:
        return pyarrow.unify_schemas([*schemas, whole], promote_options="permissive")
    except (pyarrow.ArrowTypeError, pyarrow.ArrowInvalid) as error:
        detail = str(error).splitlines()[0]
        raise ValueError(
            f"the files of {name} must have columns of the same types, but have not ({detail}); "
            "convert some."
        ) from None


def _found(name: str) -> tuple[Any, str, list[str]]:
    """Returns the file system, the folder without a pattern, and the files in order."""
    from fsspec.core import url_to_fs

    local = ADDRESS.match(name) is None
    filesystem, root = url_to_fs(str(Path(name).expanduser().absolute()) if local else name)
    pattern = PATTERN.search(root) is not None and not filesystem.isfile(root)
    listed_ = filesystem.glob(root) if pattern else [root]
    every = [path for one in listed_ for path in filesystem.find(one)]
    files = sorted(path for path in set(every) if is_table(path))
    if not files:
        raise FileNotFoundError(
            f"{name} must hold files that end in {', '.join((*CSV, *PARQUET))}, but holds none; "
            "check the spelling."
        )
    kinds = {path.lower().endswith(CSV) for path in files}
    if len(kinds) > 1:
        raise ValueError(
            f"the files of {name} must be of one kind, but some are CSV and some Parquet; "
            "name those that you mean, such as folder/*.parquet."
        )
    base = root[: PATTERN.search(root).start()].rpartition("/")[0] if pattern else root  # type: ignore[union-attr]
    return filesystem, base if not filesystem.isfile(base) else _folder([base]), files


def _folder(files: Sequence[str]) -> str:
    return str(files[0]).rpartition("/")[0]


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turns Arrow's errors into a ValueError of one sentence."""
    try:
        yield
    except (
        pyarrow.ArrowInvalid,
        pyarrow.ArrowTypeError,
        pyarrow.ArrowNotImplementedError,
    ) as error:
        detail = str(error).splitlines()[0]
        raise ValueError(f"{name} is not a table that can be read: {detail}") from None
    except ImportError as error:
        raise ImportError(f"{name} cannot be opened: {error}; pip install it.") from None
