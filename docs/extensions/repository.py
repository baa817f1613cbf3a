"""Lets pages link to files of the repository as they do on a forge, and shows these files.

A relative link in `docs/` may lead to any file of the repository. Here a link to a page of the site
stays one; a link to any other file leads to a page with its text, which is made for it. Pages of
`project/` hold nothing but the name of a Markdown file elsewhere, and get its text.
"""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent

BORROWED = {
    "project/changelog": ROOT / "CHANGELOG.md",
    "project/contributing": ROOT / "CONTRIBUTING.md",
    "project/security": ROOT / "SECURITY.md",
    "project/benchmarks": ROOT / "benchmarks" / "README.md",
    "project/demo-data": ROOT / "examples" / "data" / "README.md",
}
PAGES = {path: docname for docname, path in BORROWED.items()} | {ROOT / "README.md": "index"}

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".h": "cpp", ".cpp": "cpp", ".toml": "toml", ".sh": "bash"}
CODE = re.compile(r"^(```|~~~|:::).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)

SCHEME = "source:"


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Gives borrowed pages their text, and every link its place in the site."""
    place = BORROWED.get(docname)
    text = source[0] if place is None else place.read_text("utf-8")
    folder = (DOCS / docname).parent if place is None else place.parent
    page = (DOCS / docname).parent
    found: set[str] = set()
    source[0] = outside_code(text, lambda part: relinked(part, folder, page, found))
    shown(app.env)[docname] = found


def shown(env: Any) -> dict[str, set[str]]:
    """Returns the files that each page links to."""
    if not hasattr(env, "files_shown"):
        env.files_shown = {}
    return cast("dict[str, set[str]]", env.files_shown)


def merged(app: Sphinx, env: Any, docnames: Any, other: Any) -> None:
    """Takes over what another process has read."""
    shown(env).update({name: shown(other)[name] for name in docnames if name in shown(other)})


def outside_code(text: str, change: Any) -> str:
    """Returns a Markdown text with its prose changed and its code as it was."""
    found, last = [], 0
    for code in CODE.finditer(text):
        found += [change(text[last : code.start()]), code.group()]
        last = code.end()
    return "".join([*found, change(text[last:])])


def relinked(prose: str, folder: Path, page: Path, shown: set[str]) -> str:
    """Returns prose, whose links are relative to `folder`, as it is to stand in `page`.

    shown: Gets the files that are no pages of the site.
    """

    def linked(match: re.Match[str]) -> str:
        path, anchor = (folder / match[1]).resolve(), match[2] or ""
        if path in PAGES:
            path = DOCS / f"{PAGES[path]}.md"
        if path.is_relative_to(DOCS):
            return os.path.relpath(path, page) + anchor
        shown.add(str(path.relative_to(ROOT)))
        return f"{SCHEME}{path.relative_to(ROOT)}"

    return LINK.sub(linked, prose)


def resolved(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Leads links to files of the repository to the pages that show them."""
    for node in doctree.findall(nodes.reference):
        name = node.get("refuri", "")
        if name.startswith(SCHEME):
            path = name.removeprefix(SCHEME).strip("/")
            node["refuri"] = app.builder.get_relative_uri(docname, page_of(path))


def page_of(path: str) -> str:
    """Returns the name of the page that shows a file or a folder of the repository."""
    return f"source/{path}"


def collected(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields a page for each file that a page links to, and for each file of a linked folder."""
    bridge = PygmentsBridge("html", app.config.pygments_style)
    every = set().union(*shown(app.env).values())
    for name in sorted(every):
        path = ROOT / name
        if path.is_dir():
            inside = [one for one in sorted(path.iterdir()) if one.suffix in LANGUAGES]
            listed = "".join(
                f'<li><a href="{path.name}/{one.name}.html">{html.escape(one.name)}</a></li>'
                for one in inside
            )
            yield from (
                shows(bridge, one) for one in inside if str(one.relative_to(ROOT)) not in every
            )
            yield page_of(name), context(name, f"<ul>{listed}</ul>"), "page.html"
        else:
            yield shows(bridge, path)


def shows(bridge: PygmentsBridge, path: Path) -> tuple[str, dict[str, Any], str]:
    """Returns the page that shows a file."""
    name = str(path.relative_to(ROOT))
    language = LANGUAGES.get(path.suffix, "text")
    text = bridge.highlight_block(path.read_text("utf-8"), language)
    return page_of(name), context(name, text), "page.html"


def context(name: str, body: str) -> dict[str, Any]:
    """Returns what the theme's template needs for a page of its own."""
    title = html.escape(name)
    return {"title": title, "body": f"<h1>{title}</h1>{body}"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects the steps above to Sphinx."""
    app.connect("source-read", read)
    app.connect("doctree-resolved", resolved)
    app.connect("env-merge-info", merged)
    app.connect("html-collect-pages", collected)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
