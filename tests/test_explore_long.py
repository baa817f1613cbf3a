"""The explorer in Chromium: right numbers, keys alone, no leak, a server that is gone, axe-core."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsers import chromium, grave
from mixed_table import mixed, small
from nits import load
from served import Served, served

pytestmark = pytest.mark.web

MANY = 1000
SET = """([i, low, high]) => {
  const inputs = document.querySelectorAll("#panels article")[i].querySelectorAll(".ends input");
  inputs[0].value = low; inputs[1].value = high;
  inputs[0].dispatchEvent(new Event("change"));
}"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "mixed.nits"
    small(max_steps=60).fit(mixed()).save(path)
    return path


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), str(model)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, server: Served) -> Iterator[Any]:
    found = shown(browser, server, 1280, "light")
    yield found
    found.close()


def shown(browser: Any, server: Served, width: int, scheme: str) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(server.address)
    page.locator("#status", has_text="Nothing given").wait_for()
    return page


def card(page: Any, name: str) -> Any:
    return page.locator("article", has=page.get_by_role("heading", name=name, exact=True))


def settled(page: Any) -> None:
    """Waits for the finer answer, which comes when conditions rest."""
    page.locator("#status", has_text="Probability").wait_for()
    page.wait_for_timeout(1200)


def test_columns_change_to_the_librarys_numbers(page: Any, model: Path) -> None:
    card(page, "member").get_by_label("True").check()
    page.get_by_label("price: from").fill("3")
    page.get_by_label("price: from").press("Enter")
    settled(page)
    truth = load(model).given("member == True and price >= 3")
    status = page.inner_text("#status")
    chance = float(re.search(r"Probability ([\d.]+) %", status)[1]) / 100  # type: ignore[index]
    both = load(model).probability("member == True and price >= 3")
    assert chance == pytest.approx(float(both.estimate), abs=0.012)
    proba = truth.proba("city")
    rows = card(page, "city").locator(".level")
    seen = {
        rows.nth(k).locator(".name").inner_text(): float(
            rows.nth(k).locator(".p").inner_text().removesuffix(" %")
        )
        for k in range(rows.count())
    }
    assert set(seen) == set(proba)
    known = sum(seen.values())
    for city, p in proba.items():
        assert seen[city] / known == pytest.approx(p, abs=0.03)
    words = card(page, "size").locator(".summary").inner_text()
    median = float(re.search(r"median ([\d.]+)", words)[1])  # type: ignore[index]
    assert median == pytest.approx(float(truth.quantiles("size", [0.5])[0]), abs=1.0)


def test_keys_are_enough(page: Any) -> None:
    def reach(label: str) -> None:
        for _ in range(200):
            page.keyboard.press("Tab")
            here = page.evaluate(
                "(document.activeElement.labels?.[0] ?? document.activeElement).textContent"
                " + (document.activeElement.getAttribute('aria-label') ?? '')"
            )
            if label in here:
                return
        raise AssertionError(f"{label} cannot be reached")

    reach("size: from")
    page.keyboard.type("45")
    page.keyboard.press("Enter")
    page.locator("#status", has_text="Probability").wait_for()
    reach("Oslo")
    page.keyboard.press("Space")
    page.locator("#chips", has_text="city = Oslo").wait_for()
    reach("Download CSV")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename.endswith(".csv")
    reach("Score this row")
    page.keyboard.press("Enter")
    page.locator("#verdict", has_text="Log-density").wait_for()


def held(page: Any) -> dict[str, float]:
    """Returns what the page holds after its garbage was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return {one["name"]: one["value"] for one in metrics}


def test_a_thousand_quick_changes_leak_nothing(page: Any, server: Served) -> None:
    def change(count: int) -> None:
        for k in range(count):
            low = 20 + k % 30
            page.evaluate(SET, [0, str(low), str(low + 20)] if k % 10 else [0, "", ""])
        page.evaluate(SET, [0, "", ""])
        page.locator("#status", has_text="Nothing given").wait_for()
        page.wait_for_timeout(1500)

    change(200)
    before, memory = held(page), server.memory()
    change(MANY)
    after = held(page)
    assert after["Nodes"] <= 1.1 * before["Nodes"] + 50
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 5
    assert after["JSHeapUsedSize"] <= before["JSHeapUsedSize"] + 2e6
    assert server.memory() <= memory + 64
    assert server.errors.read_text() == "Ctrl-C ends it.\n"


def test_a_server_that_is_gone_is_told_of(page: Any) -> None:
    page.route("**/api/*", lambda route: route.abort())
    page.get_by_label("price: from").fill("3")
    page.get_by_label("price: from").press("Enter")
    page.locator("#error", has_text="the server does not answer; start nits explore").wait_for()
    page.unroute("**/api/*")
    page.get_by_label("price: from").fill("2")
    page.get_by_label("price: from").press("Enter")
    page.locator("#status", has_text="Probability").wait_for()
    assert page.locator("#error").is_hidden()


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
)
def test_axe_finds_nothing_serious(browser: Any, server: Served, width: int, scheme: str) -> None:
    page = shown(browser, server, width, scheme)
    assert grave(page) == []
    page.get_by_label("price: from").fill("soon")
    page.get_by_label("price: from").press("Enter")
    card(page, "price").locator(".problem").wait_for()
    assert grave(page) == []
    card(page, "city").get_by_label("Oslo").check()
    page.get_by_label("price: from").fill("3")
    page.get_by_label("price: from").press("Enter")
    page.get_by_role("button", name="Score this row").click()
    page.locator("#verdict", has_text="Log-density").wait_for()
    assert grave(page) == []
    page.close()
