"""Held-out nats: scikit-learn's densities of a table's numbers, and ours on the same base measure.

Integers, and decimals whose values repeat on a grid of a power of ten, count as multiples of a
step and have probabilities; other numbers have densities in the table's units.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from results import Record

COMPONENTS = (1, 2, 3, 5, 8, 12, 20, 30)
REPEATED = 3.0
"""Rows per distinct value from which decimals on a grid count as multiples of its step."""

MOST_STEPS = 2**22
BANDWIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
KERNELS = 20_000
"""The most training rows of a kernel density, a tenth of which choose its bandwidth."""


def held_out(table: Any) -> tuple[Any, Any]:
    """Returns nine tenths of the rows, and every tenth in a seeded order."""
    order = np.random.default_rng(0).permutation(len(table))
    return table.iloc[order[len(table) // 10 :]], table.iloc[order[: len(table) // 10]]


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


def density(
    table: Any, steps: list[float], estimators: list[Any], most_rows: int = 50_000
) -> tuple[Any, Record]:
    """Returns the best of scikit-learn's densities by validation, and its held-out figures."""
    scaled = standardized(*held_out(table), steps, most_rows)
    cut = len(scaled.train) // 10
    rows, validation = scaled.train[cut:], scaled.train[:cut]
    best = max((one.fit(rows) for one in estimators), key=lambda one: float(one.score(validation)))
    values = best.score_samples(scaled.test) + scaled.shift
    return best, {**mean_of(values), "training_rows": len(rows)}


def mean_of(values: NDArray[np.float64]) -> Record:
    """Returns the mean of rows' nats, and what it may be off by."""
    error = float(values.std()) / math.sqrt(len(values))
    return {"nats": float(values.mean()), "two_standard_errors": 2 * error}


class Standardized(NamedTuple):
    """Rows for scikit-learn.

    train, test: Standardized columns, with uniform noise of one step on those that have steps.
    scale: Standard deviations of the columns.
    shift: What to add to the log-density of a row to have it on the table's base measure.
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    scale: NDArray[np.float64]
    shift: float


def standardized(train: Any, test: Any, steps: list[float], most_rows: int) -> Standardized:
    """Returns the rows of two tables of numbers by the mean and deviation of the first."""
    from sklearn.preprocessing import StandardScaler

    noise, width = np.random.default_rng(2), np.array(steps)
    rows, rest = (
        part.to_numpy(np.float64) + (noise.random(part.shape) - 0.5) * width
        for part in (train, test)
    )
    rows = rows[np.random.default_rng(1).permutation(len(rows))[:most_rows]]
    scaler = StandardScaler().fit(rows)
    shift = -np.log(scaler.scale_).sum() + sum(math.log(step) for step in steps if step)
    return Standardized(scaler.transform(rows), scaler.transform(rest), scaler.scale_, float(shift))


def room_of(column: Any, known: NDArray[Any], x: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the room of values that have probabilities: a step, or as the neighbours leave it."""
    if hasattr(column, "grid"):
        return np.full(len(x), column.grid.width)
    return rooms(np.union1d(getattr(column, "listed", known), x), x)


def rooms(known: NDArray[Any], x: NDArray[Any]) -> NDArray[np.float64]:
    """Returns how much room values have between the middles of the gaps to their neighbours."""
    distinct = np.unique(known).astype(np.float64)
    middles = (distinct[1:] + distinct[:-1]) / 2
    ends = (2 * distinct[[0]] - middles[:1], 2 * distinct[[-1]] - middles[-1:])
    room = np.diff(np.concatenate([ends[0], middles, ends[1]]))
    found: NDArray[np.float64] = room[np.searchsorted(distinct, x.astype(np.float64))]
    return found


def ours(model: Any, table: Any, steps: dict[str, float]) -> Record:
    """Returns our held-out figures, and the model's own figure of rows that it had held out."""
    shares, columns = model.score_samples(table, per_column=True), model.schema_.columns
    own, values = shares.sum(1), on_base(shares, columns, table, steps)
    inside, unseen = values[values != -np.inf], model.unseen(table)
    return {
        **mean_of(inside),
        "rows": len(values),
        "rows_outside": len(values) - len(inside),
        "unseen": dict(zip([c.name for c in columns], unseen.sum(0).tolist(), strict=True)),
        "out_of_fold": out_of_fold(model, own),
    }


def on_base(
    shares: NDArray[np.float64],
    columns: Any,
    table: Any,
    steps: dict[str, float],
    seen: Any = None,
) -> NDArray[np.float64]:
    """Returns the nats of rows with the columns on the base measure that the steps give them.

    A density times the step is a probability; a probability that is spread evenly over a step of
    the column's own grid, or as far as halfway to the neighbouring values, a density.

    shares: Log-densities of the columns, shape (N, D).
    seen: A table whose values are neighbours as well as those of the rows.
    """
    found = shares.copy()
    for place, column in enumerate(columns):
        if column.name not in steps:
            continue
        x = table[column.name].to_numpy()
        known, step = ~np.isnan(x.astype(np.float64)), steps[column.name]
        dense = known & (column.kind == "continuous") & ~np.isin(x, getattr(column, "atoms", ()))
        if step:
            found[dense, place] += np.log(step)
        elif (mass := known & ~dense).any():
            others = x[known] if seen is None else seen[column.name].to_numpy()
            found[mass, place] -= np.log(room_of(column, others, x[mass]))
    return np.asarray(found.sum(1))


def out_of_fold(model: Any, values: NDArray[np.float64]) -> Record:
    """Returns the model's own held-out figure, and the mean of test rows that it should be.

    values: Log-densities of the test rows on the model's own base measure.
    """
    inside = values[values != -np.inf]
    return {
        "held_out": getattr(model, "held_out_", None),
        "held_out_error": getattr(model, "held_out_error_", None),
        "test": float(inside.mean()),
        "test_error": float(inside.std() / np.sqrt(len(inside))),
    }
