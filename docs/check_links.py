"""Checks that every relative link in the Markdown files leads to a file and, after #, to a heading.

    python docs/check_links.py

Links to the web are not followed, so the check runs offline.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/**/*.md")

FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
WEB = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def anchors(markdown: str) -> set[str]:
    """Returns the anchors of headings, as on GitHub: lower case, hyphens, no punctuation."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", markdown)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        stem = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        repeats = sum(1 for anchor in found if re.fullmatch(re.escape(stem) + r"(-\d+)?", anchor))
        found.add(f"{stem}-{repeats}" if repeats else stem)
    return found


def links(markdown: str) -> list[str]:
    """Returns the targets of the links that stay in the repository, outside code."""
    prose = INLINE_CODE.sub("", FENCED.sub("", markdown))
    targets = [inline or reference for inline, reference in LINK.findall(prose)]
    return [target for target in targets if not WEB.match(target)]


def fault(page: Path, target: str) -> str | None:
    """Returns what is wrong with a link on a page, or None."""
    path, _, anchor = target.partition("#")
    destination = (page.parent / path).resolve() if path else page
    if not destination.is_relative_to(ROOT):
        return "leaves the repository"
    if not destination.exists():
        return "no such file"
    if (
        anchor
        and destination.suffix == ".md"
        and anchor not in anchors(destination.read_text("utf-8"))
    ):
        return "no such heading"
    return None


def main() -> int:
    """Prints each broken link; returns 1 if there is one."""
    pages = sorted({page for pattern in PATTERNS for page in ROOT.glob(pattern)})
    checked = broken = 0
    for page in pages:
        for target in links(page.read_text("utf-8")):
            checked += 1
            if problem := fault(page, target):
                broken += 1
                print(f"{page.relative_to(ROOT)}: {target}: {problem}", file=sys.stderr)
    print(f"{checked} links in {len(pages)} pages, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
