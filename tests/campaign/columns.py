"""Hostile columns: a seeded generator for each name, of any number of rows."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pyarrow
from numpy.typing import NDArray

Draws = np.random.Generator
Make = Callable[[Draws, int], Any]
"""Returns an Arrow array, a NumPy array or a Series of n values."""

ODD_WORDS = ("NA", "null", "", "NaN", "nan", "None", "<NA>", "N/A", "#N/A", "NaT", "-", "?")
PLAIN_WORDS = ("Lima", "Oslo", "Rome")
WILD_WORDS = (
    "\x1b[31mred\x1b[0m",
    "line\nbreak",
    "tab\there",
    'quote"d',
    "comma, semi;",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2",
    "@SUM(1)",
    "Ωμέγα",
    "日本語",
    "e\u0301",
    "é",
    "\u202egnp.exe",
    "\u200b",
    "\ufeffbom",
    "🙂",
    " lead",
    "trail ",
    "a\rb",
    "\\N",
    "'",
    "x" * 300,
    "\x07bell",
    "[bold]markup[/bold]",
    "{braces}",
    "100%",
    "$x_1$",
    "$broken",
)
NUMBERS_AS_WORDS = ("1", "2", "10", "007", "1e5", "0x10", "1_000", "١٢")
TRUTHS = ("True", "false", "yes", "T", "0")


def words(listed: tuple[str, ...], *, holes: float = 0.0) -> Make:
    """Returns a generator of strings, some of them missing."""

    def made(rng: Draws, n: int) -> Any:
        some = rng.choice(len(listed), size=rng.integers(2, len(listed) + 1), replace=False)
        chosen = [listed[i] for i in rng.choice(some, n)]
        return pyarrow.array(chosen, pyarrow.string(), mask=rng.random(n) < holes)

    return made


def integers(dtype: str, *, top: bool) -> Make:
    """Returns a generator of integers near an end of their type."""
    ends = np.iinfo(dtype)

    def made(rng: Draws, n: int) -> NDArray[Any]:
        away = [int(k) for k in np.minimum(rng.poisson(rng.choice([1, 5, 30]), n), 120)]
        end = int(ends.max if top else ends.min)
        return np.array([end - k if top else end + k for k in away], dtype)

    return made


def over_all(dtype: str) -> Make:
    ends = np.iinfo(dtype)
    return lambda rng, n: rng.integers(ends.min, ends.max, n, dtype=dtype, endpoint=True)


def times(start: str, unit: str, step: int, most: int, zone: str | None = None) -> Make:
    """Returns a generator of times: a start and up to so many steps of a unit."""

    def made(rng: Draws, n: int) -> Any:
        first = int(np.array(start, f"datetime64[{unit}]").astype(np.int64))
        ticks = first + step * rng.integers(0, most, n)
        return pyarrow.array(ticks).cast(pyarrow.timestamp(unit, zone))

    return made


def with_holes(make: Make, share: float) -> Make:
    """Returns a generator that loses a share of another one's values."""

    def made(rng: Draws, n: int) -> Any:
        array = arrow(make(rng, n))
        lost = pyarrow.array(rng.random(n) < share)
        return pyarrow.compute.if_else(lost, pyarrow.scalar(None, array.type), array)

    return made


def arrow(values: Any) -> Any:
    """Returns values as an Arrow array."""
    if isinstance(values, pyarrow.Array):
        return values
    found = pyarrow.array(pandas.Series(values), from_pandas=True)
    return found.combine_chunks() if isinstance(found, pyarrow.ChunkedArray) else found


def decimals(digits: int) -> Make:
    def made(rng: Draws, n: int) -> Any:
        listed = [Decimal(int(k)).scaleb(-digits) for k in rng.integers(-5000, 90_000, n)]
        return pyarrow.array(listed, pyarrow.decimal128(20, digits))

    return made


def one_outlier(value: float) -> Make:
    def made(rng: Draws, n: int) -> NDArray[np.float64]:
        x = rng.normal(size=n)
        x[rng.integers(n)] = value
        return x

    return made


def category(listed: tuple[Any, ...], *, ordered: bool, declared: int = 0) -> Make:
    """Returns a generator of a categorical of pandas with categories that never occur, too."""

    def made(rng: Draws, n: int) -> Any:
        levels = [*listed, *(f"unused {i}" for i in range(declared))]
        codes = rng.integers(-1 if rng.random() < 0.3 else 0, len(listed), n)
        return pandas.Series(pandas.Categorical.from_codes(codes, levels, ordered=ordered))

    return made


def dates(first: str, most: int) -> Make:
    start = int(np.datetime64(first, "D").astype(np.int64))
    return lambda rng, n: (
        pyarrow.array(start + rng.integers(0, most, n)).cast(pyarrow.int32()).cast(pyarrow.date32())
    )


def durations(unit: str, step: int) -> Make:
    return lambda rng, n: pyarrow.array(step * rng.integers(-50, 400, n)).cast(
        pyarrow.duration(unit)
    )


