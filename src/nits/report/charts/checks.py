"""Draws calibration, what a classifier saw, distances to training rows, and surprise."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from nits.report import words
from nits.report.calibration import OfColumn
from nits.report.charts.svg import LETTER, Chart, steps
from nits.report.copies import Copies
from nits.report.detection import Detection
from nits.report.surprises import Surprises
from nits.report.ticks import Tick, of_numbers

Numbers = NDArray[np.float64]

HALVES = [Tick(0.0, "0"), Tick(0.5, "½"), Tick(1.0, "1")]


def calibration(column: OfColumn, reach: float) -> Markup:
    """Returns the share of transforms up to u, less u, in the band that chance allows.

    reach: The end of the vertical axis, the same for all columns.
    """
    chart = Chart(
        196, 104, f"{column.name}: calibration, at most {column.gap:.3f} off", (34, 6, 8, 18)
    )

    def up(value: float) -> float:
        return float(np.clip(value / (2 * reach) + 0.5, 0, 1))

    chart.box((0, 1), (up(-column.band), up(column.band)), "band")
    chart.line([(0, 0.5), (1, 0.5)], "rule")
    u = np.linspace(0, 1, len(column.curve))
    points = [(x, up(y)) for x, y in zip(u.tolist(), column.curve.tolist(), strict=True)]
    chart.line(points, "curve bad" if column.outside else "curve")
    step = _round_down(reach)
    chart.up([Tick(up(v), words.number(v, 2)) for v in (-step, 0.0, step)], rules=False)
    chart.across(HALVES)
    return chart.svg()


def _round_down(x: float) -> float:
    """Returns the largest of 1, 2 and 5 times a power of ten that is not above x."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(max(k * power for k in (1, 2, 5) if k * power <= x * (1 + 1e-9)))


def roc(found: Detection) -> Markup:
    """Returns the ROC curve of the classifier."""
    chart = Chart(250, 236, f"ROC curve, area {found.auc:.3f}", (34, 8, 12, 36))
    ticks = [Tick(0.0, "0"), Tick(0.5, "0.5"), Tick(1.0, "1")]
    chart.up(ticks)
    chart.across(ticks, "real rows taken for samples")
    chart.line([(0, 0), (1, 1)], "chance")
    chart.line([(x, y) for x, y in found.curve.tolist()], "drawn")
    return chart.svg()


def seen(found: Detection) -> Markup:
    """Returns a bar per column: how much the AUC falls without it."""
    names = [words.short(each.name, 20) for each in found.seen]
    left = 10 + LETTER * max(len(name) for name in names)
    top = max(0.01, *(each.fall for each in found.seen))
    chart = Chart(330, 18 * len(names) + 6, "columns the classifier used", (left, 2, 50, 4))
    for i, (name, each) in enumerate(zip(names, found.seen, strict=True)):
        low, size = 1 - (i + 1) / len(names), 1 / len(names)
        middle = chart.y(low + size / 2) + 3.5
        fall = max(0.0, each.fall)
        chart.text(left - 6, middle, name, anchor="end")
        chart.box((0, fall / top), (low + 0.18 * size, low + 0.82 * size), "drawn-fill")
        chart.text(chart.x(fall / top) + 5, middle, words.fixed(each.fall), "t faint", "start")
    return chart.svg()


def copies(found: Copies) -> Markup:
    """Returns the share of rows nearer to a training row than a distance, for both sorts."""
    top = float(max(np.quantile(found.real, 0.99), np.quantile(found.drawn, 0.99))) or 1.0
    chart = Chart(400, 230, "distances to the nearest training row", (40, 8, 12, 38))
    chart.up([Tick(v, words.percent(v, 0)) for v in (0.0, 0.25, 0.5, 0.75, 1.0)])
    chart.across(of_numbers(0.0, top, lambda v: v / top), "distance to the nearest training row")
    for distances, kind in ((found.real, "data-line"), (found.drawn, "drawn")):
        at = np.minimum(distances / top, 1.0)
        chart.line(list(zip(at.tolist(), found.levels.tolist(), strict=True)), kind)
    return chart.svg()


def surprise(found: Surprises) -> Markup:
    """Returns a histogram of log-densities; the surprising rows are marked below it."""
    if len(found.nats) < 2:
        return Markup("")
    low, high = float(found.nats.min()), float(np.quantile(found.nats, 0.999))
    high = high if high > low else low + 1
    edges = np.linspace(0, 1, 61)
    at = (found.nats - low) / (high - low)
    counts = np.histogram(at, edges)[0]
    heights = np.sqrt(counts / max(1, counts.max()))
    chart = Chart(400, 150, "log-densities of the rows", (12, 6, 12, 38))
    chart.area(steps(edges, heights), "data")
    for row in found.rows:
        if np.isfinite(row.nats):
            chart.dot((row.nats - low) / (high - low), 0.04, "drawn-fill", 3)
    chart.across(of_numbers(low, high, lambda v: (v - low) / (high - low)), "nats per row")
    return chart.svg()
