"""Draws training curves."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from nits.report.charts.svg import Chart, evenly
from nits.report.provenance import Training
from nits.report.ticks import of_numbers


def curves(found: Training) -> Markup:
    """Returns nats of training and validation rows against steps, a pair of lines per network."""
    chart = Chart(440, 240, "training curves", (52, 8, 12, 38))
    last = max(curve.steps[-1] for curve in found.curves)
    later = [
        value
        for curve in found.curves
        for line in (curve.train, curve.validation)
        for value in line[len(line) // 8 :]
        if np.isfinite(value)
    ]
    low, high = evenly(min(later), max(later)) if later else (0.0, 1.0)
    chart.up(of_numbers(low, high, lambda v: (v - low) / (high - low)))
    chart.across(of_numbers(0.0, last, lambda v: v / last), "steps")
    for curve in found.curves:
        for line, kind in ((curve.train, "faint-line"), (curve.validation, "data-line")):
            points = [
                (step / last, float(np.clip((value - low) / (high - low), 0, 1)))
                for step, value in zip(curve.steps, line, strict=False)
                if np.isfinite(value)
            ]
            if len(points) > 1:
                chart.line(points, kind)
        if curve.validation and curve.best_step:
            at = min(range(len(curve.steps)), key=lambda i: abs(curve.steps[i] - curve.best_step))
            best = np.clip((curve.validation[at] - low) / (high - low), 0, 1)
            chart.dot(curve.steps[at] / last, float(best), "data dot", 3)
    return chart.svg()
