"""A report in a browser: light, dark, narrow and on paper; skipped where there is no Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import chromium
from report_tables import fitted, hostile

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = hostile(300)
    return fitted(table).report(table).save(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def opened(browser: Any, place: Path, width: int, scheme: str) -> tuple[Any, list[str]]:
    """Opens the page, and returns what it should not have done: requests, errors, dialogs."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: said.append(f"request: {request.url}"))
    page.goto(place.as_uri())
    own = f"request: {place.as_uri()}"
    return page, [line for line in said if line != own]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 800, 1280, 1920])
def test_a_page_fits_its_window_and_asks_for_nothing(
    browser: Any, place: Path, width: int, scheme: str
) -> None:
    page, said = opened(browser, place, width, scheme)
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("section").count() == 10
    page.close()


def test_dark_is_dark_and_light_is_light(browser: Any, place: Path) -> None:
    bright = {}
    for scheme in ("light", "dark"):
        page, _ = opened(browser, place, 1280, scheme)
        colours = page.evaluate(
            "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
        )
        bright[scheme] = [sum(map(int, c[4:-1].split(","))) for c in colours]
        page.close()
    assert bright["light"][0] > 700 > 300 > bright["light"][1]
    assert bright["dark"][0] < 150 < 600 < bright["dark"][1]


def test_charts_have_shapes_and_stay_in_their_places(browser: Any, place: Path) -> None:
    """No chart is empty, none is wider than what holds it, and no two figures overlap."""
    page, _ = opened(browser, place, 1280, "light")
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => [s.getBoundingClientRect().width,"
        " s.parentElement.getBoundingClientRect().width, s.children.length])"
    )
    assert len(sizes) > 20
    for width, room, shapes in sizes:
        assert 100 < width <= room + 1
        assert shapes > 2
    page.close()


def test_labels_of_an_axis_do_not_overlap(browser: Any, place: Path) -> None:
    page, _ = opened(browser, place, 1280, "light")
    met = page.evaluate(
        """[...document.querySelectorAll('svg')].flatMap(svg => {
          const boxes = [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect());
          return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b =>
            a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4
            && b.top < a.bottom - 4).map(() => svg.getAttribute('aria-label')));
        })"""
    )
    assert met == []
    page.close()


def test_it_prints_on_a_few_pages(browser: Any, place: Path) -> None:
    page, _ = opened(browser, place, 1280, "dark")
    paper = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "15mm"))
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") <= 14
    page.close()
