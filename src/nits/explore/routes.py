"""The web's side of a session: paths, JSON and status codes."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nits.explore.guard import Guard, body, refused
from nits.explore.image_session import ImageSession
from nits.explore.session import Session

PAGE = Path(__file__).parent / "page"
IMAGES_PAGE = Path(__file__).parent / "page_images"
SHARED = ("api.js", "dom.js", "style.css")
"""What the page of images takes from that of tables."""

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

Ask = Callable[[dict[str, Any]], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


def application(session: Session | ImageSession, hosts: tuple[str, ...], token: str) -> Starlette:
    """Returns the explorer of a session, at /TOKEN/.

    hosts: What requests may call this server.
    """
    one_by_one = asyncio.Lock()
    images = isinstance(session, ImageSession)
    asks = _image_asks(session) if isinstance(session, ImageSession) else _asks(session)
    routes = [
        Route(f"/{token}/api/{name}", _api(ask, one_by_one), methods=["POST"])
        for name, ask in asks.items()
    ]
    for path in _image_files() if images else sorted(PAGE.iterdir()):
        if path.suffix in TYPES:
            name = "" if path.name == "index.html" else path.name
            routes.append(Route(f"/{token}/{name}", _file(path), methods=["GET"]))
    return Starlette(
        routes=routes,
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=Guard(hosts, token))],
        exception_handlers={HTTPException: _nothing},
    )


def _asks(session: Session) -> dict[str, Ask]:
    return {
        "describe": lambda _: answered(session.describe()),
        "panels": partial(_panels, session),
        "chance": lambda said: answered(session.chance(said.get("given", {}), said.get("event"))),
        "row": lambda said: answered(session.row(said.get("row"))),
        "picked": lambda said: JSONResponse(session.picked(said.get("number"))),
        "rows": partial(_rows, session),
    }


def _image_asks(session: ImageSession) -> dict[str, Ask]:
    return {
        "describe": lambda _: answered(session.describe()),
        "drawn": lambda said: answered(session.drawn(said.get("seed", 0))),
        "picked": lambda said: answered(session.picked(said.get("number"))),
        "complete": partial(_complete, session),
        "bits": lambda said: answered(session.bits(said.get("pixels"))),
    }


def _complete(session: ImageSession, said: dict[str, Any]) -> Response:
    return answered(session.complete(said.get("pixels"), said.get("seed", 0)))


def _image_files() -> list[Path]:
    return [*sorted(IMAGES_PAGE.iterdir()), *(PAGE / name for name in SHARED)]


def _panels(session: Session, said: dict[str, Any]) -> Response:
    pair = said.get("pair")
    if pair is not None and (not isinstance(pair, list) or len(pair) != 2):
        raise ValueError("a joint view must have two columns, by position.")
    both = None if pair is None else (pair[0], pair[1])
    return answered(session.panels(said.get("given", {}), fine=said.get("fine") is True, pair=both))


def _rows(session: Session, said: dict[str, Any]) -> Response:
    seed = said.get("seed", 0)
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise ValueError("a seed must be an integer from 0 to 2147483647.")
    found = session.rows_csv(said.get("given", {}), said.get("count"), seed)
    return Response(found, media_type="text/csv")


def answered(found: Any) -> Response:
    """Returns a dataclass as JSON, in which what is not finite is null."""
    return JSONResponse(_finite(asdict(found)))


def _finite(found: Any) -> Any:
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, dict):
        return {key: _finite(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(value) for value in found]
    return found


def _api(ask: Ask, one_by_one: asyncio.Lock) -> Endpoint:
    """Returns an endpoint that answers one request at a time, and none that nobody waits for."""

    async def endpoint(request: Request) -> Response:
        try:
            said = json.loads(await body(request) or b"{}")
        except OverflowError:
            return refused("the request is too large.", 413)
        except ClientDisconnect:
            return Response(status_code=499)
        except (ValueError, RecursionError):
            return refused("a request must be JSON.")
        if not isinstance(said, dict):
            return refused("a request must be a JSON object.")
        async with one_by_one:
            if await request.is_disconnected():
                return Response(status_code=499)
            return await run_in_threadpool(_answer, ask, said)

    return endpoint


def _answer(ask: Ask, said: dict[str, Any]) -> Response:
    try:
        return ask(said)
    except (ValueError, TypeError, OverflowError) as error:
        return refused(" ".join(str(error).split()) or "the request cannot be answered.")


def _file(path: Path) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(path.read_bytes(), media_type=TYPES[path.suffix])

    return endpoint


async def _nothing(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return refused("there is nothing here.", status)
