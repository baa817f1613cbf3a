"""Checks the built site: every link leads somewhere, and every public name has its place.

    python docs/check_site.py build/site

Links to the web are not followed, so the check runs offline.
"""

import sys
import zlib
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGES = ("nits", "nits.datasets", "nits.heads", "nits.images", "nits.weights")
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes note of where an element leads, and of its name."""
        found = dict(attrs)
        if target := found.get(LINKS.get(tag, "")):
            self.links.append(target)
        self.anchors |= {name for name in (found.get("id"), found.get("name")) if name}


@cache
def read(path: Path) -> Page:
    """Returns a page of the site."""
    return Page(path.read_text("utf-8"))


def fault(page: Path, link: str) -> str | None:
    """Returns what is wrong with a link on a page, or None."""
    url = urlsplit(link)
    if url.scheme or url.netloc:
        return None
    target = (page.parent / unquote(url.path)).resolve() if url.path else page
    if not target.is_file():
        return "no such page"
    anchor = unquote(url.fragment)
    if anchor and target.suffix == ".html" and anchor not in read(target).anchors:
        return "no such anchor"
    return None


def documented(site: Path) -> set[str]:
    """Returns the names that the reference has, from the site's inventory."""
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(packed).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if " py:" in line}


def undocumented(site: Path) -> list[str]:
    """Returns the public names that the reference lacks; modules are told of in its pages."""
    known = documented(site)
    names = [f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__]
    return [name for name in names if name not in known and name not in PACKAGES]


def main() -> int:
    """Prints each broken link and each name that is missing; returns 1 if there is one."""
    site = Path(sys.argv[1]).resolve()
    pages = sorted(site.rglob("*.html"))
    faults = [
        f"{page.relative_to(site)}: {link}: {problem}"
        for page in pages
        for link in read(page).links
        if (problem := fault(page, link))
    ]
    faults += [
        f"{name} is public, but has no place in docs/reference" for name in undocumented(site)
    ]
    print("\n".join(faults), file=sys.stderr, end="\n" * bool(faults))
    print(f"{sum(len(read(page).links) for page in pages)} links in {len(pages)} pages of {site}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
