"""Report, explorer and site by the rules of axe-core: nothing serious, light and dark."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import ROOT, chromium, grave, lacking
from report_tables import fitted, hostile

pytestmark = pytest.mark.web

PAGES = (
    "index.html",
    "start.html",
    "tutorials/census.html",
    "tutorials/images.html",
    "how-to/columns.html",
    "reference/tables.html",
    "reference/commands.html",
    "maths.html",
    "suite.html",
    "search.html",
    "source/src/nits/pnn/plain.py.html",
)
SHAPES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site that `make docs` has built, or one whose tutorials have not run."""
    built = ROOT / "build" / "site"
    if (built / "index.html").exists():
        return built
    if shutil.which("sphinx-build", path=str(Path(sys.executable).parent)) is None:
        lacking("there is no site; make docs builds it")
    place = tmp_path_factory.mktemp("site")
    program = [sys.executable, "-m", "sphinx", "-q", "-D", "nb_execution_mode=off"]
    subprocess.run([*program, str(ROOT / "docs"), str(place)], check=True, capture_output=True)
    return place


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = hostile(300)
    return fitted(table).report(table).save(tmp_path_factory.mktemp("report") / "report.html")


def judged(browser: Any, address: str, width: int, scheme: str) -> list[str]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    found = grave(page)
    page.close()
    return found


@pytest.mark.parametrize(("width", "scheme"), [SHAPES[0], SHAPES[3]])
@pytest.mark.parametrize("name", PAGES)
def test_the_site_can_be_used_by_everybody(
    browser: Any, site: Path, name: str, width: int, scheme: str
) -> None:
    assert judged(browser, (site / name).as_uri(), width, scheme) == []


@pytest.mark.parametrize(("width", "scheme"), SHAPES)
def test_a_report_can_be_used_by_everybody(
    browser: Any, report: Path, width: int, scheme: str
) -> None:
    assert judged(browser, report.as_uri(), width, scheme) == []


def test_the_site_is_searched_without_a_server(browser: Any, site: Path) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{(site / 'search.html').as_uri()}?q=quantiles")
    page.locator("#search-results li a").first.wait_for()
    assert page.locator("#search-results li a").count() >= 3
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_site_fits_a_phone(browser: Any, site: Path, name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((site / name).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_what_axe_should_see_it_sees(browser: Any) -> None:
    page = browser.new_page()
    page.set_content("<html lang=en><title>x</title><main><h1>x</h1><img src=x><button></button>")
    assert len(grave(page)) == 2
    page.close()
