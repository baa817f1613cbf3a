"""Names and values as a terminal may show them: control characters are escaped."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMES = 30
"""Names that a sentence lists; of more, the first so many."""


def printable(text: object) -> str:
    r"""Returns a text whose characters all print: an escape sequence becomes \x1b and so on."""
    found = str(text)
    if found.isprintable():
        return found
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in found)


def listed(names: Iterable[str]) -> str:
    """Returns names for a sentence, escaped; of very many, the first."""
    every = [printable(name) for name in names]
    rest = len(every) - MOST_NAMES
    more = [f"… and {rest} more"] if rest > 0 else []
    return ", ".join(every[:MOST_NAMES] + more)
