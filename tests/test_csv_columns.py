"""CSV as people write it, and as a model must read what it wrote."""

import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from nits.tables import csv_columns, csv_text, files, frames

TIMES = [datetime(2024, 2, 29, 12, 30, 15), None, datetime(1999, 7, 1)]
FAR = [datetime(1000, 1, 1, 1, 2, 3), None, datetime(9999, 12, 31, 23, 59, 59)]
SPANS = [timedelta(hours=1), None, timedelta(days=-3, microseconds=5000)]
PRICES = [Decimal("1.10"), None, Decimal("-20.05")]


def written(tmp_path: Path, text: str, name: str = "table.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def column(tmp_path: Path, *cells: str) -> frames.Values:
    """Returns the column whose cells have this text."""
    text = "".join(f"{cell},1\n" for cell in ("a", *cells)).replace("a,1", "a,b", 1)
    return frames.read(written(tmp_path, text)).columns["a"]


@pytest.mark.parametrize("hole", ["NA", "N/A", "null", "NaN", "", "<NA>", "NaT", '""'])
@pytest.mark.parametrize(
    "cells", [("x", "y"), ("1", "2"), ("1.5", "2"), ("true", "false"), ("2024-01-01", "2024-01-02")]
)
def test_missing_values(tmp_path: Path, hole: str, cells: tuple[str, str]) -> None:
    read = column(tmp_path, cells[0], hole, cells[1])
    assert read.missing.tolist() == [False, True, False]
    assert read.array.dtype == column(tmp_path, *cells).array.dtype


@pytest.mark.parametrize("word", ["NA", "null", "NaN", "<NA>"])
def test_words_in_quotes_are_words(tmp_path: Path, word: str) -> None:
    read = column(tmp_path, f'"{word}"', word, "x", "")
    assert read.known.tolist() == [word, "x"]
    assert read.missing.tolist() == [False, True, False, True]
    assert column(tmp_path, f'"{word}"', '"7"', "").known.tolist() == [7]
    assert column(tmp_path, f'"{word}"', '"2024-01-01 10:00"').array.dtype.kind == "M"


def test_the_empty_word_is_one_where_cells_are_empty_without_quotes(tmp_path: Path) -> None:
    assert column(tmp_path, '""', "x", "").known.tolist() == ["", "x"]
    assert column(tmp_path, '""', "x").known.tolist() == ["x"]


@pytest.mark.parametrize("word", ["NA", "null", ""])
def test_a_model_keeps_the_words_that_it_knows(tmp_path: Path, word: str) -> None:
    path = str(tmp_path / "table.csv")
    with files.written(path) as writer:
        writer.write(pyarrow.table({"a": [word, None, "x"], "b": [word, None, "x"]}))
    types = files.types_of({"a": "string", "b": "string"}, {"a": ["x", word]})
    read = files.read_table(path, types)
    assert read.to_pydict() == {"a": [word, None, "x"], "b": [None, None, "x"]}


def test_names_and_words_with_line_breaks(tmp_path: Path) -> None:
    path = str(tmp_path / "table.csv")
    table = pyarrow.table({'a\nb"': ["x\ny", "z"] * 9, "c": range(18)})
    with files.written(path) as writer:
        writer.write(table)
    assert files.read_table(path).equals(table)
    types = files.types_of({'a\nb"': "string", "c": "int8"})
    assert pyarrow.concat_tables(files.batches(path, types)).equals(table)


def test_times_of_day_are_text_as_it_is(tmp_path: Path) -> None:
    assert column(tmp_path, "10:30", "11:45:00", "").known.tolist() == ["10:30", "11:45:00"]


@pytest.mark.parametrize("again", [False, True])
def test_a_pipe_is_read_once(tmp_path: Path, again: bool) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    text = b"a,b\n" + b"1,x\n" * 50_000
    feeder = threading.Thread(target=lambda: Path(path).write_bytes(text))
    feeder.start()
    types = files.types_of({"a": "int8", "b": "string"})
    read = files.read_table(path) if again else pyarrow.concat_tables(files.batches(path, types))
    feeder.join()
    assert read.num_rows == 50_000
    assert read.column("b").to_pylist()[-1] == "x"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_are_not_wanted_are_not_read(tmp_path: Path, ending: str) -> None:
    path = str(tmp_path / f"table.{ending}")
    with files.written(path) as writer:
        writer.write(pyarrow.table({"id": [1, 2], "a": [3, 4], "b": [5, 6]}))
    types = files.types_of({"b": "int64", "a": "int64"})
    assert files.read_table(path, types).column_names == ["a", "b"]
    assert [one.column_names for one in files.batches(path, types)] == [["a", "b"]]
    # If one lacks, all are there for the error to list.
    types = files.types_of({"b": "int64", "c": "int64"})
    assert sorted(files.read_table(path, types).column_names) == ["a", "b", "id"]


def test_a_column_that_lacks_is_told_with_all_that_cannot_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,soon\n")
    types = files.types_of({"a": "int64", "b": "double", "c": "double"})
    message = "must have the column 'c', but has a, b; add what lacks. column 'b' must hold double"
    with pytest.raises(ValueError, match=message):
        files.read_table(path, types)


def test_all_columns_that_cannot_be_read_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b,c,d\n1,soon,x,1\n2,2024-01-01,y,2\n")
    types = files.types_of(
        {"a": "int64", "b": "timestamp[s]", "c": "double", "d": "int64"}, spare=["d"]
    )
    message = r"table.csv: column 'b' must .* but has 'soon'; column 'c' must .* but has 'x'; conv"
    with pytest.raises(ValueError, match=message):
        files.read_table(path, types)


def test_text_in_a_column_that_is_not_needed_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,7\n2,late\n")
    types = files.types_of({"a": "int64", "b": "int64"}, spare=["b"])
    assert files.read_table(path, types).to_pydict() == {"a": [1, 2], "b": ["7", "late"]}


@pytest.mark.parametrize("text", ["NA", "N/A", "null", "NaN", ""])
def test_strings_in_parquet_are_strings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.parquet"
    pandas.DataFrame({"a": [text, None]}).to_parquet(path)
    read = frames.read(path).columns["a"]
    assert read.known.tolist() == [text]
    assert read.missing.tolist() == [False, True]


@pytest.mark.parametrize(
    ("cell", "value", "dtype"),
    [
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00", "timestamp[s, tz=UTC]"),
        ("2024-01-01T10:00:00+02:00", "2024-01-01T08:00:00", "timestamp[s, tz=UTC]"),
        ("2024-01-01 10:00", "2024-01-01T10:00:00", "timestamp[s]"),
        ("2024-01-01 10:00:00.25", "2024-01-01T10:00:00.25", "timestamp[ns]"),
        ("1000-01-01 10:00:00", "1000-01-01T10:00:00", "timestamp[s]"),
        ("1000-01-01 10:00:00.25", "1000-01-01T10:00:00.25", "timestamp[us]"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999", "timestamp[us, tz=UTC]"),
        ("9999-12-31", "9999-12-31", "date32[day]"),
    ],
)
def test_times(tmp_path: Path, cell: str, value: str, dtype: str) -> None:
    read = column(tmp_path, cell, "")
    assert read.known[0] == np.datetime64(value)
    assert read.dtype == dtype


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0 days 01:00:00", timedelta(hours=1)),
        ("-1 days +23:59:55", timedelta(seconds=-5)),
        ("1 days", timedelta(days=1)),
        ("2 days 00:00:00.500000", timedelta(days=2, microseconds=500_000)),
    ],
)
def test_durations_as_pandas_prints_them(tmp_path: Path, cell: str, value: timedelta) -> None:
    read = column(tmp_path, cell, "")
    assert read.known[0] == np.timedelta64(value)
    assert read.dtype == "duration[ns]"


