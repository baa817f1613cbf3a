"""Subjects of reports: a small model of the mixed table beside any rows in place of drawn ones."""

from typing import Any

from mixed_table import mixed, small
from nits.report.subject import Some, Subject
from nits.tables import zones
from nits.tables.estimator import NITSDensity

HOSTILE = "<script>alert('x')</script>"


def hostile(rows: int = 160) -> Any:
    """The mixed table with names, and values, that would be markup if they were not escaped."""
    table = mixed(rows).rename(columns={"rain": HOSTILE, "price": 'a"b&<i>'})
    table["city"] = table["city"].replace(
        {"Lima": "<img src=x onerror=alert(1)>", "Oslo": "'\"&\x1b\u202e"}
    )
    return table


def fitted(table: Any, **options: Any) -> NITSDensity:
    return small(**options).fit(table)


def beside(model: NITSDensity, table: Any, drawn: Any, seed: int = 0) -> Subject:
    """The subject of a report in which `drawn` stands for what the model drew."""
    rows = Some.of(zones.read(table), 10**6, seed)
    return Subject(model, rows, rows, False, zones.read(drawn), seed)
