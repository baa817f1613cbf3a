"""The explorer in a real browser; skipped where there is no Chromium."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from browsers import chromium
from mixed_table import mixed, small
from served import served

pytestmark = pytest.mark.web


def table() -> Any:
    """Mixed columns, one of which has markup for a name and for levels."""
    found = mixed(300)
    rng = np.random.default_rng(1)
    found["<img src=x onerror=alert(1)>"] = pandas.Series(
        rng.choice(["<script>alert(2)</script>", "plain", "'\"&\x1b\u202e"], 300)
    )
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("explore")
    model, rows = folder / "model.nits", folder / "table.csv"
    small().fit(table()).save(model)
    table().to_csv(rows, index=False)
    with served(folder, str(model), str(rows)) as server:
        yield server.address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page at a laptop's width; it must do nothing that it should not."""
    yield from opened(browser, address, 1280, "light")


def opened(browser: Any, address: str, width: int, scheme: str) -> Iterator[Any]:
    found = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    found.on("pageerror", lambda error: said.append(f"error: {error}"))

    def dismissed(dialog: Any) -> None:
        said.append("dialog")
        dialog.dismiss()

    found.on("dialog", dismissed)
    own = (address, "data:", "blob:")
    found.on("request", lambda request: said.extend([request.url][request.url.startswith(own) :]))
    found.goto(address)
    found.locator("#status", has_text="Nothing given").wait_for()
    yield found
    assert said == []
    found.close()


def card(page: Any, name: str) -> Any:
    return page.locator("article", has=page.get_by_role("heading", name=name, exact=True))


def drawn(page: Any, name: str) -> str:
    return str(card(page, name).locator("path.now").get_attribute("d"))


def test_a_range_set_by_keys_changes_the_other_columns(page: Any) -> None:
    before = drawn(page, "rain")
    first = page.get_by_label("size: from")
    first.focus()
    for _ in range(40):
        first.press("ArrowUp")
    page.locator("#status", has_text="Probability").wait_for()
    assert float(first.input_value()) > 20
    assert drawn(page, "rain") != before
    assert "size ≥" in page.inner_text("#chips")
    first.press("Escape")
    page.locator("#status", has_text="Nothing given").wait_for()
    assert first.input_value() == ""


def test_names_and_levels_show_no_control_characters(page: Any) -> None:
    assert r"""'"&\x1b\u202e""" in page.inner_text("body")
    assert not {"\x1b", "\u202e"} & set(page.content())


def test_dragging_sets_a_range_and_clicking_a_value(page: Any) -> None:
    plot = card(page, "size").locator(".plot")
    box = plot.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=8)
    page.mouse.up()
    page.locator("#status", has_text="Probability").wait_for()
    low, high = (float(page.get_by_label(f"size: {end}").input_value()) for end in ("from", "to"))
    assert low < high
    page.get_by_role("button", name="clear size", exact=True).click()
    page.mouse.click(box["x"] + 0.5 * box["width"], middle)
    page.locator("#status", has_text="Density").wait_for()


def test_levels_are_chosen_and_shown_as_text(page: Any) -> None:
    odd = card(page, "<img src=x onerror=alert(1)>")
    odd.get_by_label("<script>alert(2)</script>").check()
    page.locator("#status", has_text="Probability").wait_for()
    assert "alert(2)" in page.inner_text("#chips")
    assert "100 %" in odd.inner_text()
    assert page.locator("article img, article script").count() == 0


def test_rows_are_downloaded_under_the_conditions(page: Any, tmp_path: Path) -> None:
    page.get_by_label("price: from").fill("3")
    page.get_by_label("price: from").press("Enter")
    page.locator("#status", has_text="Probability").wait_for()
    page.fill("#count", "30")
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "rows.csv")
    rows = pandas.read_csv(tmp_path / "rows.csv")
    assert len(rows) == 30
    assert (rows["price"] >= 3).all()


def test_an_event_and_a_row_are_answered(page: Any) -> None:
    page.fill("#event", "price > 3")
    page.locator("#event").press("Enter")
    page.locator("#chance", has_text="%").wait_for()
    page.fill("#event", "price >")
    page.locator("#event").press("Enter")
    page.locator("#chance.bad", has_text="a condition must look like").wait_for()
    page.fill("#number", "3")
    page.click("#picked")
    page.locator("#verdict", has_text="Log-density").wait_for()
    assert page.locator("#entries tr").count() == 8


def test_a_mistake_is_shown_beside_its_column(page: Any) -> None:
    page.get_by_label("price: from").fill("soon")
    page.get_by_label("price: from").press("Enter")
    card(page, "price").locator(".problem", has_text="must be given a number").wait_for()
    page.get_by_label("price: from").fill("3")
    page.get_by_label("price: from").press("Enter")
    page.locator("#status", has_text="Probability").wait_for()
    assert card(page, "price").locator(".problem").is_hidden()


def test_every_control_has_a_name(page: Any) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button")].filter((one) =>
            !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())
        ).map((one) => one.outerHTML)"""
    )
    assert nameless == []


def test_two_tabs_and_a_reload_do_not_disturb_each_other(
    page: Any, browser: Any, address: str
) -> None:
    for other in opened(browser, address, 1280, "light"):
        other.get_by_label("price: from").fill("4")
        other.get_by_label("price: from").press("Enter")
        other.locator("#status", has_text="Probability").wait_for()
        assert "Nothing given" in page.inner_text("#status")
        other.reload()
        other.locator("#status", has_text="Nothing given").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 800])
def test_the_page_fits_its_window(browser: Any, address: str, width: int, scheme: str) -> None:
    for page in opened(browser, address, width, scheme):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        bright = sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 380
        assert bright == (scheme == "light")


def test_a_port_in_use_is_told_in_one_line(address: str, tmp_path: Path) -> None:
    port = address.split(":")[2].split("/")[0]
    model = tmp_path / "model.nits"
    small().fit(mixed(100)).save(model)
    command = [sys.executable, "-m", "nits", "explore", str(model), "--port", port, "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 2
    assert f"port {port} must be free" in done.stderr
    assert done.stderr.count("\n") == 1
