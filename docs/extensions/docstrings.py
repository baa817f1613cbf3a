"""Turns the library's docstrings, which are plain English, into what Sphinx reads.

A paragraph "name: words about an argument" becomes a term and its definition, `code` becomes code,
and what is indented, formulas and examples, stands as it is.
"""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

ARGUMENTS = re.compile(r"(\w+(?:, \w+)*): (.*)", re.DOTALL)
SPECIAL = re.compile(r"([*|\\]|_(?=\W|$))")
CODE = re.compile(r"`([^`]+)`")
PAGE = re.compile(r"docs/([\w-]+)\.md")
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")


def processed(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrites the lines of a docstring in place."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc("\n".join(lines)))
    known = names(obj)
    lines[:] = [line for paragraph in paragraphs for line in written(paragraph, known)]


def names(obj: Any) -> set[str]:
    """Returns the names that a docstring may explain: arguments, and fields of a class."""
    found: set[str] = set()
    if inspect.isclass(obj):
        for one in obj.__mro__:
            found |= set(vars(one)) | set(getattr(one, "__annotations__", {}))
    try:
        found |= set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return found
    return found


def written(paragraph: str, known: set[str]) -> list[str]:
    """Returns a paragraph as reStructuredText."""
    if paragraph.lstrip().startswith(">>>"):
        return ["", *inspect.cleandoc(paragraph).splitlines(), ""]
    if paragraph.startswith("    "):
        return ["", "::", "", *paragraph.splitlines(), ""]
    if paragraph.startswith(("- ", "1. ")):
        return ["", *escaped(paragraph).splitlines(), ""]
    return ["", *arguments(paragraph.splitlines(), known), ""]


def arguments(lines: list[str], known: set[str]) -> list[str]:
    """Returns lines of prose and of arguments, each of the latter as a definition."""
    found: list[str] = []
    for line in lines:
        match = ARGUMENTS.fullmatch(line)
        if match and set(match[1].split(", ")) <= known:
            terms = ", ".join(f"``{name}``" for name in match[1].split(", "))
            found += [terms, f"    {escaped(match[2])}"]
        elif line.startswith(" ") and found:
            found.append("    " + escaped(line.strip()))
        else:
            found.append(escaped(line.strip()))
    return found


def escaped(text: str) -> str:
    """Returns prose in which nothing but code is marked up."""
    parts = CODE.split(text)
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    parts[::2] = [PAGE.sub(r":doc:`/\1`", part) for part in parts[::2]]
    parts[1::2] = [f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def signed(  # noqa: PLR0913 - autodoc hands over so many
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: Any, returned: Any
) -> tuple[Any, Any]:
    """Returns a signature in which arrays have their short name."""
    short = [text and ARRAY.sub(r"NDArray[\1]", text) for text in (signature, returned)]
    return short[0], short[1]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects the rewriting to autodoc."""
    app.connect("autodoc-process-docstring", processed)
    app.connect("autodoc-process-signature", signed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
