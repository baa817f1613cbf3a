"""Held-out nats: scikit-learn's densities of a table's numbers, and ours on the same base measure.

Integers, and decimals whose values repeat on a grid of a power of ten, count as multiples of a
step and have probabilities; other numbers have densities in the table's units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from command_line import COMPONENTS, density
from numpy.typing import NDArray
from results import Record

from nits.tables.evidence.records import Record as Recorded

REPEATED = 3.0
"""Rows per distinct value from which decimals on a grid count as multiples of its step."""

MOST_STEPS = 2**22
BANDWIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
KERNELS = 20_000
"""The most training rows of a kernel density, a tenth of which choose its bandwidth."""


def numbers_of(table: Any) -> Any:
    """Returns the numeric columns of the rows without missing values there."""
    return table.select_dtypes("number").dropna()


def step_of(x: NDArray[Any]) -> float:
    """Returns the step of a column's known values, 0 if they are real numbers."""
    if x.dtype.kind in "iu":
        return 1.0
    distinct = np.unique(x)
    if len(x) < REPEATED * len(distinct):
        return 0.0
    for digits in range(7):
        places = distinct * 10.0**digits
        if np.all(np.abs(places - np.rint(places)) <= 1e-6 * np.maximum(1, np.abs(places))):
            return float(10.0**-digits) if places[-1] - places[0] < MOST_STEPS else 0.0
    return 0.0


def steps_of(rows: Any) -> dict[str, float]:
    """Returns the step of each column of complete rows of numbers."""
    return {name: step_of(rows[name].to_numpy()) for name in rows}


def rivals(table: Any, quick: bool) -> Record:
    """Returns the figures of a Gaussian, a Gaussian mixture and a kernel density."""
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity

    rows = numbers_of(table)
    steps = list(steps_of(rows).values())
    counts = COMPONENTS[: 2 if quick else None]
    mixtures = [GaussianMixture(k, random_state=0, max_iter=200) for k in counts]
    kernels = [KernelDensity(bandwidth=width, rtol=1e-4) for width in BANDWIDTHS]
    _, gaussian = density(rows, steps, mixtures[:1])
    mixture, mixed = density(rows, steps, mixtures)
    kernel, smooth = density(rows, steps, kernels, KERNELS)
    return {
        "steps": steps_of(rows),
        "gaussian": gaussian,
        "gaussian_mixture": {**mixed, "components": mixture.n_components},
        "kernel_density": {**smooth, "bandwidth": kernel.bandwidth},
    }


def ours(model: Any, table: Any, steps: dict[str, float]) -> Record:
    """Returns our held-out figures with the columns on the base measure that the steps give them.

    A density times the step is a probability; a probability over the distance to the next value
    that could have been recorded, a density.
    """
    shares = model.score_samples(table, per_column=True)
    for place, column in enumerate(model.schema_.columns):
        if column.name not in steps:
            continue
        x = table[column.name].to_numpy()
        known, step = ~np.isnan(x.astype(np.float64)), steps[column.name]
        dense = known & (column.kind == "continuous") & ~np.isin(x, getattr(column, "atoms", ()))
        if step:
            shares[dense, place] += np.log(step)
        elif (mass := known & ~dense).any():
            resolution = Recorded.of(x[known]).resolution
            shares[mass, place] -= np.log(resolution.at(x[mass].astype(np.float64)))
    values = shares.sum(1)
    inside = values[values != -np.inf]
    return {
        "nats": float(inside.mean()),
        "two_standard_errors": 2 * float(inside.std() / np.sqrt(len(inside))),
        "rows": len(values),
        "rows_outside": len(values) - len(inside),
        "unseen": model.unseen(table) if hasattr(model, "unseen") else {},
    }
