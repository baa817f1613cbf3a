"""Draws a column of the table beside that of samples."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from nits.report import words
from nits.report.axes import Bars
from nits.report.charts.svg import LETTER, Chart, steps
from nits.report.marginals import Marginal

WIDTH = 330
ROW = 17
WIDEST_LABEL = 110


def drawn(found: Marginal) -> Markup:
    """Returns a histogram, or bars of values."""
    if found.axis is None:
        return Markup("")
    label = f"{found.name}: the table and samples"
    if isinstance(found.axis, Bars):
        rows = list(zip(found.axis.labels, found.real, found.drawn, strict=True))
        return bars(rows, label)
    return _histogram(found, label)


def specials(found: Marginal) -> Markup:
    """Returns bars of missing and frequent values."""
    rows = [(each.label, each.real, each.drawn) for each in found.special]
    label = f"{found.name}: missing and frequent values"
    return bars(rows, label, 1.0) if rows else Markup("")


def _histogram(found: Marginal, label: str) -> Markup:
    axis = found.axis
    if axis is None:
        return Markup("")
    widths = np.diff(axis.edges)
    both = [shares / widths for shares in (found.real, found.drawn)]
    top = _top(both[0], both[1]) or 1.0
    chart = Chart(WIDTH, 140, label)
    chart.area(steps(axis.edges, np.minimum(both[0] / top, 1.0)), "data")
    chart.line(steps(axis.edges, np.minimum(both[1] / top, 1.0)), "drawn")
    chart.across(list(axis.ticks))
    return chart.svg()


def _top(*heights: np.ndarray) -> float:
    """Returns the height of the chart: a bin that towers over all but two others is cut."""
    most = max(float(each.max()) for each in heights)
    usual = float(np.sort(heights[0])[-3:][0])
    return min(most, 4 * usual) if usual > 0 else most


def bars(rows: list[tuple[str, float, float]], label: str, top: float = 0.0) -> Markup:
    """Returns a bar per value for the table, on it a mark for samples.

    top: The share at which bars end; by default the largest.
    """
    labels = [words.short(name, 20) for name, *_ in rows]
    left = min(WIDEST_LABEL, 8 + LETTER * max(len(name) for name in labels))
    top = top or max(max(real, drawn) for _, real, drawn in rows) or 1.0
    height = ROW * len(rows) + 4
    chart = Chart(WIDTH, height, label, (left, 2, 46, 2))
    for i, (name, (_, real, drawn)) in enumerate(zip(labels, rows, strict=True)):
        low = 1 - (i + 1) / len(rows)
        across, each = (low + 0.16 / len(rows), low + 0.84 / len(rows)), 1 / len(rows)
        middle = chart.y(low + each / 2) + 3.5
        chart.text(left - 6, middle, name, anchor="end")
        chart.box((0.0, real / top), across, "data")
        chart.line([(drawn / top, low + 0.04 * each), (drawn / top, low + 0.96 * each)], "drawn")
        place = chart.x(max(real, drawn) / top) + 5
        chart.text(place, middle, words.percent(real), "t faint", "start")
    return chart.svg()
