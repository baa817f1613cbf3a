"""Who may ask: this machine's browser, by the address that was printed, in small requests.

A page of another site could have its name lead to 127.0.0.1, so the Host and Origin headers must
be those of the printed address, and the path must begin with its token.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

LARGEST = 65536
"""Bytes of a request's body."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Next = Callable[[Request], Awaitable[Response]]


class Guard:
    """Refuses requests that do not come from the page.

    hosts: What the Host header may be, such as "127.0.0.1:8400".
    token: What the path begins with.
    """

    def __init__(self, hosts: tuple[str, ...], token: str) -> None:
        self.hosts, self.token = hosts, token

    async def __call__(self, request: Request, proceed: Next) -> Response:
        """Answers a request, or refuses it; either way with the headers that protect the page."""
        refused = self.refusal(request)
        response = await proceed(request) if refused is None else refused
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    def refusal(self, request: Request) -> Response | None:
        """Returns why a request is refused, or None."""
        if request.headers.get("host", "").lower() not in self.hosts:
            return refused("this page is open to its own address only.", 403)
        origin = request.headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return refused("other pages may not ask this one.", 403)
        first = request.url.path.split("/")[1]
        if not hmac.compare_digest(first.encode(), self.token.encode()):
            return refused("there is nothing here; open the address that was printed.", 404)
        if request.method == "POST" and "content-length" not in request.headers:
            return refused("a request must tell its length.", 411)
        return None


async def body(request: Request) -> bytes:
    """Returns the body of a request, of which no more is read than it may have."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > LARGEST:
            raise OverflowError
    return bytes(found)


def refused(sentence: str, status: int = 400) -> JSONResponse:
    """Returns an error, one sentence."""
    return JSONResponse({"error": sentence}, status)
