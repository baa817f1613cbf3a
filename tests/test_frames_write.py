"""What tables cannot hold is refused by the column's name; holes never cost digits."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.typing import NDArray

from nits.tables import frames
from nits.tables.frames import Frame, Values


def column(table: Any) -> Values:
    return frames.read(table).columns["a"]


def holed(values: Values) -> Values:
    """Returns the same values, the first of which is missing."""
    return replace(values, missing=np.arange(len(values)) == 0)


@pytest.mark.parametrize(
    ("items", "dtype", "nullable"),
    [
        ([1, 2**62 + 1], "int64", "Int64"),
        ([1, 2**64 - 1], "uint64", "UInt64"),
        ([1, 100], "int8", "Int8"),
        ([True, False], "bool", "boolean"),
    ],
)
def test_holes_in_a_plain_column_of_pandas_make_it_nullable(
    items: list[Any], dtype: str, nullable: str
) -> None:
    values = column(pandas.DataFrame({"a": pandas.Series(items, dtype=dtype)}))
    back = frames.write(Frame({"a": holed(values)}, "pandas"))["a"]
    assert str(back.dtype) == nullable
    assert back.isna().tolist() == [True, False]
    assert back[1] == items[1]


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_holes_of_every_type(form: str) -> None:
    frame = pandas.DataFrame(
        {
            "real": [1.5, 2.5],
            "whole": pandas.Series([1, 2], dtype="Int16"),
            "truth": pandas.Series([True, False], dtype="boolean"),
            "text": ["a", "b"],
            "time": pandas.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("UTC"),
            "span": pandas.to_timedelta([1, 2], unit="s"),
            "group": pandas.Series(["x", "y"], dtype="category"),
        }
    )
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    given = {"pandas": frame, "arrow": arrow, "polars": polars.from_arrow(arrow)}[form]
    read = frames.read(given)
    empty = {name: replace(v, missing=np.ones(2, bool)) for name, v in read.columns.items()}
    for columns in ({n: holed(v) for n, v in read.columns.items()}, empty):
        back = frames.write(Frame(columns, form))
        again = frames.read(back)
        for name, values in columns.items():
            found = again.columns[name]
            assert found.missing.tolist() == values.missing.tolist()
            assert found.known.tolist() == values.known.tolist()
            assert found.dtype == values.dtype


def test_holes_in_arrays() -> None:
    ints = frames.read(np.array([[1, 2], [3, 4]]))
    made = {name: holed(values) for name, values in ints.columns.items()}
    back = frames.write(Frame(made, "numpy"))
    np.testing.assert_array_equal(back, [[np.nan, np.nan], [3, 4]])
    text = frames.read(np.array([["a", "b"], ["c", "d"]]))
    made = {name: holed(values) for name, values in text.columns.items()}
    assert frames.write(Frame(made, "numpy")).tolist() == [[None, None], ["c", "d"]]


FORMS: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda series: pandas.DataFrame({"a": series}),
    "arrow": lambda series: pyarrow.Table.from_pandas(pandas.DataFrame({"a": series})),
    "polars": lambda series: polars.from_pandas(pandas.DataFrame({"a": series})),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("dtype", "array", "words"),
    [
        ("int8", np.array([0, 128]), "int8 values, but has 128"),
        ("uint8", np.array([0, -1]), "uint8 values, but has -1"),
        ("int64", np.array([0, 2**63], np.uint64), "int64 values, but has 9223372036854775808"),
        ("int64", np.array([0, 2.0**63]), "int64 values, but has 9.223372036854776e+18"),
        ("uint64", np.array([0, 2.0**64]), "uint64 values, but has 1.8446744073709552e+19"),
        ("float32", np.array([0, 1e39]), "float32 values, but has 1e+39"),
        ("datetime64[ns]", np.array(["2020-01-01", "9999-01-01"], "M8[s]"), "has 9999-01-01"),
        ("timedelta64[ns]", np.array([0, 10**15], "m8[s]"), "has 1000000000000000 seconds"),
    ],
)
def test_a_value_beyond_the_type_is_refused(
    form: str, dtype: str, array: NDArray[Any], words: str
) -> None:
    values = column(FORMS[form](pandas.Series([0, 1]).astype(dtype)))
    values = replace(values, array=array)
    with pytest.raises(ValueError, match=f"column 'a' must hold .*{re.escape(words)}"):
        frames.write(Frame({"a": values}, form))
    kept = replace(values, missing=np.array([False, True]))
    assert len(frames.write(Frame({"a": kept}, form))) == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_is_no_level_is_refused(form: str) -> None:
    table = FORMS[form](pandas.Series(["x", "y"], dtype="category"))
    if form == "polars":
        table = table.cast(polars.Enum(["x", "y"]))
    wrong = replace(column(table), array=np.array(["x", "z"], object))
    message = "column 'a' must hold its declared categories, but has 'z', none of them"
    with pytest.raises(ValueError, match=message):
        frames.write(Frame({"a": wrong}, form))


def test_objects_beyond_the_calendar_are_refused() -> None:
    values = column(pandas.DataFrame({"a": pandas.Series([date(2020, 1, 1)], dtype=object)}))
    far = replace(values, array=np.array(["12000-01-01"], "M8[s]"))
    with pytest.raises(ValueError, match="column 'a' must hold date values, but has 12000-01-01"):
        frames.write(Frame({"a": far}, "pandas"))
    prices = pyarrow.table({"a": pyarrow.array([Decimal("1.5")], pyarrow.decimal128(4, 2))})
    large = replace(column(prices), array=np.array([12345.0]))
    with pytest.raises(ValueError, match=r"decimal128\(4, 2\) values, but has 12345.00"):
        frames.write(Frame({"a": large}, "arrow"))


def objects(*items: Any) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.mark.parametrize(
    ("items", "what"),
    [
        (objects([1], [1, 2]), "holds objects of the type list"),
        (objects({"x": 1}), "holds objects of the type dict"),
        (objects(b"x", None), "holds objects of the type bytes"),
        (objects(time(12)), "holds objects of the type time"),
        (objects(1j), "holds objects of the type complex"),
        (objects(np.zeros(2)), "holds objects of the type ndarray"),
        (objects(1, "x"), "has int and str"),
        (objects(date(2020, 1, 1), datetime(2020, 1, 1)), "has date and datetime"),
        (objects(True, "x", b"y"), "has bool, bytes and str"),
        (objects(2**64), "goes from 18446744073709551616 to 18446744073709551616"),
        (objects(-1, 2**63), "goes from -1 to 9223372036854775808"),
        (objects(2**53 + 1, 0.5), "has 9007199254740993"),
        (objects(Decimal("0.12345678901234567890")), "has 0.12345678901234567890"),
        (objects(datetime(2020, 1, 1), pandas.Timestamp("2020-01-01", tz="UTC")), "has both"),
        (np.array([1j]), "holds complex128"),
        (np.array([b"x"]), "holds |S1"),
        (np.zeros((2, 2)), "holds 1 more dimensions"),
        ([[1], [1, 2]], "holds objects of the type list"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_named(items: Any, what: str) -> None:
    with pytest.raises(TypeError, match=f"^column 'odd' must hold .*{re.escape(what)}.*; convert"):
        frames.read({"odd": items})


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.list_(pyarrow.int64()),
        pyarrow.binary(),
        pyarrow.struct({"x": pyarrow.int64()}),
        pyarrow.time32("s"),
    ],
    ids=str,
)
def test_what_arrow_holds_but_no_column_should_is_named(kind: Any) -> None:
    table = pyarrow.table({"odd": pyarrow.nulls(2, kind)})
    for given in (table, polars.from_arrow(table)):
        with pytest.raises(TypeError, match=r"^column 'odd' must hold numbers, times, strings or"):
            frames.read(given)


def test_infinities_stay_and_lists_are_what_pandas_makes_of_them() -> None:
    read = frames.read({"a": [1.0, np.inf, None], "b": [1, 2, 3], "c": ["x", "y", None]})
    assert read.columns["a"].known.tolist() == [1.0, np.inf]
    back = frames.write(frames.read({"b": [1, 2], "c": ["x", "y"], "d": [True, False]}))
    expected = pandas.DataFrame({"b": [1, 2], "c": ["x", "y"], "d": [True, False]})
    pandas.testing.assert_frame_equal(back, expected)


def test_tables_that_are_sparse_or_lazy_or_of_other_units() -> None:
    sparse = pandas.DataFrame({"a": pandas.arrays.SparseArray([0.0, 1.5, np.nan])})
    assert column(sparse).missing.tolist() == [False, False, True]
    assert column(polars.LazyFrame({"a": [1, None]})).known.tolist() == [1]
    days = column({"a": np.array(["2024-01-01", "9999-12-31"], "datetime64[D]")})
    assert days.array.dtype == "datetime64[s]"
    back = frames.write(Frame({"a": days}, "pandas"))
    assert back["a"].astype(str).tolist() == ["2024-01-01", "9999-12-31"]


@pytest.mark.parametrize("dtype", ["object", "category"])
@pytest.mark.parametrize("items", [["a", "b"], [3, 5], [True, False]])
def test_types_as_models_of_earlier_versions_name_them(dtype: str, items: list[Any]) -> None:
    values = Values(np.array(items, object), np.array([False, True]), dtype)
    back = frames.write(Frame({"a": values}, "pandas"))["a"]
    assert str(back.dtype) == dtype
    assert back[0] == items[0]
    assert back.isna().tolist() == [False, True]


def test_many_chunks_and_a_null_among_the_levels() -> None:
    one = pyarrow.DictionaryArray.from_arrays([0, 1], ["a", None])
    two = pyarrow.DictionaryArray.from_arrays([0, 1], ["b", "a"])
    read = column(pyarrow.table({"a": pyarrow.chunked_array([one, two])}))
    assert read.missing.tolist() == [False, True, False, False]
    assert read.known.tolist() == ["a", "b", "a"]
    assert read.levels == ("a", "b")
    empty = column(pyarrow.table({"a": pyarrow.chunked_array([], pyarrow.int64())}))
    assert len(empty) == 0
