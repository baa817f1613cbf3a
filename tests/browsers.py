"""Chromium for tests of pages, and axe-core to judge what they mean to screen readers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
AXE = ROOT / "build" / "web" / "node_modules" / "axe-core" / "axe.min.js"
PROGRAM = which("chromium") or which("chromium-browser") or which("google-chrome")
DEMANDED = os.environ.get("NITS_WEB") == "1"
"""Set by `make test-web` where nothing may be skipped, as in CI."""

RULES = """() => axe.run().then((found) => found.violations.map((fault) =>
    ({ id: fault.id, impact: fault.impact, nodes: fault.nodes.map((node) => node.html) })))"""


def lacking(reason: str) -> None:
    """Skips a test for a reason, or fails it where everything must run."""
    if DEMANDED:
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yields a browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if PROGRAM is None:
        lacking("there is no Chromium; apt-get install chromium")
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield opened
        opened.close()


def grave(page: Any) -> list[str]:
    """Returns what axe-core calls serious or critical on a page, a line for each rule."""
    if not AXE.exists():
        lacking("there is no axe-core; make test-web installs it")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [
        f"{fault['impact']}: {fault['id']}: {fault['nodes'][0][:200]}"
        for fault in page.evaluate(RULES)
        if fault["impact"] in ("serious", "critical")
    ]
