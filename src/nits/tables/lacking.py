"""What is wrong with a table, in a sentence: columns that it lacks, and infinite values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyarrow import compute, types

from nits.printable import listed


def sentence(names: Sequence[str], columns: Sequence[str]) -> str:
    """Returns that a table of some columns lacks others.

    names: What it lacks.
    columns: What it has.
    """
    *others, last = map(repr, names)
    named = f"{listed(others)} and {last}" if others else last
    return (
        f"the table must have the column{'s' * (len(names) > 1)} {named}, "
        f"but has {listed(columns)}; add what lacks."
    )


def infinite(table: Any) -> list[str]:
    """Returns what there is to say of each column of an Arrow table that has infinite values."""
    counts = {
        name: compute.sum(compute.is_inf(column)).as_py()
        for name, column in zip(table.column_names, table.columns, strict=True)
        if types.is_floating(column.type)
    }
    return [
        f"column {name!r} has {count} infinite values" for name, count in counts.items() if count
    ]
