"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Returns a table, or what to say if it would be empty."""
    first, rest = tuple(head), list(map(tuple, lines))
    if not rest:
        return "Nothing has been measured on this version yet."
    return "\n".join("| " + " | ".join(row) + " |" for row in (first, ("---",) * len(first), *rest))


def minus(text: str) -> str:
    """Returns the text with signs for hyphens."""
    return text.replace("-", "−")


def with_rows_outside(figure: str, outside: int, rows: int) -> str:
    """Returns a figure, followed by the number of rows that it leaves out, if there are any."""
    return minus(figure) + (f" ({outside} of {rows:,} rows outside)" if outside else "")
