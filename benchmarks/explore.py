"""How long the explorer takes to answer a change of one condition, measured in the browser.

    python benchmarks/explore.py model.nits [--changes 200]
        → benchmarks/results/explore-MODEL.json

Chromium opens the page of `nits explore`. Each change sets a column to a range, a value or levels,
or clears it; at most two columns have conditions. The time is from the change until the next paint
with all panels, the joint view and the sampled rows.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import sync_playwright
from results import Record, write_figures

AT_ONCE = 2
"""Columns that have conditions at the same time."""

APPLY = """([i, kind, said]) => new Promise((done) => {
  document.addEventListener("answered",
    () => done(performance.getEntriesByName("answer")[0].duration), { once: true });
  const card = document.querySelectorAll("#panels article")[i];
  if (kind === "clear") { card.querySelector("header button").click(); return; }
  if (kind === "level") { card.querySelectorAll("input[type=checkbox]")[said].click(); return; }
  const inputs = card.querySelectorAll(".ends input");
  inputs.forEach((input, k) => { input.value = said[k]; });
  inputs[0].dispatchEvent(new Event("change"));
})"""

Change = tuple[int, str, Any]


def change(panels: list[Record], told: list[int], source: random.Random) -> Change:
    """Returns what to do next: clear the oldest condition, or set one on another column.

    told: The columns that have one, which is brought up to date.
    """
    if len(told) == AT_ONCE:
        return told.pop(0), "clear", None
    i = source.choice([k for k in range(len(panels)) if k not in told])
    told.append(i)
    panel = panels[i]
    if panel["levels"]:
        return i, "level", source.randrange(min(len(panel["levels"]), 8))
    low, middle, high = (written(panel, x) for x in panel["shape"]["quantiles"])
    ends = source.choice([(low, middle), (middle, high), ("", middle), (middle, ""), (middle,) * 2])
    return i, "range", list(ends)


def written(panel: Record, x: float) -> str:
    """Returns a value as one types it."""
    if panel["what"] != "time":
        return f"{x:.9g}"
    from numpy import datetime64

    return str(datetime64(round(x), "ms").astype("M8[s]"))


def measured(address: str, changes: int) -> tuple[list[float], int]:
    """Returns the milliseconds of each change, and how many columns there are."""
    source, told = random.Random(0), list[int]()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=which("chromium") or which("chromium-browser"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.locator("#status", has_text="Nothing given").wait_for()
        asked = "() => fetch('api/describe', {method: 'POST', body: '{}'}).then((r) => r.text())"
        panels = json.loads(page.evaluate(asked))["panels"]
        times = []
        for _ in range(changes):
            times.append(page.evaluate(APPLY, list(change(panels, told, source))))
            page.wait_for_timeout(50)
        browser.close()
    return times, len(panels)


def main() -> int:
    """Serves a model, measures, and writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model")
    parser.add_argument("--changes", type=int, default=200)
    args = parser.parse_args()
    command = [sys.executable, "-m", "nits", "explore", args.model, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip() if server.stdout else ""
            times, columns = measured(address, args.changes)
        finally:
            server.send_signal(signal.SIGINT)
    found = {
        "columns": columns,
        "changes": len(times),
        "median_ms": statistics.median(times),
        "p95_ms": statistics.quantiles(times, n=20)[-1],
        "most_ms": max(times),
    }
    print(json.dumps(found, indent=2))
    print(write_figures(f"explore-{Path(args.model).stem}", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
