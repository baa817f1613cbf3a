"""The explorer of images: what is answered, what is refused, and the page in Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import nits
from browsers import chromium, grave
from nits.cli.main import main
from nits.explore.image_session import ImageSession
from nits.explore.routes import IMAGES_PAGE, SHARED, application
from served import Served, served

HOST, TOKEN = "127.0.0.1:8400", "secret"


def images() -> Any:
    """Sixty images with 4 levels, the lower half of which repeats the upper one."""
    half = np.random.default_rng(0).integers(0, 4, (60, 3, 6), np.uint8)
    return np.concatenate([half, half], 1)


@pytest.fixture(scope="module")
def model() -> nits.NITSImages:
    return nits.NITSImages(size="tiny", levels=4, max_steps=20, random_state=0).fit(images())


@pytest.fixture(scope="module")
def session(model: nits.NITSImages) -> ImageSession:
    return ImageSession(model, images(), title="pairs")


@pytest.fixture(scope="module")
def client(session: ImageSession) -> Iterator[TestClient]:
    app = application(session, (HOST,), TOKEN)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as found:
        yield found


def test_the_page_and_its_parts_are_served(client: TestClient) -> None:
    for name in ("", *(path.name for path in IMAGES_PAGE.iterdir() if path.suffix != ".html")):
        assert client.get(f"/{TOKEN}/{name}").status_code == 200
    for name in SHARED:
        assert client.get(f"/{TOKEN}/{name}").status_code == 200
    assert client.get(f"/{TOKEN}/main.js").status_code == 404


def test_bits_are_those_of_the_library(session: ImageSession, model: nits.NITSImages) -> None:
    found = session.bits(session.picked(3).pixels)
    surprise = model.surprise(images()[2:3])
    assert found.each == pytest.approx(surprise.flatten().tolist(), abs=1e-4)
    assert found.total == pytest.approx(float(surprise.sum()), abs=1e-3)


def test_what_is_known_stays_and_costs_its_bits(
    session: ImageSession, model: nits.NITSImages
) -> None:
    whole = session.picked(1).pixels
    known = [value if k < 18 else None for k, value in enumerate(whole)]
    found = session.complete(known, 0)
    assert found.exact
    assert all(one[:18] == whole[:18] for one in found.images)
    first = model.surprise(images()[:1]).reshape(-1)[:18].sum()
    assert found.bits == pytest.approx(float(first), abs=1e-3)
    later = session.complete([None if k < 6 else value for k, value in enumerate(whole)], 0)
    assert not later.exact
    assert later.ess < later.count
    assert all(one[6:] == whole[6:] for one in later.images)


@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        ("complete", {"pixels": [0]}, "must be a list of 36 values or nulls"),
        ("complete", {"pixels": [9] * 36}, "must be null or an integer from 0 to 3"),
        ("complete", {"pixels": [True] * 36}, "must be null or an integer from 0 to 3"),
        ("complete", {"pixels": [0] * 36, "seed": -1}, "a seed must be"),
        ("bits", {"pixels": [None] * 36}, "complete it first"),
        ("picked", {"number": 61}, "there are images 1 to 60"),
        ("drawn", {"seed": "x"}, "a seed must be"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    client: TestClient, name: str, said: Any, why: str
) -> None:
    found = client.post(f"/{TOKEN}/api/{name}", json=said)
    assert found.status_code == 400
    assert why in found.json()["error"]


def test_models_that_cannot_be_explored_are_refused(model: nits.NITSImages) -> None:
    labelled = nits.NITSImages(size="tiny", levels=4, max_steps=2, random_state=0)
    labelled.fit(images(), np.arange(60) % 2)
    with pytest.raises(ValueError, match="without labels or noise"):
        ImageSession(labelled)
    with pytest.raises(ValueError, match="there are no images to pick from"):
        ImageSession(model).picked(1)


def test_a_folder_that_does_not_fit_is_one_line(
    model: nits.NITSImages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model.nits")
    assert main(["explore", str(tmp_path / "model.nits"), str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture(scope="module")
def server(model: nits.NITSImages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("images")
    model.save(folder / "pairs.nits")
    with served(folder, str(folder / "pairs.nits")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.mark.web
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pixels_are_painted_forgotten_and_completed(
    browser: Any, server: Served, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(server.address)
    page.locator("#status", has_text="36 of 36 pixels known").wait_for()
    page.click("#measure")
    page.locator("#total", has_text="bits in all").wait_for()
    page.click("#half")
    page.locator("#status", has_text="18 of 36 pixels known").wait_for()
    box = page.locator("#editor").bounding_box()
    page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 0.95 * box["height"])
    page.locator("#status", has_text="19 of 36 pixels known").wait_for()
    page.locator("#editor").focus()
    for key in ("ArrowLeft", "Space", "ArrowUp", "Enter", "Delete"):
        page.keyboard.press(key)
    assert page.inner_text("#cursor") == "row 5, column 5: unknown"
    page.locator("#status", has_text="20 of 36 pixels known").wait_for()
    page.click("#complete")
    page.locator("#how", has_text="effective sample size").wait_for()
    assert page.locator("#gallery button").count() == 9
    assert grave(page) == []
    page.locator("#gallery button").first.click()
    page.locator("#status", has_text="36 of 36 pixels known").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    page.close()
