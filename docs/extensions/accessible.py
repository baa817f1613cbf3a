"""Mends what the theme leaves out for keyboards and screen readers, once pages are written.

What scrolls can be reached by the keyboard, captions of the menu have a level, and long signatures
are lines, not lists of definitions without terms.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

SIGNATURE = re.compile(r'<dt class="sig sig-object.*?</dt>', re.DOTALL)
PLAIN = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<div class="output text_html">', '<div tabindex="0" class="output text_html">'),
)
LINES = (
    ("<dl>", '<span class="sig-lines">'),
    ("</dl>", "</span>"),
    ("<dd>", '<span class="sig-line">'),
    ("</dd>", "</span>"),
)


def mended(page: str) -> str:
    """Returns a page that a keyboard can use."""
    for old, new in PLAIN:
        page = page.replace(old, new)
    return SIGNATURE.sub(_in_lines, page)


def _in_lines(match: re.Match[str]) -> str:
    found = match.group()
    for old, new in LINES:
        found = found.replace(old, new)
    return found


def finished(app: Sphinx, error: Exception | None) -> None:
    """Mends all pages of a site that was built."""
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text("utf-8")
            if (better := mended(text)) != text:
                path.write_text(better, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects the mending to the end of a build."""
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
