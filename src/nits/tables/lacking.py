"""Columns that a table lacks, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

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
