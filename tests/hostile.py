"""Columns that are hard to model: a hundred named generators, each with its own seed.

`COLUMNS` has a function of a random generator for each name; `column` draws one as a pandas Series.
"""

import datetime
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

Draws = np.random.Generator
Make = Callable[[Draws], Any]

N = 1000


def column(name: str) -> Any:
    """Returns a hostile column as a Series that is always the same."""
    made = COLUMNS[name](np.random.default_rng(zlib.crc32(name.encode())))
    return pandas.Series(made, name="x")


def holes(share: float, make: Make) -> Make:
    """Returns a generator that loses a share of another one's values."""

    def made(rng: Draws) -> Any:
        series = pandas.Series(make(rng))
        if series.dtype.kind in "iu":
            series = series.astype(series.dtype.name.replace("i", "I").replace("u", "U"))
        if series.dtype.kind == "b":
            series = series.astype("boolean")
        return series.mask(rng.random(len(series)) < share)

    return made


def one(value: Any, make: Make) -> Make:
    """Returns a generator that has one row more, with an outlier, somewhere in the middle."""
    return lambda rng: np.insert(make(rng), 17, value)


def some(share: float, value: Any, make: Make) -> Make:
    """Returns a generator in which a share of the rows has one value."""

    def made(rng: Draws) -> NDArray[Any]:
        x: NDArray[Any] = make(rng)
        x[rng.random(len(x)) < share] = value
        return x

    return made


def normal(rng: Draws) -> NDArray[np.float64]:
    return rng.normal(size=N)


def scaled(size: float) -> Make:
    return lambda rng: size * rng.normal(size=N)


def skewed(size: float, sigma: float = 1.0) -> Make:
    return lambda rng: size * np.exp(sigma * rng.normal(size=N))


def z_scores(k: NDArray[Any]) -> Any:
    return (k - k.mean()) / k.std()


