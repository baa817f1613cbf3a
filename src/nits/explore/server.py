"""Serves a session on this machine only, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from threading import Timer

import uvicorn

from nits.explore.image_session import ImageSession
from nits.explore.routes import application
from nits.explore.session import Session

HOST = "127.0.0.1"


def serve(session: Session | ImageSession, *, port: int = 0, browser: bool = True) -> None:
    """Prints the address and answers until it is interrupted.

    port: By default one that is free.
    browser: Whether to open the page.
    """
    with _bound(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(16)
        hosts = (f"{HOST}:{port}", f"localhost:{port}")
        address = f"http://{HOST}:{port}/{token}/"
        print(address, flush=True)
        print("Ctrl-C ends it.", file=sys.stderr, flush=True)
        app = application(session, hosts, token)
        if browser:
            _opened(address)
        config = uvicorn.Config(
            app, log_level="error", lifespan="off", server_header=False, timeout_graceful_shutdown=1
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return


def _opened(address: str) -> None:
    """Opens a browser, once the server answers."""
    later = Timer(0.3, webbrowser.open, [address])
    later.daemon = True
    later.start()


def _bound(port: int) -> socket.socket:
    # asyncio turns off Nagle's algorithm, which holds an answer back for 40 ms, only if it is told
    # that the socket is one of TCP.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen(128)  # so that the address answers from the moment it is printed
    except (OSError, OverflowError) as error:
        found.close()
        raise ValueError(
            f"port {port} must be free, but cannot be used ({getattr(error, 'strerror', error)}); "
            "leave out --port for one that is free."
        ) from None
    return found
