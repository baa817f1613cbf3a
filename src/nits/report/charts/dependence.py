"""Draws pairs of columns: the table beside samples, and what all pairs tell."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from nits.report import split
from nits.report.axes import Axis, Bars
from nits.report.charts.svg import LETTER, Chart
from nits.report.dependence import Dependence, Pair
from nits.report.split import Split
from nits.report.ticks import of_numbers

Numbers = NDArray[np.float64]

SHADES = 8
SIDE = 172
LEFT, LEFT_OF_BARS = 48, 76


def panels(pair: Pair) -> tuple[Markup, Markup]:
    """Returns two pictures in the same shades: rows of the table, and samples."""
    area = np.outer(np.diff(pair.axes[0].edges), np.diff(pair.axes[1].edges))
    both = [cells / area for cells in (pair.real, pair.drawn)]
    top = _top(np.concatenate([cells.ravel() for cells in both]))
    return (
        _panel(pair, both[0] / top, "data", "the table"),
        _panel(pair, both[1] / top, "drawn", "samples"),
    )


def _top(cells: Numbers) -> float:
    used = cells[cells > 0]
    return float(np.quantile(used, 0.98)) if len(used) else 1.0


def _panel(pair: Pair, cells: Numbers, colour: str, whose: str) -> Markup:
    first, second = pair.names
    x, y = pair.axes
    left = LEFT_OF_BARS if isinstance(y, Bars) else LEFT
    label = f"{second} against {first}, {whose}"
    chart = Chart(left + SIDE + 10, SIDE + 38, label, (left, 4, 10, 34))
    shades = np.ceil(np.sqrt(np.clip(cells, 0, 1)) * SHADES).astype(int)
    for shade in range(1, SHADES + 1):
        path = _cells(chart, x, y, shades == shade)
        if path:
            opacity = 0.1 + 0.9 * shade / SHADES
            chart.parts.append(
                f'<path class="cell {colour}" fill-opacity="{opacity:.2f}" d="{path}"/>'
            )
    fitting = int(SIDE / LETTER / len(x) - 0.7) if isinstance(x, Bars) else 12
    chart.across(split.short(x, max(3, fitting)), first)
    chart.up(split.short(y, int((left - 8) / LETTER)), rules=False)
    return chart.svg()


def _cells(chart: Chart, x: Axis | Split, y: Axis | Split, chosen: NDArray[np.bool_]) -> str:
    """Returns a path of the chosen cells, those side by side in one rectangle."""
    parts = []
    for j in range(chosen.shape[1]):
        row = np.concatenate([[False], chosen[:, j], [False]]).astype(int)
        starts, ends = np.flatnonzero(np.diff(row) == 1), np.flatnonzero(np.diff(row) == -1)
        bottom, top = chart.y(float(y.edges[j])), chart.y(float(y.edges[j + 1]))
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
            left, right = chart.x(float(x.edges[a])), chart.x(float(x.edges[b]))
            parts.append(f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z")
    return "".join(parts)


def every_pair(found: Dependence) -> Markup:
    """Returns a dot per pair: nats in the table, across, and in samples; one has a ring."""
    i, j = np.triu_indices(len(found.names), 1)
    x, y = found.real[i, j], found.drawn[i, j]
    top = float(max(x.max(), y.max())) * 1.05 or 1.0
    chart = Chart(300, 270, "mutual information of all pairs", (40, 8, 12, 38))
    ticks = of_numbers(0.0, top, lambda v: v / top)
    chart.up(ticks)
    chart.across(ticks, "nats in the table")
    chart.line([(0, 0), (1, 1)], "chance")
    for a, b in zip((x / top).tolist(), (y / top).tolist(), strict=True):
        chart.dot(a, b, "data dot")
    k = int(np.abs(x - y).argmax())
    chart.dot(float(x[k] / top), float(y[k] / top), "ring", 5)
    return chart.svg()
