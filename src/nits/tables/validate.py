"""Checks of the tables and sample weights that an estimator is given."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from nits.tables import frames, zones
from nits.tables.frames import Frame

LEAST_ROWS = 2


def checked_frame(estimator: Any, X: Any, *, reset: bool) -> Frame:
    """Returns the columns of X, after scikit-learn's checks and our own.

    reset: Whether the estimator is being fitted, and remembers the columns of X; otherwise X must
        have those that it was fitted on.
    """
    if _is_table(X):
        frame = zones.read(X)
        if reset:  # later tables may have them in another order, and others besides
            estimator.n_features_in_ = len(frame.columns)
            estimator.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        _refuse_few(frame, LEAST_ROWS if reset else 1)
        return frame
    least = LEAST_ROWS if reset else 1
    return zones.read(
        validate_data(
            estimator,
            frames.unmasked(X),
            reset=reset,
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
        )
    )


def _is_table(X: Any) -> bool:
    return isinstance(X, str | Path | dict | Frame) or type(X).__module__.partition(".")[0] in (
        "pandas",
        "polars",
        "pyarrow",
    )


def _refuse_few(frame: Frame, least: int) -> None:
    if not frame.columns:
        raise ValueError("Found a table with 0 columns while a minimum of 1 is required.")
    if len(frame) < least:
        raise ValueError(
            f"Found array with {len(frame)} sample(s) while a minimum of {least} is required."
        )


class TableWarning(UserWarning):
    """A notice about a table: what was set aside, or differs from the training table."""


def told_of(notice: str, levels: int = 4) -> None:
    """Gives a notice as a warning, if there is one.

    levels: Calls between the user's line and this one, this one included.
    """
    if notice:
        warnings.warn(notice, TableWarning, stacklevel=levels)


def checked_levels(levels: Any) -> NDArray[np.float64]:
    """Returns one or more probabilities."""
    found = np.atleast_1d(np.asarray(levels, np.float64))
    outside = found[~((found >= 0) & (found <= 1))]
    if not found.size:
        raise ValueError("levels must have a probability at least, but have none; name one.")
    if found.ndim != 1 or len(outside):
        got = f"{outside[0]:g} is among them" if len(outside) else f"have {found.ndim} dimensions"
        raise ValueError(f"levels must lie in [0, 1], but {got}; divide percentages by 100.")
    return found


def counted(
    frame: Frame, weight: NDArray[np.float32] | None
) -> tuple[Frame, NDArray[np.float32] | None]:
    """Leaves out rows of weight zero: what is learned is as if they were not there."""
    if weight is None or (weight > 0).all():
        return frame, weight
    rows = np.flatnonzero(weight > 0)
    return frame.take(rows), weight[rows]


def checked_weight(weight: Any, rows: int) -> NDArray[np.float32] | None:
    """Returns the weight of each row, or None."""
    if weight is None:
        return None
    with np.errstate(over="ignore"):  # a weight too large is infinite, and refused below
        found = np.asarray(weight, np.float32)
    if found.ndim == 0:
        found = np.full(rows, found, np.float32)
    if found.shape != (rows,):
        raise ValueError(
            f"sample_weight must have shape ({rows},), one weight per row, but has {found.shape}."
        )
    if not (np.isfinite(found).all() and (found >= 0).all() and found.sum() > 0):
        raise ValueError("sample_weight must be finite, not negative, and not zero in all rows.")
    return found
