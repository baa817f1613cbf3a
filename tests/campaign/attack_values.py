"""Hostile values through Python: given=, contexts, quantile levels, weights and options.

Laws: a call is refused in one sentence, which names the column if one is at fault; or the value
that was given is in all rows, and nothing is NaN or infinite that was never missing in training.
"""

import datetime
import math
import re
import traceback
import warnings
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from campaign.steps import Failure
from mixed_table import mixed, small
from nits.tables.estimator import NITSDensity

ORDER = ["city", "member", "count", "seen", "price", "size", "rain"]
OPTIONAL = ("city", "size")

VALUES: tuple[Any, ...] = (
    *("Oslo", "Rome", "Paris", "", "NA", "oslo", b"Oslo", "\x1b[2J", "true", "false", "3", "nan"),
    *(True, False, 0, 1, 3, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, np.uint8(3)),
    *(0.5, 3.0, 3.5, -0.0, 1e-320, 1e30, -1e300, math.inf, -math.inf, math.nan, np.float16(2.5)),
    *(None, pandas.NA, pandas.NaT, np.datetime64("NaT"), Decimal("2.5"), Decimal("NaN")),
    *(datetime.date(2024, 1, 3), datetime.datetime(2024, 1, 3, 5), datetime.datetime(9999, 1, 1)),
    *(np.datetime64("2024-01-03"), np.datetime64(2**62, "ns"), np.timedelta64(3, "h")),
    *(pandas.Timestamp("2024-01-03", tz="Asia/Tokyo"), datetime.timedelta(3), object(), 3 + 4j),
)

LEVELS: tuple[Any, ...] = (
    *(0.5, [0.1, 0.9], [], 0.0, 1.0, [0, 1], -0.1, 1.5, math.nan, [math.inf], "0.5", None),
    *(np.array([[0.5]]), 50, 1e-300, 1 - 1e-16, np.float32(0.25), True),
)

WEIGHTS: tuple[Any, ...] = (
    *(None, 1.0, 0.0, -1.0, math.nan, math.inf, "1", 1e-300, 1e300),
    *([1.0] * 200, [1.0] * 199, [0.0] * 200, [math.nan] * 200, [[1.0]] * 200, [-1.0] * 200),
)


@cache
def joint() -> NITSDensity:
    return _fitted(small(order=ORDER, max_steps=3))


@cache
def given_city() -> NITSDensity:
    return _fitted(small(context=["city", "count", "seen", "size"], max_steps=3))


@cache
def price() -> NITSDensity:
    others = [name for name in ORDER if name != "price"]
    return _fitted(small(context=others, max_steps=3))


def _fitted(model: NITSDensity) -> NITSDensity:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(mixed(200))


def run(case: int) -> str:
    """Runs a case and returns "passed" or "refused"; raises Failure."""
    rng = np.random.default_rng([21, case])
    attack = ATTACKS[case % len(ATTACKS)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            attack(rng)
    except (ValueError, TypeError) as error:
        _one_sentence(error)
        return "refused"
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"{attack.__name__} raised {type(error).__name__}: {error}") from error
    return "passed"


