"""An attack on a running explorer: everything is refused with a status, and it stays as it was."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mixed_table import mixed, small
from served import Served, served

pytestmark = pytest.mark.slow

MANY = 10_000
GOOD = json.dumps({"given": {"price": {"range": ["3", None]}}, "pair": [0, 1]}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("attack")
    small().fit(mixed()).save(folder / "model.nits")
    with served(folder, str(folder / "model.nits")) as found:
        yield found


def asked(
    server: Served, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    """Returns the status and the body of an answer."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request("GET" if body is None else "POST", path, body, named)
    found = line.getresponse()
    text = found.read()
    line.close()
    return found.status, text


def raw(server: Served, sent: bytes, wait: float = 20.0) -> bytes:
    """Returns what comes back after bytes as they are; nothing where the line is cut."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as line:
        try:
            line.sendall(sent)
            return line.recv(4096)
        except (ConnectionError, TimeoutError):
            return b""


def unharmed(server: Served) -> None:
    """The server still answers, and has told of nothing but how to end it."""
    status, text = asked(server, f"/{server.token}/api/panels", GOOD)
    assert status == 200
    assert json.loads(text)["shapes"]
    assert server.errors.read_text() == "Ctrl-C ends it.\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/wrong/", 404),
        ("/wrong/api/panels", 404),
        ("/TOKEN/../../../../etc/passwd", 404),
        ("/TOKEN/..%2f..%2f..%2fetc%2fpasswd", 404),
        ("/TOKEN/%2e%2e/routes.py", 404),
        ("/TOKEN/....//....//routes.py", 404),
        ("/TOKEN/main.js%00.html", 404),
        ("/TOKEN//etc/passwd", 404),
        ("/TOKEN/api/__class__", 404),
        ("/TOKEN/index.html", 404),
        ("/TOKEN/" + "a" * 20_000, 404),
        ("/TOKEN/api/panels", 405),
    ],
)
def test_paths_lead_nowhere(server: Served, path: str, status: int) -> None:
    found, text = asked(server, path.replace("TOKEN", server.token))
    assert found == status
    assert b"root:" not in text
    assert b"Traceback" not in text
    unharmed(server)


def test_other_hosts_and_origins_are_refused(server: Served) -> None:
    place = f"/{server.token}/api/panels"
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "[::1]", "0.0.0.0"):
        assert asked(server, place, GOOD, Host=host)[0] == 403
        assert asked(server, f"/{server.token}/", Host=host)[0] == 403
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{server.port}", "file://"):
        assert asked(server, place, GOOD, Origin=origin)[0] == 403
    assert asked(server, place, GOOD, Origin=f"http://127.0.0.1:{server.port}")[0] == 200


NASTY: list[Any] = [
    None, 3, "x", [], [[]], {"given": 3}, {"given": {"price": {}}}, {"given": {"price": None}},
    {"given": {"price": {"range": [[], {}]}}}, {"given": {"price": {"value": True}}},
    {"given": {"price": {"value": "9" * 400}}}, {"given": {"price": {"value": "nan"}}},
    {"given": {"price": {"range": ["inf", "-inf"]}}}, {"given": {"price": {"value": "1e999"}}},
    {"given": {"__proto__": {"value": "1"}}}, {"given": {"": {"value": "1"}}},
    {"given": {"city": {"levels": [10**30]}}}, {"given": {"city": {"levels": [-1]}}},
    {"given": {"city": {"levels": [0.5]}}}, {"given": {}, "pair": [True, 0]},
    {"given": {}, "pair": [10**40, 0]}, {"given": {}, "pair": "ab"}, {"given": {}, "pair": {}},
]  # fmt: skip


@pytest.mark.parametrize("said", NASTY, ids=[str(k) for k in range(len(NASTY))])
def test_what_makes_no_sense_is_refused_in_a_sentence(server: Served, said: Any) -> None:
    status, text = asked(server, f"/{server.token}/api/panels", json.dumps(said).encode())
    assert status == 400, text
    assert json.loads(text)["error"].count("\n") == 0
    assert b"Traceback" not in text


@pytest.mark.parametrize(
    "event",
    [
        "__import__('os').system('true')",
        "price > 3; price",
        "price > " + "9" * 5000,
        "(" * 500 + "price > 3",
        "price > 3 and " * 200 + "price > 3",
        "`" * 900,
        "price.__class__ == 1",
        "\x00",
    ],
)
def test_events_execute_nothing(server: Served, event: str) -> None:
    said = json.dumps({"given": {}, "event": event}).encode()
    status, text = asked(server, f"/{server.token}/api/chance", said)
    assert status == 400, text
    assert b"Traceback" not in text


def test_bodies_that_are_no_requests_are_refused(server: Served) -> None:
    place = f"/{server.token}/api/panels"
    for body in (b"{", b"\xff\xfe", b"[" * 60_000, b'{"a":' * 9000, b"nul", b'{"given": NaN}'):
        status, text = asked(server, place, body)
        assert status == 400, body[:20]
        assert b"Traceback" not in text
    memory = server.memory()
    for _ in range(20):
        assert asked(server, place, b" " * 2_000_000)[0] == 413
    head = f"POST {place} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    chunks = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert b" 411 " in raw(server, head + chunks)
    assert b" 400 " in raw(server, head + b"Content-Length: -5\r\n\r\n")
    assert b" 400 " in raw(server, head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx")
    raw(server, head + b"Content-Length: 99999999999\r\n\r\n" + b"x" * 1000, wait=2.0)
    raw(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500)
    raw(server, b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n")
    assert server.memory() <= memory + 48
    unharmed(server)


def test_open_lines_do_not_keep_others_waiting(server: Served) -> None:
    lines = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    try:
        for line in lines:
            line.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n")
        unharmed(server)
    finally:
        for line in lines:
            line.close()


def test_ten_thousand_requests_leave_no_trace(server: Served) -> None:
    place = f"/{server.token}/api/panels"
    shots: list[tuple[str, str, bytes | None, dict[str, str], int]] = [
        ("GET", "/wrong/", None, {}, 404),
        ("GET", f"/{server.token}/main.js", None, {}, 200),
        ("POST", place, b"{", {}, 400),
        ("POST", place, GOOD, {"Origin": "http://evil.example"}, 403),
        ("POST", place, json.dumps({"given": {"price": {"value": "soon"}}}).encode(), {}, 400),
    ]
    memory = 0.0
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for k in range(MANY):
        method, path, body, headers, status = shots[k % len(shots)]
        line.request(method, path, body, headers)
        found = line.getresponse()
        assert b"Traceback" not in found.read()
        assert found.status == status
        if k == MANY // 5:
            memory = server.memory()
    line.close()
    assert server.memory() <= memory + 16
    unharmed(server)