def digits(x: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Returns numbers with so many significant digits."""
    return np.array([float(f"{value:.{count}g}") for value in x])


def gains(rng: Draws) -> NDArray[np.int64]:
    """A census's capital gains: zero for 92 %, any sum for most others, and a cap."""
    amount = np.minimum(np.round(np.exp(rng.normal(8, 1.5, 5000))), 99_999)
    found = np.where(rng.random(5000) < 0.92, 0, amount).astype(np.int64)
    found[rng.random(5000) < 0.005] = 99_999
    return found


def rounded_often(rng: Draws) -> NDArray[np.float64]:
    """Incomes, of which most people tell the hundreds, many the thousands, some every cent."""
    x, how = np.exp(rng.normal(8, 0.6, 3000)), rng.random(3000)
    return np.where(
        how < 0.5, np.round(x, -2), np.where(how < 0.8, np.round(x, -3), np.round(x, 2))
    )


def many_atoms(rng: Draws) -> NDArray[np.float64]:
    """Forty set values in half of the rows, and a density."""
    listed = rng.normal(size=40)
    return np.where(rng.random(3000) < 0.5, rng.choice(listed, 3000), rng.normal(size=3000))


def zip_codes(rng: Draws) -> NDArray[np.int64]:
    codes = rng.integers(1000, 99_999, 300)
    return rng.choice(codes, 3000, p=rng.dirichlet(np.ones(300)))


def words(count: int, rows: int, power: float = 1.0) -> Make:
    """Returns a generator of strings, the k-th of which is k^power times as rare as the first."""
    listed = np.array([f"w{i:04d}" for i in range(count)], object)
    weight = np.arange(1, count + 1.0) ** -power

    return lambda rng: rng.choice(listed, rows, p=weight / weight.sum())


def times(start: str, unit: str, spread: int, rows: int = N) -> Make:
    """Returns a generator of times so many units after a start."""
    first = np.array([start], f"datetime64[{unit}]")
    return lambda rng: first + rng.integers(0, spread, rows).astype(f"timedelta64[{unit}]")


def business_days(rng: Draws) -> NDArray[Any]:
    first = np.array(["2022-01-03"], "datetime64[D]")
    return np.busday_offset(first, rng.integers(0, 500, 2000)).astype("datetime64[s]")


def rush_hours(rng: Draws) -> NDArray[Any]:
    """Times to the second, mostly near eight in the morning and half past five."""
    day = rng.integers(0, 365, 2000) * 86_400
    hour = np.where(rng.random(2000) < 0.5, 8.0, 17.5) + 0.7 * rng.normal(size=2000)
    seconds = day + np.round(hour * 3600).astype(np.int64)
    return np.datetime64("2023-01-01", "s") + seconds.astype("timedelta64[s]")


def zoned(rng: Draws) -> Any:
    made = pandas.Series(times("2024-01-01", "s", 10_000_000)(rng))
    return made.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")


def objects(values: list[Any]) -> Any:
    return pandas.Series(values, dtype=object)


def decimals(rng: Draws) -> Any:
    return objects([Decimal(int(k)) / 100 for k in np.round(rng.gamma(3, 700, N))])


def date_objects(rng: Draws) -> Any:
    first = datetime.date(1970, 1, 1)
    return objects([first + datetime.timedelta(int(d)) for d in rng.integers(-9000, 9000, N)])


def ranked(rng: Draws) -> Any:
    levels = ["low", "middle", "high"]
    chosen = rng.choice(levels, N, p=[0.5, 0.3, 0.2])
    return pandas.Series(pandas.Categorical(chosen, levels, ordered=True))


def binomial(most: int, share: float, dtype: str) -> Make:
    return lambda rng: rng.binomial(most, share, N).astype(dtype)


SCALES: dict[str, Make] = (
    {f"normal × {size:g}": scaled(size) for size in (1e-300, 1e-100, 1e-20, 1e20, 1e100, 1e300)}
    | {f"log-normal × {size:g}": skewed(size) for size in (1e-300, 1e-100, 1e20, 1e100, 1e300)}
    | {
        "log-normal, 300 decades": lambda rng: 10 ** (80 * rng.normal(size=N)).clip(-300, 300),
        "wide log-normal": skewed(1.0, 3.0),
        "wide log-normal integers": lambda rng: np.rint(skewed(2e5, 3.0)(rng)).astype(np.int64),
        "largest floats": lambda rng: 1.7e308 * rng.uniform(-1, 1, N),
        "denormal": lambda rng: 5e-324 * np.round(rng.gamma(4, 1e6, N)),
        "float32 × 1e-38": lambda rng: scaled(1e-38)(rng).astype(np.float32),
        "float32 × 1e37": lambda rng: scaled(1e37)(rng).astype(np.float32),
        "far from zero": lambda rng: 1e9 + rng.normal(size=N),
        "far from zero, 1e-6 wide": lambda rng: 1e6 + 1e-6 * rng.normal(size=N),
    }
)

OUTLIERS: dict[str, Make] = {
    "outlier 2e9": one(2e9, normal),
    "outlier -2e9": one(-2e9, normal),
    "outlier 1e300": one(1e300, normal),
    "outliers ±1e300": one(-1e300, one(1e300, normal)),
    "outlier 2e9 among integers": one(2_000_000_000, lambda rng: rng.poisson(50, N)),
    "outlier near zero": one(1e-300, lambda rng: rng.gamma(9, 1, N)),
    "outlier 1e12 in 60 rows": one(1e12, lambda rng: rng.normal(size=59)),
    "three outliers": lambda rng: np.append(rng.normal(size=N), [1e5, 1e7, -1e6]),
    "Cauchy": lambda rng: rng.standard_cauchy(2000),
    "t2": lambda rng: rng.standard_t(2, 2000),
    "Pareto 0.5": lambda rng: rng.pareto(0.5, N) + 1,
    "Pareto 2": lambda rng: rng.pareto(2, N),
}

SHAPES: dict[str, Make] = {
    "normal": lambda rng: rng.normal(3, 2, 2000),
    "bimodal": lambda rng: rng.normal(size=N) + 12 * (rng.random(N) < 0.3),
    "two far modes": lambda rng: 1e-3 * rng.normal(size=N) + (rng.random(N) < 0.5),
    "exponential": lambda rng: rng.exponential(size=N),
    "negative only": lambda rng: -rng.gamma(2, 3, N),
    "uniform": lambda rng: rng.random(3000),
    "uniform with hard ends": lambda rng: rng.uniform(-17.3, 211.9, 3000),
    "arcsine": lambda rng: rng.beta(0.5, 0.5, 2000),
    "shares": lambda rng: rng.beta(2, 5, N),
    "shares with 0 and 1": some(0.1, 0.0, some(0.05, 1.0, lambda rng: rng.beta(2, 5, 2000))),
    "shares near 1": lambda rng: 1 - 1e-6 * rng.exponential(size=N),
    "normal in float32": lambda rng: rng.normal(3, 2, N).astype(np.float32),
    "normal in float16": lambda rng: rng.normal(3, 2, N).astype(np.float16),
    "uniform, 20,000 rows": lambda rng: rng.random(20_000),
    "normal, 60 rows": lambda rng: rng.normal(size=60),
    "normal, 20 rows": lambda rng: rng.normal(size=20),
    "normal, 8 rows": lambda rng: rng.normal(size=8),
    "exponential, 20 rows": lambda rng: rng.exponential(size=20),
    "counts, 20 rows": lambda rng: rng.poisson(3, 20),
    "two decimals, 60 rows": lambda rng: np.round(rng.normal(size=60), 2),
}

SPIKES: dict[str, Make] = {
    "92 % zeros and a cap": gains,
    "zeros and gammas": some(0.3, 0.0, lambda rng: rng.gamma(2, 3, 2000)),
    "99 % zeros": some(0.99, 0.0, lambda rng: rng.gamma(2, 3, 3000)),
    "zeros and huge values": some(0.5, 0.0, skewed(1e100)),
    "cap at 1.5": lambda rng: np.minimum(rng.normal(size=2000), 1.5),
    "floor and cap": lambda rng: np.clip(rng.normal(size=2000), -1, 0.5),
    "cap of integers": lambda rng: np.minimum(rng.poisson(np.exp(rng.normal(3, 1, 2000))), 90),
    "spike inside": some(0.2, 0.123456789, normal),
    "-999 for unknown": some(0.04, -999.0, lambda rng: rng.normal(50, 5, N)),
    "forty atoms": many_atoms,
    "round numbers": rounded_often,
    "round weights": lambda rng: np.where(
        rng.random(3000) < 0.5,
        np.round(rng.normal(70, 12, 3000) / 5) * 5,
        rng.integers(45, 99, 3000),
    ).astype(np.int64),
    "half integers, half real": lambda rng: np.where(
        rng.random(2000) < 0.5, rng.poisson(3, 2000), rng.normal(3, 2, 2000)
    ),
    "power law": lambda rng: np.minimum(rng.zipf(1.6, 3000), 10**9),
    "followers": lambda rng: np.floor(np.exp(rng.normal(3, 3, 3000))).astype(np.int64),
    "both signs, many magnitudes": lambda rng: rng.choice([-1, 1], N) * skewed(1.0, 6.0)(rng),
    "zero-inflated counts": some(0.6, 0, lambda rng: rng.poisson(8, 2000)),
}

GRIDS: dict[str, Make] = {
    "°F of whole °C": lambda rng: np.round(1.8 * np.round(rng.normal(12, 9, 3000)) + 32),
    "°F of tenths of °C": lambda rng: np.round(1.8 * np.round(rng.normal(12, 9, 3000), 1) + 32, 1),
    "prices in .99": lambda rng: np.round(rng.gamma(2, 20, 2000)) + 0.99,
    "ratings": lambda rng: rng.choice([1, 2, 3, 4, 5], 800, p=[0.1, 0.1, 0.2, 0.4, 0.2]),
    "codes": lambda rng: rng.choice([101, 205, 411, 999, 7001], N, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
    "zip codes": zip_codes,
    "years": lambda rng: 2024 - rng.geometric(0.2, N),
    "births": lambda rng: np.round(rng.normal(1975, 14, 2000)).astype(np.int64),
    "near-integers": lambda rng: rng.poisson(20, N) + 1e-12,
    "z-scored counts": lambda rng: z_scores(rng.poisson(400, 3000)),
    "z-scored counts in float32": lambda rng: z_scores(rng.poisson(400, 3000)).astype(np.float32),
    "z-scored 0/1": lambda rng: z_scores(rng.random(N) < 0.2),
    "1.5e6 + k/4": lambda rng: 1.5e6 + np.round(rng.normal(0, 400, 3000)) / 4,
    "1e-7 … 5e-7": lambda rng: rng.integers(1, 6, N) * 1e-7,
    "multiples of ten": lambda rng: np.round(rng.gamma(4, 30, 2000), -1),
    "multiples of ten, integers": lambda rng: 10 * rng.poisson(12, N),
    "steps of 0.1": lambda rng: np.round(rng.normal(20, 8, 2000), 1),
    "steps of 0.1 in float32": lambda rng: np.round(rng.normal(20, 8, 2000), 1).astype(np.float32),
    "thirds": lambda rng: rng.poisson(30, N) / 3,
    "three digits": lambda rng: digits(np.exp(2 * rng.normal(size=3000)), 3),
    "five digits around 1000": lambda rng: digits(rng.normal(1000, 8, 3000), 5),
    "hours": lambda rng: rng.integers(0, 24, N),
    "months": lambda rng: rng.integers(1, 13, N),
    "weekdays": lambda rng: rng.choice(7, N, p=[0.2, 0.2, 0.2, 0.15, 0.15, 0.05, 0.05]),
    "ages": lambda rng: np.minimum(17 + rng.gamma(2.5, 9, 3000), 90).astype(np.int64),
    "0 or 1": lambda rng: (rng.random(N) < 0.01).astype(np.int64),
    "0.0 or 1.0": lambda rng: (rng.random(N) < 0.4).astype(float),
    "two values": lambda rng: rng.choice([-3.75, 1e6], N),
    "1 in 1,000 differs": lambda rng: np.where(np.arange(5000) % 1000 == 3, 7, 5),
    "1 in 1,000 is real": some(0.999, 2.5, lambda rng: rng.normal(size=5000)),
    "halves in float16": lambda rng: (rng.binomial(40, 0.4, N) / 2).astype(np.float16),
}

TYPES: dict[str, Make] = {
    "int8 up to 127": lambda rng: np.minimum(rng.poisson(110, N), 127).astype(np.int8),
    "int8 from -128": lambda rng: (rng.poisson(3, N) - 128).astype(np.int8),
    "uint8 with 0 and 255": lambda rng: np.clip(rng.normal(128, 70, N), 0, 255).astype(np.uint8),
    "uint8 near 255": binomial(255, 0.97, "uint8"),
    "int16 near 32767": lambda rng: (32767 - rng.poisson(9, N)).astype(np.int16),
    "uint16": lambda rng: rng.integers(0, 65_536, 3000).astype(np.uint16),
    "int32 near its ends": lambda rng: rng.integers(-(2**31), 2**31, N).astype(np.int32),
    "uint64 near 2^64": lambda rng: np.uint64(2**64 - 1) - rng.poisson(300, N).astype(np.uint64),
    "uint64 over all": lambda rng: rng.integers(0, 2**64, N, dtype=np.uint64),
    "int64 near 2^62": lambda rng: 2**62 + rng.poisson(300, N),
    "int64 near -2^62": lambda rng: -(2**62) - rng.poisson(300, N),
    "int64 near 2^63": lambda rng: 2**63 - 1 - rng.poisson(40, N),
    "int64 over all": lambda rng: rng.integers(-(2**63), 2**63, N),
    "booleans": lambda rng: rng.random(N) < 0.03,
    "ten words": words(10, N),
    "2,000 words, long tail": words(2000, 6000),
    "ordered categories": ranked,
    "Decimal": decimals,
    "date objects": date_objects,
}

TIMES: dict[str, Make] = {
    "days": lambda rng: times("2020-01-01", "D", 700)(rng).astype("datetime64[s]"),
    "hours of 2024": lambda rng: times("2024-01-01", "h", 8784, 3000)(rng).astype("datetime64[us]"),
    "seconds": times("2024-01-01", "s", 10_000_000, 2000),
    "nanoseconds": times("2024-01-01", "ns", 10**17),
    "business days": business_days,
    "rush hours": rush_hours,
    "year 1000": times("1000-01-01", "s", 10**9),
    "year 9999": times("9990-01-01", "s", 3 * 10**8),
    "from 1000 to 9999": times("1000-01-01", "s", 280 * 10**9),
    "Berlin": zoned,
    "durations": lambda rng: np.round(rng.gamma(2, 4000, N)).astype("timedelta64[s]"),
    "durations in ns": lambda rng: rng.gamma(2, 4e12, N).astype("timedelta64[ns]"),
    "moments of a day": lambda rng: np.round(rng.normal(0, 4000, N)).astype("timedelta64[s]"),
}

WHOLE = SCALES | OUTLIERS | SHAPES | SPIKES | GRIDS | TYPES | TIMES

HOLES: dict[str, Make] = (
    {
        f"{name}, 5 % missing": holes(0.05, WHOLE[name])
        for name in ("normal", "hours", "ten words", "days", "92 % zeros and a cap", "zip codes")
    }
    | {
        f"{name}, 50 % missing": holes(0.5, WHOLE[name])
        for name in ("zeros and gammas", "booleans", "int8 up to 127", "durations", "Cauchy")
    }
    | {
        f"{name}, 99 % missing": holes(0.99, WHOLE[name])
        for name in ("uniform", "births", "2,000 words, long tail", "seconds", "Decimal")
    }
)

COLUMNS = WHOLE | HOLES