def test_text_that_begins_like_a_time_stays_text(tmp_path: Path) -> None:
    cells = ("1000-01-01 10:00:00.25", "soon"), ("1 days", "a while"), ("12:30:00", "13:00:00")
    for pair in cells:
        assert column(tmp_path, *pair).known.tolist() == list(pair)


def test_large_integers_keep_every_digit(tmp_path: Path) -> None:
    assert column(tmp_path, "18446744073709551615", "1", "").known.tolist() == [2**64 - 1, 1]
    assert column(tmp_path, "4611686018427387905", "-1").known.tolist() == [2**62 + 1, -1]
    assert column(tmp_path, "18446744073709551615", "0.5").array.dtype == np.float64
    assert column(tmp_path, "1e19", "2").array.dtype == np.float64


def everything() -> Any:
    """Returns an Arrow table with every type, the rows of which a CSV file can hold."""
    return pyarrow.table(
        {
            "int8": pyarrow.array([1, None, -100], pyarrow.int8()),
            "int64": pyarrow.array([2**62 + 1, None, -(2**62) - 1]),
            "uint64": pyarrow.array([2**64 - 1, None, 2**63 + 1], pyarrow.uint64()),
            "float": pyarrow.array([0.1, None, 1e30], pyarrow.float32()),
            "double": [0.1 + 0.2, None, 5e-324],
            "bool": [True, None, False],
            "string": ["a", None, "b,\"c'"],
            "dictionary": pyarrow.array(["x", None, "y"]).dictionary_encode(),
            "numbers": pyarrow.array([7, None, 5]).dictionary_encode(),
            "seconds": pyarrow.array(FAR, pyarrow.timestamp("s")),
            "micros": pyarrow.array(FAR, pyarrow.timestamp("us")),
            "nanos": pyarrow.array([2**62 + 1, None, 1], pyarrow.timestamp("ns")),
            "utc": pyarrow.array(TIMES, pyarrow.timestamp("us", "UTC")),
            "berlin": pyarrow.array(TIMES, pyarrow.timestamp("ns", "Europe/Berlin")),
            "date32": pyarrow.array([date(1, 1, 1), None, date(9999, 12, 31)]),
            "date64": pyarrow.array([date(1, 1, 1), None, date(9999, 12, 31)], pyarrow.date64()),
            "duration": pyarrow.array(SPANS, pyarrow.duration("ms")),
            "decimal": pyarrow.array(PRICES, pyarrow.decimal128(10, 2)),
        }
    )


