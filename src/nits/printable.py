"""Names and values as a terminal may show them: control characters are escaped."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""Returns a text whose characters all print: an escape sequence becomes \x1b and so on."""
    found = str(text)
    if found.isprintable():
        return found
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in found)
