"""The explorer's web side: what is served, and what is refused."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from mixed_table import mixed, small
from nits.cli.main import main
from nits.explore import guard
from nits.explore.routes import PAGE, application
from nits.explore.session import Session

HOST, TOKEN = "127.0.0.1:8400", "secret"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = application(Session(small().fit(mixed()), mixed(), base=2048), (HOST,), TOKEN)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as found:
        yield found


def post(client: TestClient, name: str, said: Any) -> Any:
    return client.post(f"/{TOKEN}/api/{name}", json=said)


def test_the_page_and_its_parts_are_served(client: TestClient) -> None:
    whole = client.get(f"/{TOKEN}/")
    assert whole.status_code == 200
    assert whole.headers["content-type"].startswith("text/html")
    for path in PAGE.iterdir():
        name = "" if path.name == "index.html" else path.name
        assert client.get(f"/{TOKEN}/{name}").status_code == 200


def test_every_answer_says_that_only_its_own_scripts_may_run(client: TestClient) -> None:
    for response in (client.get(f"/{TOKEN}/"), client.get("/"), post(client, "panels", {})):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


def test_the_page_asks_no_other_host() -> None:
    for path in PAGE.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, path
        assert "https:" not in text, path
        assert "innerHTML" not in text, path


def test_answers_are_json(client: TestClient) -> None:
    model = post(client, "describe", {}).json()
    assert [panel["name"] for panel in model["panels"]] == list(mixed().columns)
    found = post(client, "panels", {"given": {"price": {"range": ["3", None]}}, "pair": [0, 2]})
    assert found.status_code == 200
    assert len(found.json()["shapes"]) == 7
    assert found.json()["joint"]["cells"]
    row = post(client, "row", {"row": post(client, "picked", {"number": 2}).json()})
    assert row.json()["log_density"] < 0
    chance = post(client, "chance", {"given": {}, "event": "price > 3"})
    assert 0 < chance.json()["probability"] < 1
    rows = post(client, "rows", {"given": {}, "count": 3})
    assert rows.headers["content-type"].startswith("text/csv")
    assert len(rows.text.strip().splitlines()) == 4


@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        ("panels", {"given": {"price": {"value": "soon"}}}, "must be given a number"),
        ("panels", {"given": {}, "pair": [0]}, "two columns"),
        ("panels", {"given": {}, "pair": [0, 99]}, "two columns"),
        ("panels", [], "JSON object"),
        ("chance", {"event": "price >"}, "a condition must look like"),
        ("rows", {"count": "many"}, "a download has"),
        ("rows", {"count": 2, "seed": -1}, "a seed must be"),
        ("row", {"row": 3}, "a row must be"),
        ("picked", {"number": 0}, "the table has rows 1 to 400"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    client: TestClient, name: str, said: Any, why: str
) -> None:
    found = post(client, name, said)
    assert found.status_code == 400
    assert why in found.json()["error"]
    assert "Traceback" not in found.text


def test_broken_and_huge_requests_are_refused(client: TestClient) -> None:
    place = f"/{TOKEN}/api/panels"
    assert client.post(place, content=b"{").status_code == 400
    assert client.post(place, content=b"[" * 50_000).status_code == 400
    assert client.post(place, content=b"\xff").status_code == 400
    assert client.post(place, content=b" " * (guard.LARGEST + 1)).status_code == 413
    assert client.get(place).status_code == 405


@pytest.mark.parametrize(
    "path", ["/", "/wrong/", "/secret2/", "//secret/", "/secret/../", "/wrong/api/panels"]
)
def test_without_the_token_there_is_nothing(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", ["nothing.js", "../routes.py", "%2e%2e/routes.py", "api/nothing"])
def test_only_the_pages_own_files_are_served(client: TestClient, path: str) -> None:
    assert client.get(f"/{TOKEN}/{path}").status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:9", "", "127.0.0.1.nip.io:8400"]
)
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://{HOST}"])
def test_another_origin_is_refused(client: TestClient, origin: str) -> None:
    place = f"/{TOKEN}/api/panels"
    assert client.post(place, json={}, headers={"origin": origin}).status_code == 403
    own = client.post(place, json={}, headers={"origin": f"http://{HOST}"})
    assert own.status_code == 200


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "nits.explore.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["explore", "model.nits"]) == 2
    assert "pip install 'nits[web]'" in capsys.readouterr().err