def tables() -> dict[str, Any]:
    arrow = everything()
    objects = pandas.DataFrame(
        {
            "dates": pandas.Series([date(2024, 1, 1), None, date(1, 1, 1)], dtype=object),
            "decimals": pandas.Series(PRICES, dtype=object),
            "times": pandas.Series([t and t.replace(tzinfo=UTC) for t in TIMES], dtype=object),
            "spans": pandas.Series(SPANS, dtype=object),
            "whole": pandas.Series([1, None, 2**62 + 1], dtype=object),
            "truth": pandas.Series([True, None, False], dtype=object),
            "offset": pandas.Series(TIMES).dt.tz_localize("UTC+02:00"),
            "count": pandas.Series([1, None, 3], dtype="UInt8"),
            "span": pandas.Series(SPANS, dtype="timedelta64[us]"),
            "group": pandas.Series([3, None, 5], dtype="category"),
        }
    )
    frame = arrow.drop_columns(["date64"]).to_pandas(types_mapper=pandas.ArrowDtype)
    return {
        "arrow": arrow,
        "polars": polars.from_arrow(arrow),
        "pandas of Arrow": frame,
        "pandas": objects,
    }


TABLES = tables()


def as_arrow(table: Any) -> Any:
    if isinstance(table, pyarrow.Table):
        return table
    if isinstance(table, polars.DataFrame):
        return table.to_arrow()
    return pyarrow.Table.from_pandas(table, preserve_index=False)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_a_model_reads_back_the_file_that_it_writes(tmp_path: Path, name: str, suffix: str) -> None:
    frame = frames.read(TABLES[name])
    path = str(tmp_path / f"table{suffix}")
    with files.written(path) as writer:
        writer.write(as_arrow(frames.write(frame)))
    types = files.types_of({column: values.dtype for column, values in frame.columns.items()})
    whole = files.read_table(path, types)
    parts = pyarrow.concat_tables(files.batches(path, types))
    assert parts.equals(whole)
    again = frames.read(whole)
    assert list(again.columns) == list(frame.columns)
    for column, values in frame.columns.items():
        found = again.columns[column]
        assert found.missing.tolist() == values.missing.tolist(), column
        assert found.array.dtype == values.array.dtype, column
        assert found.known.tolist() == values.known.tolist(), column


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_read_written_and_read_again_is_the_same(tmp_path: Path, suffix: str) -> None:
    first, second = (str(tmp_path / f"{name}{suffix}") for name in "ab")
    table = everything()
    for path in (first, second):
        with files.written(path) as writer:
            writer.write(table)
        table = frames.write(frames.read(path))
    one, other = files.read_table(first), files.read_table(second)
    if suffix == ".parquet":
        # Parquet has no seconds and no dates but in days, and Arrow no numbers' dictionaries in it.
        lost = ["seconds", "numbers", "date64"]
        assert one.drop_columns(lost).equals(everything().drop_columns(lost))
    assert one.schema.types == other.schema.types
    assert one.equals(other)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("category[int8]", pyarrow.int64()),
        ("dictionary<values=uint64, indices=int8, ordered=0>", pyarrow.uint64()),
        ("Enum", pyarrow.string()),
        ("<U3", pyarrow.string()),
        ("category[interval[float64, right]]", pyarrow.string()),
        ("str(python)", pyarrow.string()),
        ("string[pyarrow]", pyarrow.string()),
        ("halffloat", pyarrow.float16()),
        ("Float32", pyarrow.float32()),
        ("object[Decimal 3, nan]", pyarrow.decimal128(38, 3)),
        ("object[datetime Europe/Berlin]", pyarrow.timestamp("us", "Europe/Berlin")),
        ("object[int, NA]", pyarrow.int64()),
        ("datetime64[D]", pyarrow.date32()),
        ("datetime64[ms, UTC-03:30]", pyarrow.timestamp("ms", "-03:30")),
        ("timedelta64[us]", pyarrow.duration("us")),
        ("period[M]", pyarrow.timestamp("us")),
        ("date64[ms]", pyarrow.date64()),
    ],
)
def test_types_of(name: str, kind: Any) -> None:
    assert files.types_of({"a": name}) == {"a": csv_columns.Wanted(kind)}


