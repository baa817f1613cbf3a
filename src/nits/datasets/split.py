"""A data set in three parts, and the steps that every protocol shares: cut, then standardize."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Parts = tuple[Matrix, Matrix, Matrix]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, to validate and to test.

    train, validation, test: float32, shape (N, D); from the cache they are memory-mapped and
        read-only.
    columns: The D names.

    >>> import nits, numpy
    >>> part = numpy.zeros((10, 2), numpy.float32)
    >>> nits.datasets.Split("mine", part, part, part, ("a", "b")).train.shape
    (10, 2)
    """

    name: str
    train: NDArray[np.float32]
    validation: NDArray[np.float32]
    test: NDArray[np.float32]
    columns: tuple[str, ...]


def make_split(name: str, parts: Parts, columns: tuple[str, ...]) -> Split:
    """Returns the parts as a `Split`, rounded to float32."""
    train, validation, test = (np.ascontiguousarray(part, dtype=np.float32) for part in parts)
    return Split(name, train, validation, test, columns)


def cut(rows: Matrix) -> Parts:
    """Returns train, validation and test rows: test is the last tenth, validation that before.

    Validation is a tenth of what test leaves; both are rounded down.
    """
    rest, test = cut_tail(rows)
    train, validation = cut_tail(rest)
    return train, validation, test


def cut_tail(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Returns all rows but the last tenth, and the last tenth."""
    tail = int(0.1 * len(rows))
    if tail == 0:
        raise ValueError(
            f"there must be at least 10 rows, but there are {len(rows)}; download the file again."
        )
    return rows[:-tail], rows[-tail:]


def standardize(parts: Parts, by: Matrix, columns: tuple[str, ...], *, ddof: int = 0) -> Parts:
    """Returns (part − mean) / standard deviation of each column, both computed on `by`.

    ddof: 0 divides the squares by N, as NumPy does; 1 by N − 1, as pandas does.
    """
    mean = by.mean(axis=0)
    deviation = by.std(axis=0, ddof=ddof)
    fit = np.isfinite(deviation) & (deviation > 0)
    if not fit.all():
        name = columns[int(np.argmin(fit))]
        raise ValueError(
            f"every column must be finite and vary, but {name!r} does not; download the file again."
        )
    train, validation, test = ((part - mean) / deviation for part in parts)
    return train, validation, test
