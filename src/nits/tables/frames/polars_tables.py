"""Tables of polars, through Arrow, and back.

Types have the names of Arrow's, except for "Categorical" and "Enum".
"""

from __future__ import annotations

from typing import Any

import polars

from nits.tables.frames import arrow_tables
from nits.tables.frames import values as columns
from nits.tables.frames.objects import SENTENCE
from nits.tables.frames.values import Frame, Refused, Values

NOT_IN_ARROW = ("Object", "Int128", "UInt128")


def read(series: Any) -> Values:
    """Returns the values of a Series."""
    if isinstance(series.dtype, polars.Enum | polars.Categorical):
        found = arrow_tables.read(series.to_arrow())
        return found.named("Enum" if isinstance(series.dtype, polars.Enum) else "Categorical")
    if str(series.dtype) in NOT_IN_ARROW:
        raise Refused(SENTENCE.format(f"{series.dtype} values"))
    return arrow_tables.read(series.to_arrow())


def write(frame: Frame) -> Any:
    """Returns the columns as a DataFrame."""
    return polars.DataFrame([_series(values, name) for name, values in frame.columns.items()])


def _series(values: Values, name: str) -> Any:
    if values.dtype not in ("Enum", "Categorical"):
        return polars.Series(name, arrow_tables.write(values, name))
    strings = arrow_tables.write(Values(values.array, values.missing, "large_string"), name)
    if values.dtype == "Categorical":
        return polars.Series(name, strings).cast(polars.Categorical)
    levels, _ = columns.coded(values, "large_string", name)
    return polars.Series(name, strings).cast(polars.Enum(levels.array.tolist()))