def test_what_a_column_of_integers_may_hold_later(tmp_path: Path) -> None:
    types = files.types_of({"a": "int8", "b": "int64"})
    path = written(tmp_path, "a,b,extra\n3.0,1000, x\n,2,3\n")
    read = files.read_table(path, types)
    assert read.to_pydict() == {"a": [3, None], "b": [1000, 2]}
    assert read.schema.types == [pyarrow.int64()] * 2
    path = written(tmp_path, "a,b\n2.5, 7\n,99999999999\n")
    assert files.read_table(path, types).to_pydict() == {"a": [2.5, None], "b": [7, 99999999999]}


def test_times_and_dates_may_change_places(tmp_path: Path) -> None:
    types = files.types_of({"a": "timestamp[ns]", "b": "date32[day]", "c": "datetime64[ns, UTC]"})
    path = written(tmp_path, "a,b,c\n2024-01-01,2024-01-01 12:00,2024-01-01 00:00:00\n")
    read = frames.read(files.read_table(path, types))
    assert [str(values.array[0])[:16] for values in read.columns.values()] == [
        "2024-01-01T00:00",
        "2024-01-01T12:00",
        "2024-01-01T00:00",
    ]


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [("Int64", "int64"), ("timestamp[ns]", "timestamp[ns]"), ("timedelta64[s]", "duration[s]")],
)
def test_text_that_is_none_of_the_type_is_named(tmp_path: Path, dtype: str, shown: str) -> None:
    path = written(tmp_path, "a,b\n,1\nsoon,2\n")
    message = rf"column 'a' must hold {shown[:4]}.* values, as in training, but has 'soon'; convert"
    with pytest.raises(ValueError, match=message):
        files.read_table(path, files.types_of({"a": dtype}))


def test_columns_that_a_model_does_not_know_may_change_from_batch_to_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 64)
    rows = "".join(f"{i},{i if i < 50 else 'text'}\n" for i in range(100))
    path = written(tmp_path, "a,b\n" + rows)
    parts = list(files.batches(path, files.types_of({"a": "int64"})))
    assert len(parts) > 5
    assert pyarrow.concat_tables(parts).column("a").to_pylist() == list(range(100))


class Input:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"a,b\n18446744073709551615,x\n1,\n"))


