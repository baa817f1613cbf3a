"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Returns a table."""
    first = tuple(head)
    rows = [first, ("---",) * len(first), *map(tuple, lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def minus(text: str) -> str:
    """Returns the text with signs for hyphens."""
    return text.replace("-", "−")
