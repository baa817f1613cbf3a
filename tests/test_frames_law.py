"""The law of frames: a table read, written and read again has its values, holes and types."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from nits.tables import frames

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2024, 2, 29, 12, 30, 15, 123456)
FAR = [datetime(1000, 1, 1, 1, 2, 3), None, datetime(9999, 12, 31, 23, 59, 59)]
ZONED = [NOON.replace(tzinfo=BERLIN), None, datetime(1999, 7, 1, tzinfo=BERLIN)]
PRICES = [Decimal("1.10"), None, Decimal("-20.05")]
NA, NAT, NAN = pandas.NA, pandas.NaT, float("nan")


def objects(*items: Any) -> Any:
    return pandas.Series(list(items), dtype=object)


def series(items: Any, dtype: Any) -> Callable[[], Any]:
    return lambda: pandas.Series(items, dtype=dtype)


PANDAS: dict[str, Callable[[], Any]] = {
    **{
        name: series([1, 2, 100], name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{
        name: series([1, None, 100], name)
        for name in ("Int8", "Int64", "UInt8", "UInt64", "Float32", "Float64", "float16", "float32")
    },
    "large int64": series([2**62 + 1, -(2**62) - 1, 2**63 - 1], "int64"),
    "large Int64": series([2**62 + 1, None, -(2**63)], "Int64"),
    "large uint64": series([2**64 - 1, 2**63 + 1, 0], "uint64"),
    "large UInt64": series([2**64 - 1, None, 2**63 + 1], "UInt64"),
    "float64": series([1e300, NAN, 0.1], "float64"),
    "infinite": series([np.inf, NAN, -np.inf], "float64"),
    "bool": series([True, False, True], "bool"),
    "boolean": series([True, None, False], "boolean"),
    "str": lambda: pandas.Series(["a", None, "NA"]),
    "string": series(["a", None, ""], "string"),
    "string[python]": series(["a", None, ""], "string[python]"),
    "datetime64[ns]": series(["2024-01-01T00:00:00.123456789", None, "1700-01-01"], "M8[ns]"),
    "datetime64[s]": series(["2024-01-01", None, "1000-01-01"], "M8[s]"),
    "datetime64[us]": series(FAR, "M8[us]"),
    "datetime64[us, Berlin]": series(ZONED, "datetime64[us, Europe/Berlin]"),
    "datetime64[ns, +02:00]": series(
        pandas.to_datetime(["2024-01-01", None], utc=True).tz_convert("UTC+02:00"), None
    ),
    "timedelta64[ns]": series([timedelta(hours=1), None, timedelta(days=-3)], "m8[ns]"),
    "timedelta64[s]": series([timedelta(hours=1), None, timedelta(days=400_000)], "m8[s]"),
    "category": lambda: pandas.Series(
        pandas.Categorical(["b", None, "a"], ["c", "b", "a"], ordered=True)
    ),
    "category of integers": lambda: pandas.Series(pandas.Categorical([3, None, 1], [9, 3, 1])),
    "category of booleans": lambda: pandas.Series(pandas.Categorical([True, None], [True, False])),
    "category of times": lambda: pandas.Series(
        pandas.Categorical(pandas.to_datetime(["2024-01-01", None, "2023-01-01"]))
    ),
    "category of dates": lambda: pandas.Series(
        pandas.Categorical(objects(date(2024, 1, 1), None, date(2023, 1, 1)))
    ),
    "empty category": series([None, None], "category"),
    "category of intervals": lambda: pandas.Series(pandas.cut([0.1, 2.0, NAN], 3)),
    "intervals": lambda: pandas.Series(pandas.interval_range(0, 2).append(pandas.Index([NAN]))),
    "intervals of times": lambda: pandas.Series(
        pandas.interval_range(pandas.Timestamp("2020"), periods=2, closed="left")
    ),
    "str(python)": series(["a", None], pandas.StringDtype("python", NAN)),
    "period[ms]": lambda: pandas.Series(pandas.PeriodIndex(["2020-01-01 00:00:00.123"], freq="ms")),
    "period[D]": lambda: pandas.Series(pandas.PeriodIndex(["2020-01-01", None], freq="D")),
    "period[M]": lambda: pandas.Series(pandas.PeriodIndex(["2020-01", "1000-02"], freq="M")),
    "object booleans": lambda: objects(True, None, False),
    "object integers": lambda: objects(1, NAN, 2**62 + 1),
    "object large integers": lambda: objects(2**64 - 1, None, 3),
    "object floats": lambda: objects(1.5, NAN, 2.5),
    "object mixed numbers": lambda: objects(1, None, 2.5),
    "object strings": lambda: objects("a", None, ""),
    "object strings, NA": lambda: objects("a", NA, ""),
    "object dates": lambda: objects(date(2024, 2, 29), None, date(9999, 12, 31), date(1, 1, 1)),
    "object datetimes": lambda: objects(*FAR),
    "object datetimes in a zone": lambda: objects(*ZONED),
    "object datetimes at an offset": lambda: objects(
        NOON.replace(tzinfo=timezone(timedelta(hours=2))), None
    ),
    "object datetimes in UTC": lambda: objects(NOON.replace(tzinfo=UTC), None),
    "object timestamps": lambda: objects(pandas.Timestamp("2024-01-01T00:00:00.123456789"), NAT),
    "object timestamps in a zone": lambda: objects(pandas.Timestamp(NOON, tz="Asia/Tokyo"), NAT),
    "object durations": lambda: objects(timedelta(days=1), None, timedelta(microseconds=1)),
    "object decimals": lambda: objects(*PRICES),
    "object nothing": lambda: objects(None, None),
    "int64[pyarrow]": series([1, None], "int64[pyarrow]"),
    "bool[pyarrow]": series([True, None], "bool[pyarrow]"),
    "string[pyarrow]": series(["a", None], pandas.ArrowDtype(pyarrow.string())),
    "decimal[pyarrow]": series(PRICES, pandas.ArrowDtype(pyarrow.decimal128(10, 2))),
    "timestamp[pyarrow]": series(ZONED, pandas.ArrowDtype(pyarrow.timestamp("us", "Asia/Tokyo"))),
    "date[pyarrow]": series([date(2024, 1, 1), None], pandas.ArrowDtype(pyarrow.date32())),
}

ARROW: dict[str, tuple[list[Any], pyarrow.DataType]] = {
    **{
        name: ([1, None, 100], pyarrow.type_for_alias(name))
        for name in (
            *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64"),
        )
    },
    "large int64": ([2**62 + 1, None, -(2**63)], pyarrow.int64()),
    "large uint64": ([2**64 - 1, None, 2**63 + 1], pyarrow.uint64()),
    "bool": ([True, None, False], pyarrow.bool_()),
    "string": (["a", None, ""], pyarrow.string()),
    "large_string": (["a", None, "NA"], pyarrow.large_string()),
    "null": ([None, None], pyarrow.null()),
    **{f"timestamp[{unit}]": (FAR, pyarrow.timestamp(unit)) for unit in ("s", "ms", "us")},
    "timestamp[ns]": ([2**63 - 1, None, 0], pyarrow.timestamp("ns")),
    "timestamp[us, Berlin]": (ZONED, pyarrow.timestamp("us", "Europe/Berlin")),
    "timestamp[ms, +02:00]": ([0, None], pyarrow.timestamp("ms", "+02:00")),
    "date32": ([date(1, 1, 1), None, date(9999, 12, 31)], pyarrow.date32()),
    "date64": ([date(1, 1, 1), None, date(9999, 12, 31)], pyarrow.date64()),
    **{
        f"duration[{unit}]": ([1, None, -(10**12)], pyarrow.duration(unit))
        for unit in ("s", "ms", "us", "ns")
    },
    "decimal128": (PRICES, pyarrow.decimal128(10, 2)),
    "decimal128, wide": ([Decimal("0.1"), None], pyarrow.decimal128(38, 18)),
    "decimal256": (PRICES, pyarrow.decimal256(50, 2)),
    "empty decimal": ([None], pyarrow.decimal128(5, 2)),
}


def dictionary(kind: Any, ordered: bool) -> Any:
    indices = pyarrow.array([2, None, 0], pyarrow.int8())
    levels = pyarrow.array(["c", "b", "a"] if kind == "string" else [9, 3, 1], kind)
    return pyarrow.DictionaryArray.from_arrays(indices, levels, ordered=ordered)


POLARS: dict[str, tuple[list[Any], Any]] = {
    "Int8": ([1, None], polars.Int8),
    "UInt64": ([2**64 - 1, None], polars.UInt64),
    "Int64": ([2**62 + 1, None], polars.Int64),
    "Float32": ([1.5, None], polars.Float32),
    "Boolean": ([True, None], polars.Boolean),
    "String": (["a", None, ""], polars.String),
    "Date": ([date(9999, 12, 31), None], polars.Date),
    "Datetime": (FAR, polars.Datetime("us")),
    "Datetime, Berlin": (ZONED, polars.Datetime("us", "Europe/Berlin")),
    "Duration": ([timedelta(days=1), None], polars.Duration("ms")),
    "Decimal": (PRICES, polars.Decimal(10, 2)),
    "Categorical": (["b", None, "a"], polars.Categorical),
    "Enum": (["b", None, "a"], polars.Enum(["c", "b", "a"])),
    "Null": ([None, None], polars.Null),
}


def same(one: frames.Frame, other: frames.Frame) -> None:
    """Raises if two frames differ."""
    assert list(one.columns) == list(other.columns)
    for a, b in zip(one.columns.values(), other.columns.values(), strict=True):
        assert (a.dtype, a.levels, a.ordered) == (b.dtype, b.levels, b.ordered)
        assert a.array.dtype == b.array.dtype
        assert a.missing.tolist() == b.missing.tolist()
        assert a.known.tolist() == b.known.tolist()


@pytest.mark.parametrize("name", PANDAS)
def test_pandas(name: str) -> None:
    table = pandas.DataFrame({"a": PANDAS[name]()})
    read = frames.read(table)
    back = frames.write(read)
    pandas.testing.assert_frame_equal(back, table)
    holes = [item is None or item is NA or item is NAT for item in table["a"].tolist()]
    assert [item is None or item is NA or item is NAT for item in back["a"].tolist()] == holes
    same(frames.read(back), read)


@pytest.mark.parametrize("name", ARROW)
def test_arrow(name: str) -> None:
    table = pyarrow.table({"a": pyarrow.array(*ARROW[name])})
    read = frames.read(table)
    back = frames.write(read)
    assert back.schema.types == table.schema.types
    assert back.equals(table)
    same(frames.read(back), read)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", ["string", "int16"])
def test_dictionaries_keep_their_levels(kind: str, ordered: bool) -> None:
    table = pyarrow.table({"a": dictionary(kind, ordered)})
    read = frames.read(table)
    levels = ("c", "b", "a") if kind == "string" else (9, 3, 1)
    assert (read.columns["a"].levels, read.columns["a"].ordered) == (levels, ordered)
    assert read.columns["a"].known.tolist() == [levels[2], levels[0]]
    assert frames.write(read).equals(table)


@pytest.mark.parametrize("name", POLARS)
def test_polars(name: str) -> None:
    items, dtype = POLARS[name]
    table = polars.DataFrame({"a": polars.Series(items, dtype=dtype)})
    read = frames.read(table)
    back = frames.write(read)
    assert back.schema == table.schema
    assert back.equals(table)
    same(frames.read(back), read)


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1.5, np.nan], [2.5, 3.5]]),
        np.array([[1.5, np.nan], [2.5, 3.5]], np.float32),
        np.array([[1, 2], [3, 4]], np.int8),
        np.array([[2**64 - 1, 2], [3, 4]], np.uint64),
        np.array([[True, False], [True, True]]),
        np.array([["a", "bc"], ["d", "e"]]),
        np.array([["a", 1], [None, 2]], object),
        np.array([["2024-01-01", "NaT"], ["0001-01-01", "9999-12-31"]], "datetime64[D]"),
        np.array([[1, 2], [3, 4]], "timedelta64[ms]"),
    ],
    ids=lambda table: str(table.dtype),
)
def test_numpy(table: Any) -> None:
    back = frames.write(frames.read(table))
    assert back.dtype == table.dtype
    np.testing.assert_array_equal(back, table)