@pytest.mark.usefixtures("typed")
def test_standard_input_whole() -> None:
    assert files.read_table("-").to_pydict() == {"a": [2**64 - 1, 1], "b": ["x", None]}


@pytest.mark.usefixtures("typed")
def test_standard_input_in_batches() -> None:
    types = files.types_of({"a": "uint64", "b": "string"})
    parts = pyarrow.concat_tables(files.batches("-", types))
    assert parts.to_pydict() == {"a": [2**64 - 1, 1], "b": ["x", None]}


ROWS = {"s": ["x", 'q"u', "a\nb", '"', "", '5" pipe,\n', "é"] * 9, "n": [*range(62), None]}


@pytest.mark.parametrize("size", [48, 64, 97, 10_000])
@pytest.mark.parametrize("types", [None, files.types_of({"s": "str", "n": "int64"}, {"s": [""]})])
def test_blocks_of_a_stream_end_where_rows_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, types: files.Types | None
) -> None:
    path = str(tmp_path / "t.csv")
    with files.written(path) as writer:
        writer.write(pyarrow.table(ROWS))
    content = Path(path).read_bytes() + b'5" pipe,3\r\n6" pipe,4\r\n"end",5'
    monkeypatch.setattr(sys, "stdin", Input(content))
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", size)
    monkeypatch.setattr(csv_text, "HEADER_BYTES", 1)
    parts = list(files.batches("-", types))
    found = pyarrow.concat_tables(parts).to_pydict()
    assert found["s"] == [*ROWS["s"], '5" pipe', '6" pipe', "end"]
    assert found["n"] == [*ROWS["n"], 3, 4, 5]
    assert len(parts) > 5 or size == 10_000


@pytest.mark.parametrize("size", [1, 2, 7])
def test_pieces_of_a_stream_are_whole_rows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    rows = [b"a\tb\n", b'"x""\n"\t1\r\n', b'5" pipe\t"\n"\n', b'""\t""""\n', b"\t\n", b'"y"\t2']
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", size)
    found = list(csv_text._blocks(rows[0], io.BytesIO(b"".join(rows[1:])), "\t"))
    assert b"".join(found) == b"".join(rows)
    assert {*np.cumsum([*map(len, found)])} <= {*np.cumsum([*map(len, rows)])}
    assert len(found) == len(rows) or size == 7


@pytest.mark.parametrize(
    ("first", "told"), [("soon,1", "ValueError"), ("1,2,3", "ValueError"), ("1,2", "Keyboard")]
)
def test_a_stream_that_goes_on_does_not_outlast_an_error(first: str, told: str) -> None:
    program = (
        "import os, signal; from nits.tables import files\n"
        "types = files.types_of({'a': 'int64', 'b': 'int64'})\n"
        "for part in files.batches('-', types):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"a,b\n{first}\n".encode() + b"1,2\n" * 2**22)
        error = process.stderr.read().decode()  # ends, though nobody has closed what it reads
        assert process.wait(30) in (1, -signal.SIGINT)
    assert error.splitlines()[-1].startswith(told)


@pytest.mark.parametrize("types", [None, {"Unnamed: 0": "float64", "x": "int64"}])
def test_a_saved_index_is_named_as_pandas_names_it(
    tmp_path: Path, types: dict[str, str] | None
) -> None:
    path = str(tmp_path / "table.csv")
    pandas.DataFrame({"x": [3, 4]}).to_csv(path)
    told = None if types is None else files.types_of(types)
    for read in (files.read_table(path, told), *files.batches(path, told)):
        assert read.column_names == ["Unnamed: 0", "x"]
        assert read.column("x").to_pylist() == [3, 4]
        assert [float(item) for item in read.column(0).to_pylist()] == [0, 1]


@pytest.mark.parametrize("text", ["\ufeffa,b\n1,2\n", "\na,b\r\n1,2\r\n", '"a","b"\n1,2'])
def test_headers(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    assert files.read_table(path).to_pydict() == {"a": [1], "b": [2]}


def test_holes_of_a_file_with_one_column(tmp_path: Path) -> None:
    path = str(tmp_path / "one.csv")
    with files.written(path) as writer:
        writer.write(pyarrow.table({"a": [1, None, 3, None]}))
    assert files.read_table(path).to_pydict() == {"a": [1, None, 3, None]}