def _one_sentence(error: Exception) -> None:
    """Refusals are ours, in one line; those of NumPy, pandas or torch are not."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    ours = re.search(r"/(nits|sklearn|campaign)/", Path(raised.filename).as_posix())
    text = str(error)
    if not ours or "\n" in text or not text.endswith("."):
        where = f"{Path(raised.filename).name}:{raised.lineno}"
        raise Failure(f"refused by {type(error).__name__} at {where}: {text[:300]}") from error


def leading(rng: np.random.Generator) -> None:
    """Values of leading columns, the last of them hostile."""
    good = {"city": "Oslo", "member": True, "count": 2, "seen": datetime.date(2024, 1, 3)}
    good |= {"price": 2.5}
    place = int(rng.integers(len(ORDER) - 1))
    name, value = ORDER[place], VALUES[rng.integers(len(VALUES))]
    told = {key: good[key] for key in ORDER[:place]} | {name: value}
    table = _sampled(joint(), told, name, value)
    for key in ORDER[:place]:
        if not (table[key] == pandas.Series([good[key]]).astype(table[key].dtype)[0]).all():
            raise Failure(f"given {told!a}, rows have {table[key].iloc[0]!a} in {key}")
    _kept(table[name], value)


def _sampled(model: NITSDensity, given: Any, name: str, value: Any) -> Any:
    try:
        table = model.sample(3, random_state=0, given=given)
    except (ValueError, TypeError) as error:
        if name not in str(error):
            raise Failure(f"{name} = {value!a} is refused without its name: {error}") from error
        raise
    for column in table:
        if column not in OPTIONAL and table[column].isna().any():
            raise Failure(f"given {name} = {value!a}, {column} is missing")
    if not np.isfinite(table[["rain", "price"]].to_numpy(float)).all():
        raise Failure(f"given {name} = {value!a}, numbers are infinite")
    return table


def _kept(column: Any, value: Any) -> None:
    """A value that was accepted is in all rows."""
    found = column.iloc[0]
    if pandas.isna(value) is True:
        same = column.isna().all()
    elif isinstance(value, str) and not isinstance(found, str):
        same = str(found).lower() in (value, f"{value}.0")
    elif isinstance(value, datetime.date | np.datetime64):
        same = found == pandas.Timestamp(value).tz_localize(None)  # as clocks there show it
    else:
        same = float(found) == float(value) if not isinstance(found, str) else found == value
    if not same:
        raise Failure(f"given {value!a}, rows have {found!a}")


def contexts(rng: np.random.Generator) -> None:
    """A table of context columns with one hostile value."""
    model = given_city()
    name = str(rng.choice(model.context_schema_.names))
    value = VALUES[rng.integers(len(VALUES))]
    row = mixed(200).iloc[[5]][model.context_schema_.names].to_dict("list") | {name: [value]}
    drawn = model.sample(3, random_state=0, given=row)
    if not np.isfinite(drawn[["rain", "price"]].to_numpy(float)).all():
        raise Failure(f"given the context {name} = {value!a}, numbers are not finite")
    if isinstance(value, float) and math.isinf(value):
        raise Failure(f"the context {name} = {value!a} is accepted")
    known = {"Lima", "Oslo", "Rome"}
    if name == "city" and not (pandas.isna(value) is True or value in known):
        raise Failure(f"the context city = {value!a} is accepted")


def scores(rng: np.random.Generator) -> None:
    """Rows with a hostile value: finite scores, or refused."""
    model = (joint(), given_city())[int(rng.integers(2))]
    name, value = str(rng.choice(ORDER)), VALUES[rng.integers(len(VALUES))]
    table = mixed(200).iloc[:3].astype({name: object})
    table.isetitem(table.columns.get_loc(name), pandas.Series([value] * 3, dtype=object).array)
    found = model.score_samples(table)
    if not np.isfinite(found).all():
        raise Failure(f"{name} = {value!a} has the score {found[0]}")


def quantiles(rng: np.random.Generator) -> None:
    levels = LEVELS[rng.integers(len(LEVELS))]
    found = price().predict_quantiles(mixed(200).iloc[:2], levels)
    if not np.isfinite(found).all():
        raise Failure(f"quantiles at {levels!r} are {found}")
    if (np.diff(found[:, np.argsort(np.atleast_1d(np.asarray(levels, float)))]) < 0).any():
        raise Failure(f"quantiles at {levels!r} do not ascend")


def weights(rng: np.random.Generator) -> None:
    weight = WEIGHTS[rng.integers(len(WEIGHTS))]
    model = small(max_steps=2).fit(mixed(200)[["size", "city"]], sample_weight=weight)
    if not np.isfinite(model.score_samples(mixed(200))).all():
        raise Failure(f"weights {str(weight)[:40]} spoil the scores")


def counts(rng: np.random.Generator) -> None:
    """Numbers of samples that are none."""
    odd: tuple[Any, ...] = (0, -1, 2.5, "3", None, math.nan, True)
    joint().sample(odd[rng.integers(len(odd))], random_state=0)


ATTACKS = (leading, contexts, leading, scores, quantiles, leading, contexts, counts, weights)
