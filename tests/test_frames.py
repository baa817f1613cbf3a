"""Frames: tables of every library read alike, and given back in the types that they had."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from nits.tables import files, frames


def table() -> Any:
    return pandas.DataFrame(
        {
            "real": [1.5, np.nan, 2.5],
            "count": np.array([1, 2, 3], np.int32),
            "text": ["a", None, "b"],
            "truth": [True, False, True],
            "time": pandas.to_datetime(["2024-01-01 00:00", "2024-01-02 12:00", None]),
        }
    )


def test_every_library_gives_the_same_columns() -> None:
    frame = table()
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    for form, given in (("pandas", frame), ("arrow", arrow), ("polars", polars.from_arrow(arrow))):
        read = frames.read(given)
        assert read.form == form
        assert len(read) == 3
        assert list(read.columns) == list(frame.columns)
        kinds = {name: values.array.dtype.kind for name, values in read.columns.items()}
        assert kinds == {"real": "f", "count": "i", "text": "O", "truth": "b", "time": "M"}
        missing = {name: values.missing.tolist() for name, values in read.columns.items()}
        assert missing == {
            "real": [False, True, False],
            "count": [False] * 3,
            "text": [False, True, False],
            "truth": [False] * 3,
            "time": [False, False, True],
        }
        assert read.columns["text"].known.tolist() == ["a", "b"]


def test_integers_and_booleans_with_missing_values_stay_what_they_are() -> None:
    frame = pandas.DataFrame(
        {
            "count": pandas.array([1, None, 3], "Int64"),
            "truth": pandas.array([True, None, False], "boolean"),
        }
    )
    for given in (frame, pyarrow.Table.from_pandas(frame), polars.from_pandas(frame)):
        read = frames.read(given)
        assert read.columns["count"].known.tolist() == [1, 3]
        assert read.columns["count"].array.dtype.kind == "i"
        assert read.columns["truth"].known.tolist() == [True, False]
        assert read.columns["truth"].array.dtype.kind == "b"


def test_arrays_and_mappings() -> None:
    read = frames.read(np.arange(6.0).reshape(3, 2))
    assert read.form == "numpy"
    assert list(read.columns) == ["x0", "x1"]
    assert frames.read({"a": [1, 2], "b": ["x", "y"]}).columns["b"].known.tolist() == ["x", "y"]


@pytest.mark.parametrize("odd", [3, "xyz", b"xyz", None, {1, 2}, {1: 2}, np.array(3.0), iter([1])])
def test_a_column_of_a_mapping_is_a_list(odd: Any) -> None:
    with pytest.raises(TypeError, match=r"^column 'a' must be a list of values, but is of the "):
        frames.read({"a": odd, "b": [1, 2, 3]})


def test_the_columns_of_a_mapping_are_equally_long() -> None:
    with pytest.raises(ValueError, match="but 'a' has 3 values and 'c' has 1"):
        frames.read({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": np.ones(1)})


def test_what_is_masked_is_missing() -> None:
    mask = np.array([[False, True], [False, False], [True, False]])
    masked = np.ma.masked_array(np.arange(6).reshape(3, 2), mask=mask)
    read = frames.read(masked)
    assert [one.known.tolist() for one in read.columns.values()] == [[0, 2], [3, 5]]
    assert frames.read({"a": masked[:, 0]}).columns["a"].missing.tolist() == [False, False, True]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        table().to_parquet(path)
    else:
        table().to_csv(path, index=False, sep="\t" if ".tsv" in suffix else ",")
    read = frames.read(path)
    assert read.columns["real"].missing.tolist() == [False, True, False]
    assert read.columns["text"].known.tolist() == ["a", "b"]
    assert read.columns["time"].array.dtype.kind == "M"
    whole = [len(batch) for batch in files.batches(str(path))]
    assert sum(whole) == 3


@pytest.mark.parametrize("form", ["pandas", "arrow", "polars"])
def test_a_table_comes_back_as_it_was(form: str) -> None:
    frame = table().dropna().reset_index(drop=True)
    frame["group"] = frame["text"].astype("category")
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    given = {"pandas": frame, "arrow": arrow, "polars": polars.from_arrow(arrow)}[form]
    read = frames.read(given)
    back = frames.write(read)
    assert type(back) is type(given)
    if form == "pandas":
        pandas.testing.assert_frame_equal(back, given)
    else:
        assert [str(column) for column in back["count"].to_numpy().tolist()] == ["1"]
        assert (
            frames.read(back).columns["time"].array.tolist() == read.columns["time"].array.tolist()
        )


@pytest.mark.parametrize("form", ["pandas", "arrow", "polars"])
def test_times_of_a_zone_are_read_in_utc_and_come_back_in_it(form: str) -> None:
    """The clock of Berlin shows half past two twice that night, an hour apart."""
    utc = ["2024-10-26T12:00", "2024-10-27T00:30", "2024-10-27T01:30"]
    times = pandas.to_datetime(utc, utc=True).tz_convert("Europe/Berlin")
    frame = pandas.DataFrame({"time": times})
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    given = {"pandas": frame, "arrow": arrow, "polars": polars.from_arrow(arrow)}[form]
    frame = frames.read(given)
    read = frame.columns["time"]
    assert read.array.tolist() == np.array(utc, "datetime64[ns]").tolist()
    back = frames.write(frame)
    assert str(back["time"][0]) == str(given["time"][0])
    assert frames.read(back).columns["time"].array.tolist() == read.array.tolist()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            np.zeros(3),
            ValueError,
            "a table must have rows and columns, but this has 1 dimensions; reshape your",
        ),
        (
            np.zeros((2, 2), complex),
            TypeError,
            "column 'x0' must hold numbers, times, strings or booleans, but holds complex128;",
        ),
        (
            {"a": np.array([1, "x", 2.5], object)},
            TypeError,
            "column 'a' must hold values of one type, but has float, int and str;",
        ),
        (
            "table.xlsx",
            ValueError,
            "must end in .csv, .csv.gz, .tsv, .tsv.gz, .parquet, .pq, but is 'table.xlsx'",
        ),
    ],
)
def test_what_is_no_table(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        frames.read(given)


def test_two_columns_of_one_name() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(
        ValueError, match="columns must have different names, but 'a' occurs twice; rename one"
    ):
        frames.read(frame)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"

    def interrupted() -> None:
        with files.written(str(path)) as writer:
            writer.write(pyarrow.table({"a": [1]}))
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    with files.written(str(path)) as writer:
        writer.write(pyarrow.table({"a": [1]}))
    assert path.read_text() == '"a"\n1\n'
