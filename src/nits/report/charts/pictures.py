"""Draws the values of pixels."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from nits.report.charts.svg import Chart, steps
from nits.report.pictures import Bits
from nits.report.ticks import of_numbers

BINS = 32


def values(found: Bits) -> Markup:
    """Returns a histogram of the values of pixels in the images, and in samples."""
    levels = len(found.shares[0])
    bins = min(BINS, levels)
    at = np.arange(levels) * bins // levels
    both = [np.bincount(at, shares, bins) for shares in found.shares]
    edges = np.linspace(0, 1, bins + 1)
    top = float(max(each.max() for each in both)) or 1.0
    chart = Chart(330, 140, "values of pixels in images and samples")
    chart.area(steps(edges, both[0] / top), "data")
    chart.line(steps(edges, both[1] / top), "drawn")
    chart.across(of_numbers(0, levels, lambda v: v / levels))
    return chart.svg()
