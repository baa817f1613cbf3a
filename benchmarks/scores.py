"""Data at one scale for every model, and the nats of its rows as a result file has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from models.fitted import Points, Values
from results import Record

from nits.datasets import Split
from nits.tables.evidence import combs
from nits.tables.evidence.scales import Linear

USUAL = (0.5, 2.0)
"""Deviations at which a data set is left as its protocol has it."""


def scaled(split: Split, *, alike: bool = False) -> tuple[Split, float]:
    """Returns the split as models see it, and what to add to their nats to have those of the data.

    If z = (x − m) / s then log p(x) = log p(z) − Σ log s. Means m and deviations s are those of
    train.

    alike: Whether all columns have one deviation and are not shifted, as pixels that a model turns
        and mirrors must.
    """
    mean, deviation = (f(split.train, axis=0, dtype=np.float64) for f in (np.mean, np.std))
    if ((deviation > USUAL[0]) & (deviation < USUAL[1])).all():
        return split, 0.0
    if alike:
        mean, deviation = np.zeros_like(mean), np.full_like(deviation, deviation.mean())
    train, validation, test = (
        ((part - mean) / deviation).astype(np.float32)
        for part in (split.train, split.validation, split.test)
    )
    shift = -float(np.log(deviation).sum())
    return replace(split, train=train, validation=validation, test=test), shift


def without_gaps(split: Split) -> tuple[Split, Values]:
    """Returns the split with gaps between the teeth of combs closed, and each column's log-slope.

    Combs are found in the training rows, as `NITSDensity` finds them; no value of the others may
    lie in a gap.
    """
    parts = [np.array(part) for part in (split.train, split.validation, split.test)]
    slopes = np.zeros(parts[0].shape[1])
    for i in range(len(slopes)):
        comb = combs.find(np.unique(parts[0][:, i].astype(np.float64)))
        if comb is not None:
            slopes[i] = -math.log(comb.share)
            for part in parts:
                x = part[:, i].astype(np.float64)
                if not comb.combed(Linear(0.0, 1.0)).holds(x).all():
                    raise ValueError(f"column {i} must have all values in teeth, but has others.")
                part[:, i] = comb.closed(x)
    train, validation, test = parts
    return replace(split, train=train, validation=validation, test=test), slopes


def nats(values: Values) -> Record:
    """Returns means over all rows and over those inside the support; None if not finite."""
    inside = values[values != -math.inf]
    error = 2 * float(inside.std(ddof=1)) / math.sqrt(len(inside)) if len(inside) > 1 else math.nan
    return {
        "nats": finite(float(values.mean())),
        "nats_inside": finite(float(inside.mean())) if len(inside) else None,
        "two_standard_errors": finite(error),
        "rows": len(values),
        "rows_outside": len(values) - len(inside),
    }


def finite(value: float) -> float | None:
    """Returns the value, or None if it is not finite."""
    return value if math.isfinite(value) else None


def held_out(
    log_prob: Callable[[Points], Values],
    split: Split,
    shift: float,
    name: str = "",
    folder: Path | None = None,
) -> Record:
    """Returns the figures of validation and test rows, under names that say which; see `scaled`.

    name, folder: Of the files in which the nats of all rows are kept, if any.
    """
    parts = {"validation": split.validation, "test": split.test}
    found = {part: log_prob(rows) + shift for part, rows in parts.items()}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for part, values in found.items():
            np.save(file_of(folder, name, part), values)
    return named(found)


def file_of(folder: Path, name: str, part: str) -> Path:
    """Returns the file of the nats of a part's rows, by the name of the weights."""
    return folder / f"{name}-{part}.npy"


def named(parts: dict[str, Values]) -> Record:
    """Returns the figures of each part's rows, under names that say which."""
    return {
        f"{part}_{name}": value
        for part, values in parts.items()
        for name, value in nats(values).items()
    }
