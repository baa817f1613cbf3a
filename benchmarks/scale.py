"""Brings data of another scale to unit deviation, for every model alike, and counts that in their nats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nits.datasets import Split

USUAL = (0.5, 2.0)
"""Deviations at which a data set is left as its protocol has it."""


def scaled(split: Split) -> tuple[Split, float]:
    """Returns the split as models see it, and what to add to their log-densities to have those of the data.

    If z = (x − m) / s then log p(x) = log p(z) − Σ log s. Means m and deviations s are those of
    train.
    """
    mean, deviation = (f(split.train, axis=0, dtype=np.float64) for f in (np.mean, np.std))
    if ((deviation > USUAL[0]) & (deviation < USUAL[1])).all():
        return split, 0.0
    train, validation, test = (
        ((part - mean) / deviation).astype(np.float32)
        for part in (split.train, split.validation, split.test)
    )
    shift = -float(np.log(deviation).sum())
    return replace(split, train=train, validation=validation, test=test), shift
