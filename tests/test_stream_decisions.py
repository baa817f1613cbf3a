"""Decisions about a table in pieces are those about the same table in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from hostile import COLUMNS, column
from nits.engines import Local
from nits.engines.engine import Engine
from nits.tables import schema, zones
from nits.tables.stream import decide, scan, source, tallies
from nits.tables.stream.scan import Scanned
from nits.training.progress import Silent

NONE = np.empty(0, np.int64)


class InTurn(Engine):
    """Runs tasks one after another, as if so many were run at once."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def parallel(self) -> int:
        return self.tasks

    def run(self, function: Any, tasks: Any, **_: Any) -> list[Any]:
        assert len(tasks) == self.tasks
        return [function(task, Silent()) for task in tasks]


def scanned(table: Any, folder: Path, rows: int = 100, tasks: int = 1) -> Scanned:
    """Returns what a pass over row groups of the table sees, or passes over parts of it."""
    parquet.write_table(table, folder / "a.parquet", row_group_size=rows)
    with source.opened(folder) as opened:
        return scan.scanned(opened, NONE, engine=InTurn(tasks))


def whole(table: Any, folder: Path, **options: Any) -> Any:
    """Returns what is decided in memory about what the file has."""
    read = source.plain(parquet.read_table(folder / "a.parquet"))
    found = schema.infer(zones.read(read), **options)
    return found[0].to_dict(), found[1].to_dict()


def in_pieces(seen: Scanned, **options: Any) -> Any:
    found = decide.infer(seen, **options)
    return found[0].to_dict(), found[1].to_dict()


def outcome(make: Any) -> Any:
    """Returns a result, or the sentence of an error."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        return str(error)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if k % 6 else ()) for k, name in enumerate(COLUMNS)],
)
def test_a_hostile_column_is_decided_as_in_memory(name: str, tmp_path: Path) -> None:
    try:
        table = pyarrow.Table.from_pandas(column(name).to_frame(), preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        pytest.skip("Arrow cannot hold it")
    expected = outcome(lambda: whole(table, tmp_path)) if _written(table, tmp_path) else None
    assert outcome(lambda: in_pieces(scanned(table, tmp_path))) == expected
    assert outcome(lambda: in_pieces(scanned(table, tmp_path, 40, tasks=3))) == expected


def _written(table: Any, folder: Path) -> bool:
    parquet.write_table(table, folder / "a.parquet")
    return True


def long_table(rows: int = 60_000) -> pandas.DataFrame:
    rng = np.random.default_rng(1)
    size = rng.normal(50, 10, rows)
    return pandas.DataFrame(
        {
            "real": size,
            "single": size.astype(np.float32),
            "skewed": rng.lognormal(0, 2, rows),
            "atoms": np.where(rng.random(rows) < 0.3, 0.0, rng.gamma(2.0, 3.0, rows)),
            "cents": np.round(rng.gamma(2.0, 500.0, rows), 2),
            "wide": rng.integers(0, 10**9, rows) * 5,
            "counts": rng.poisson(20, rows),
            "time": pandas.Timestamp("2024-01-01")
            + pandas.to_timedelta(rng.integers(0, 10**9, rows), unit="ms"),
            "id": rng.permutation(rows) + 5,
            "row": np.arange(rows),
            "city": rng.choice(["Lima", "Oslo", "Rome"], rows),
            "name": [f"n{i}" for i in range(rows)],
            "flag": rng.random(rows) < 0.4,
            "same": 3.0,
            "empty": np.full(rows, np.nan),
        }
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has so few values counted that the columns of a table in tests have more."""
    monkeypatch.setattr(tallies, "MOST_VALUES", 20_000)
    monkeypatch.setattr(scan, "STARTED_FROM", 30_000)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("tasks", [1, 2, 5, 12])
def test_columns_of_more_values_than_are_counted_are_decided_as_in_memory(
    tmp_path: Path, tasks: int
) -> None:
    table = pyarrow.Table.from_pandas(long_table(), preserve_index=False)
    seen = scanned(table, tmp_path, 7_000, tasks)
    assert not seen.tallies["real"].whole
    assert seen.tallies["counts"].whole
    found, expected = in_pieces(seen), whole(table, tmp_path)
    assert found[1] == expected[1]
    for one, other in zip(found[0]["columns"], expected[0]["columns"], strict=True):
        assert one == other, one["facts"]["name"]


def test_columns_are_decided_at_once_as_one_after_another(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pandas(long_table(3_000), preserve_index=False)
    seen, engine = scanned(table, tmp_path), Watched(2)
    assert in_pieces(seen, engine=engine) == in_pieces(seen)
    assert whole(table, tmp_path, engine=engine) == whole(table, tmp_path)
    # Five columns are set aside; strings and booleans of a table in memory are not sent.
    assert engine.counts == [10, 8]


class Watched(Local):
    """Remembers how many tasks it was given."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.counts: list[int] = []

    def run(self, function: Any, tasks: Any, **options: Any) -> list[Any]:
        self.counts.append(len(tasks))
        return super().run(function, tasks, **options)


def test_an_interrupt_while_columns_are_decided_is_one() -> None:
    class Interrupted(InTurn):
        def run(self, function: Any, tasks: Any, **_: Any) -> list[Any]:
            return [None for _ in tasks]

    frame = zones.read({"a": [1.5, 2.5], "b": [3.5, 4.0]})
    with pytest.raises(KeyboardInterrupt):
        schema.infer(frame, engine=Interrupted(2))