def clipped(low: float, high: float) -> Make:
    return lambda rng, n: np.clip(rng.normal(size=n), low, high)


NUMBERS: dict[str, Make] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "1e-300": lambda rng, n: 1e-300 * rng.normal(size=n),
    "1e300": lambda rng, n: 1e300 * rng.normal(size=n),
    "denormal": lambda rng, n: 5e-324 * rng.poisson(50, n),
    "largest floats": lambda rng, n: 1.7e308 * rng.uniform(-1, 1, n),
    "steps of 1e-7": lambda rng, n: rng.integers(1, 6, n) * 1e-7,
    "1.5e6 + k/4": lambda rng, n: 1.5e6 + np.round(rng.normal(0, 400, n)) / 4,
    "1e9 and narrow": lambda rng, n: 1e9 + 1e-3 * rng.normal(size=n),
    "float16": lambda rng, n: rng.normal(3, 2, n).astype(np.float16),
    "float16 near 65504": lambda rng, n: (65504 - 32 * rng.poisson(3, n)).astype(np.float16),
    "float32": lambda rng, n: rng.gamma(2, 3, n).astype(np.float32),
    "float32 steps of 0.1": lambda rng, n: np.round(rng.normal(2, 1, n), 1).astype(np.float32),
    "float32 near its end": lambda rng, n: (3.4e38 * rng.uniform(0.9, 1, n)).astype(np.float32),
    "outlier 2e9": one_outlier(2e9),
    "outlier -1e300": one_outlier(-1e300),
    "two decimals": lambda rng, n: np.round(rng.gamma(2, 30, n), 2),
    "floor and cap": clipped(-0.5, 0.5),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.gamma(2, 3, n)),
    "both zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.5], n),
    "thirds": lambda rng, n: rng.poisson(30, n) / 3,
    "log over 600 decades": lambda rng, n: 10.0 ** rng.uniform(-300, 300, n),
    "percent": lambda rng, n: rng.integers(0, 101, n) / 100,
    "counts": lambda rng, n: rng.poisson(4, n),
    "int near 2^60": lambda rng, n: 2**60 + rng.poisson(9, n),
    "int near 2^53": lambda rng, n: 2**53 - 5 + rng.poisson(5, n),
    "int around 0 and 2^62": lambda rng, n: rng.choice([0, 2**62, 2**62 + 1], n),
    "uint64 at both ends": lambda rng, n: rng.choice(
        np.array([0, 1, 2**63, 2**64 - 2, 2**64 - 1], np.uint64), n
    ),
    "ids shuffled": lambda rng, n: rng.permutation(n),
    "row numbers": lambda rng, n: np.arange(n),
    "zip codes": lambda rng, n: rng.choice([501, 10001, 94110, 99950], n),
    "years": lambda rng, n: 2024 - rng.geometric(0.2, n),
    "decimal(20, 2)": decimals(2),
    "decimal(20, 0)": decimals(0),
    "decimal(20, 9)": decimals(9),
    "float with holes": with_holes(lambda rng, n: rng.normal(size=n), 0.3),
    "counts with holes": with_holes(lambda rng, n: rng.poisson(4, n), 0.3),
    "uint64 with holes": with_holes(integers("uint64", top=True), 0.2),
    "int8 with holes": with_holes(integers("int8", top=False), 0.2),
    "float16 with holes": with_holes(lambda rng, n: rng.normal(size=n).astype(np.float16), 0.2),
}

WHOLE_TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")

INTEGERS: dict[str, Make] = (
    {f"{name} at the top": integers(name, top=True) for name in WHOLE_TYPES}
    | {f"{name} at the bottom": integers(name, top=False) for name in WHOLE_TYPES}
    | {f"{name} over all": over_all(name) for name in WHOLE_TYPES}
)

TIMES: dict[str, Make] = {
    "seconds": times("2024-01-01", "s", 1, 10**7),
    "hours in ns": times("2024-01-01", "ns", 3600 * 10**9, 9000),
    "nanoseconds": times("2024-01-01", "ns", 1, 10**12),
    "microseconds": times("2024-01-01", "us", 1, 10**9),
    "year 1000": times("1000-01-01", "s", 1, 10**9),
    "year 1": times("0001-01-01", "s", 86_400, 300),
    "year 9999": times("9999-01-01", "s", 60, 500_000),
    "last of nanoseconds": times("2262-04-11T23:00", "ns", 10**9, 2800),
    "first of nanoseconds": times("1677-09-21T00:13", "ns", 10**9, 9000),
    "1000 to 9999 in ms": times("1000-01-01", "ms", 86_400_000, 3_000_000),
    "UTC": times("2024-01-01", "us", 10**6, 10**7, "UTC"),
    "Berlin": times("2024-03-25", "s", 600, 2000, "Europe/Berlin"),
    "Berlin in autumn": times("2024-10-26", "s", 600, 500, "Europe/Berlin"),
    "+05:30": times("2024-01-01", "ms", 1000, 10**6, "+05:30"),
    "New York, ns": times("2024-03-09", "ns", 10**9, 10**6, "America/New_York"),
    "zone in the year 9999": times("9998-01-01", "s", 3600, 9000, "UTC"),
    "time with holes": with_holes(times("2024-01-01", "s", 60, 10**5), 0.3),
    "dates": dates("2020-01-01", 700),
    "dates of 1500": dates("1500-01-01", 700),
    "dates of 9999": dates("9999-01-01", 365),
    "dates with holes": with_holes(dates("2020-01-01", 40), 0.3),
    "durations in s": durations("s", 60),
    "durations in ns": durations("ns", 1),
    "durations in us": durations("us", 1_000_003),
    "date objects": lambda rng, n: pandas.Series(
        [datetime.date(1999, 12, 1) + datetime.timedelta(int(k)) for k in rng.integers(0, 99, n)],
        dtype=object,
    ),
}

