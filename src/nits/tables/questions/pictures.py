"""Pictures of one column of an answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from nits.tables.questions.single import OneColumn

POINTS = 65


def column(one: OneColumn, ax: Any = None) -> Any:
    """Draws a histogram of equal shares, or bars of categories; returns the axes."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(5, 3), layout="constrained").subplots()
    if one.by_level:
        shares = one.proba()
        ax.bar([str(level) for level in shares], list(shares.values()), color="#4C72B0")
        ax.set_ylabel("probability")
    else:
        edges = np.unique(np.asarray(one.quantiles(np.linspace(0.002, 0.998, POINTS))))
        ax.stairs(*_densities(one, edges), fill=True, color="#4C72B0")
        ax.set_ylabel("density")
        if edges.dtype.kind == "M":
            _dated(ax)
    ax.set_xlabel(one.column.name)
    return ax


def _dated(ax: Any) -> None:
    """Has times stand apart: days by themselves, and the year once."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(maxticks=7)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(places)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(places))  # type: ignore[no-untyped-call]


def _densities(one: OneColumn, edges: Any) -> tuple[Any, Any]:
    """Returns the shares between edges over their widths, and the edges."""
    levels = np.linspace(0.002, 0.998, POINTS)
    values = np.asarray(one.quantiles(levels))
    count = np.searchsorted(values, edges, side="right") / POINTS
    widths = np.diff(edges)
    if widths.dtype.kind == "m":
        widths = widths / np.timedelta64(1, "s")
    return np.diff(count) / widths.astype(np.float64), edges
