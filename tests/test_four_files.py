"""The method is held by four files, which docs/design.md lists with their lines."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 750
ROW = re.compile(r"^\| \[[^\]]+\]\(\.\./(src/nits/[^)]+\.py)\) \| (\d+) \|", re.MULTILINE)


def listed() -> dict[str, int]:
    """Returns the files that the page lists, in order, and the lines that it says they have."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return {path: int(lines) for path, lines in ROW.findall(page)}


def lines(path: str) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def test_four_files_hold_the_method() -> None:
    assert list(listed()) == [
        f"src/nits/{name}.py"
        for name in ("pnn/plain", "pnn/network", "weights/masked_mlp", "model/joint")
    ]
    assert sum(map(lines, listed())) <= LIMIT


def test_the_page_says_about_how_long_they_are() -> None:
    for path, said in listed().items():
        assert abs(lines(path) - said) <= 15, f"{path} has {lines(path)} lines, not {said}"