WORDS: dict[str, Make] = {
    "words": words(PLAIN_WORDS),
    "words with holes": words(PLAIN_WORDS, holes=0.3),
    "odd words": words((*ODD_WORDS, *PLAIN_WORDS)),
    "odd words with holes": words((*ODD_WORDS, *PLAIN_WORDS), holes=0.3),
    "only NA and null": words(("NA", "null")),
    "an empty word": words(("", "x")),
    "wild words": words(WILD_WORDS),
    "wild words with holes": words(WILD_WORDS, holes=0.2),
    "numbers as words": words(NUMBERS_AS_WORDS),
    "padded codes": words(("01", "02", "10", "11")),
    "truths as words": words(TRUTHS),
    "times as words": words(("2024-01-01T00:00:00Z", "2024-01-02 10:00", "noon")),
    "ISO times as words": words(("2024-01-01T00:00:00Z", "2024-01-01T12:30:00Z")),
    "clock times": words(("10:30", "11:45", "23:59:59")),
    "all differ": lambda rng, n: pyarrow.array([f"id-{k}" for k in rng.permutation(n)]),
    "many words": lambda rng, n: pyarrow.array([f"w{k}" for k in rng.zipf(1.5, n) % 999]),
    "booleans": lambda rng, n: rng.random(n) < 0.3,
    "booleans with holes": with_holes(lambda rng, n: rng.random(n) < 0.3, 0.3),
    "category": category(PLAIN_WORDS, ordered=False),
    "category with unused": category(PLAIN_WORDS, ordered=False, declared=3),
    "ordered category": category(("low", "middle", "high"), ordered=True),
    "ordered with unused": category(("low", "middle", "high"), ordered=True, declared=2),
    "category of odd words": category(ODD_WORDS, ordered=False),
    "category of numbers": category((3, 1, 2), ordered=False),
    "ordered numbers": category((3, 1, 2), ordered=True),
    "category of wild words": category(WILD_WORDS, ordered=True),
}

EMPTY: dict[str, Make] = {
    "all missing floats": lambda rng, n: np.full(n, np.nan),
    "all missing words": lambda rng, n: pyarrow.nulls(n, pyarrow.string()),
    "null": lambda rng, n: pyarrow.nulls(n),
    "all missing times": lambda rng, n: pyarrow.nulls(n, pyarrow.timestamp("ns")),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "constant integer": lambda rng, n: np.full(n, 2**62 + 1),
    "constant word": lambda rng, n: pyarrow.array([str(rng.choice(WILD_WORDS))] * n),
    "constant NA": lambda rng, n: pyarrow.array(["NA"] * n),
    "constant time": lambda rng, n: pyarrow.array([10**18] * n).cast(pyarrow.timestamp("ns")),
    "constant truth": lambda rng, n: np.full(n, True),
    "constant with holes": with_holes(lambda rng, n: np.full(n, 7.5), 0.3),
    "constant word with holes": with_holes(lambda rng, n: pyarrow.array(["only"] * n), 0.3),
    "one known value": lambda rng, n: np.where(np.arange(n) == 0, 3.25, np.nan),
}

REFUSED: dict[str, Make] = {
    "bytes": lambda rng, n: pyarrow.array([bytes([k]) for k in rng.integers(0, 256, n)]),
    "lists": lambda rng, n: pyarrow.array([[int(k)] for k in rng.integers(0, 9, n)]),
    "structs": lambda rng, n: pyarrow.array([{"a": int(k)} for k in rng.integers(0, 9, n)]),
    "infinite": lambda rng, n: np.append(rng.normal(size=n - 1), np.inf),
    "long decimals": lambda rng, n: pyarrow.array(
        [Decimal("1234567890123456789.123456789") + int(k) for k in rng.integers(0, 9, n)]
    ),
    "clock of Arrow": lambda rng, n: (
        pyarrow.array(rng.integers(0, 86_400, n)).cast(pyarrow.int32()).cast(pyarrow.time32("s"))
    ),
}
"""Columns that a model may refuse, by name."""

COLUMNS = NUMBERS | INTEGERS | TIMES | WORDS | EMPTY
