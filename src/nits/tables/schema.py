"""What a table's columns are: guessed from the training rows, unless the user says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits import checks
from nits.tables.columns import Column, Levels, Real, Whole, from_dict
from nits.tables.frames import Frame, Values

ATOM = 0.01
"""Share of the rows from which a value of a real column counts as an atom."""

REPEATED = 3.0
"""Rows per distinct value from which decimals on a grid count as multiples of a step."""

MOST_LEVELS = 1000
"""The most categories that a column may have; with more it is taken for an identifier."""

MOST_STEPS = 2**22
"""The most steps between the least and the greatest multiple; float32 can tell more apart."""

MOST_ATOMS = 16

LOOKED_AT = 2_000_000
"""Rows that the guess is based on, evenly spaced, if there are more."""

NAMED = "named by the user"
"""The reason for a kind that is not guessed."""

Support = tuple[float, float]


class Schema:
    """The columns of a table, in the order in which it has them."""

    def __init__(self, columns: Sequence[Column], form: str) -> None:
        self.columns = tuple(columns)
        self.form = form

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    @classmethod
    def infer(
        cls,
        frame: Frame,
        kinds: Mapping[str, str] | None = None,
        support: Mapping[str, Support] | None = None,
        pool_below: int = 0,
    ) -> Schema:
        """Guesses what each column is.

        kinds: "continuous", "integer" or "categorical" for columns where the guess would be wrong.
        support: (low, high) for columns that have limits; either may be infinite.
        pool_below: Categories in fewer rows than this are modelled as one.
        """
        kinds = dict(kinds or {})
        support = dict(support or {})
        for ends in support.values():
            checks.ends(*ends)
        _refuse_unknown(kinds, support, frame)
        found = [
            guess(name, values, kinds.get(name), support.get(name), pool_below)
            for name, values in frame.columns.items()
        ]
        return cls(found, frame.form)

    def select(self, names: Sequence[str]) -> Schema:
        """Returns the schema of some of the columns."""
        by_name = {column.name: column for column in self.columns}
        return Schema([by_name[name] for name in names], self.form)

    def encode(self, frame: Frame) -> NDArray[np.float64]:
        """Returns a table's values as numbers, shape (N, D); its columns may be in any order."""
        missing = [name for name in self.names if name not in frame.columns]
        if missing and frame.form == "numpy":
            raise ValueError(
                f"X has {len(frame.columns)} features, "
                f"but this model was fitted on {len(self.columns)}."
            )
        if missing:
            raise ValueError(
                f"the table must have the column {missing[0]!r}, "
                f"but has {', '.join(frame.columns)}; add it."
            )
        parts = [column.encode(frame.columns[column.name]) for column in self.columns]
        for column, part in zip(self.columns, parts, strict=True):
            if not column.optional and np.isnan(part).any():
                raise ValueError(
                    f"column {column.name!r} has {int(np.isnan(part).sum())} missing values, "
                    "but had none in training; fill them, or train on rows that have some."
                )
        return np.stack(parts, 1) if parts else np.empty((len(frame), 0))

    def decode(self, numbers: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Returns the values that numbers, shape (N, D), stand for."""
        return {c.name: c.decode(part) for c, part in zip(self.columns, numbers.T, strict=True)}

    def log_measure(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns what to add to log-densities to have them in the user's units, shape (N, D)."""
        return np.stack(
            [c.log_measure(part) for c, part in zip(self.columns, numbers.T, strict=True)], 1
        )

    def log_share(self, frame: Frame) -> NDArray[np.float64]:
        """Returns what to add to log-densities for shares of pools, shape (N, D)."""
        return np.stack(
            [column.log_share(frame.columns[column.name]) for column in self.columns], 1
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields in a form that JSON can hold."""
        return {"form": self.form, "columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Schema:
        """Returns the schema that `to_dict` described."""
        return cls([from_dict(column) for column in record["columns"]], record["form"])


def _refuse_unknown(kinds: dict[str, str], support: dict[str, Support], frame: Frame) -> None:
    for name in (*kinds, *support):
        if name not in frame.columns:
            raise ValueError(
                f"there is no column {name!r} among {', '.join(frame.columns)}; check the spelling."
            )
    for name, kind in kinds.items():
        if kind not in ("continuous", "integer", "categorical"):
            raise ValueError(
                f"the kind of {name!r} must be continuous, integer or categorical, but is {kind!r}."
            )


def guess(
    name: str,
    values: Values,
    kind: str | None = None,
    support: Support | None = None,
    pool_below: int = 0,
) -> Column:
    """Returns the column that has these values, of the kind named by the user or guessed."""
    optional = bool(values.missing.any())
    known = values.known
    if not len(known):
        raise ValueError(f"column {name!r} must have values, but all are missing; drop it.")
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        count = int((~np.isfinite(known)).sum())
        raise ValueError(
            f"column {name!r} has {count} infinite values; drop those rows, or make them missing."
        )
    common = (name, values.dtype, optional)
    if kind == "categorical" or (kind is None and known.dtype.kind in "Ob"):
        reason = "strings or booleans" if kind is None else NAMED
        return _levels(common, known, reason, pool_below)
    if known.dtype.kind == "O":
        raise ValueError(
            f"column {name!r} must be categorical, since it holds strings, but was named {kind}; "
            "leave its kind out."
        )
    return _numeric(common, known, kind, support)


def _levels(
    common: tuple[str, str, bool], known: NDArray[Any], reason: str, pool_below: int
) -> Column:
    counts = Counter(known.tolist())
    rare = sorted(level for level, count in counts.items() if count < pool_below)
    if len(rare) > 1:
        levels = sorted(set(counts) - set(rare))
        total = sum(counts[level] for level in rare)
        _refuse_levels(common[0], [*levels, rare])
        shares = tuple(counts[level] / total for level in rare)
        return Levels(
            *common, f"{reason}; {len(rare)} rare ones pooled", tuple(levels), tuple(rare), shares
        )
    _refuse_levels(common[0], sorted(counts))
    return Levels(*common, reason, tuple(sorted(counts)))


def _refuse_levels(name: str, levels: list[Any]) -> None:
    if len(levels) < 2:
        raise ValueError(
            f"column {name!r} is constant at {levels[0]!r}; there is nothing to model, drop it."
        )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {name!r} has {len(levels)} different values, more than {MOST_LEVELS}, "
            "as identifiers do; drop it, or pool rare ones with pool_below."
        )


def _numeric(
    common: tuple[str, str, bool], known: NDArray[Any], kind: str | None, support: Support | None
) -> Column:
    time = known.dtype.kind == "M"
    x = known.astype("datetime64[ns]").astype(np.int64) / 1e9 if time else known.astype(np.float64)
    distinct, counts = np.unique(x[:: max(1, len(x) // LOOKED_AT)], return_counts=True)
    if len(distinct) == 1 and bool((x == x[0]).all()):
        raise ValueError(
            f"column {common[0]!r} is constant at {x[0]:g}; there is nothing to model, drop it."
        )
    step = 1.0 if known.dtype.kind in "iu" else _step(distinct, counts)
    fits = step is not None and (x.max() - x.min()) / step < MOST_STEPS
    if kind == "integer" and not fits:
        raise ValueError(
            f"column {common[0]!r} must hold multiples of one step to be integer, but does not; "
            "leave its kind out."
        )
    if kind != "continuous" and step is not None and fits:
        reason = "integers" if step == 1 else f"multiples of {step:g}"
        return _whole(common, x, step, support, reason if kind is None else NAMED)
    return _real(common, x, support, (distinct, counts), "real numbers" if kind is None else NAMED)


def _step(distinct: NDArray[np.float64], counts: NDArray[np.int64]) -> float | None:
    """Returns the power of ten that divides all values, if they repeat as rounded values do."""
    if counts.sum() < REPEATED * len(distinct):
        return None
    for digits in range(7):
        scaled = distinct * 10.0**digits
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-6 * np.maximum(1, np.abs(scaled))):
            return float(10.0**-digits)
    return None


def _whole(
    common: tuple[str, str, bool],
    x: NDArray[np.float64],
    step: float,
    support: Support | None,
    reason: str,
) -> Column:
    low, high = support or (-math.inf, math.inf)
    origin = float(np.round(np.median(x) / step) * step)
    least, greatest = (
        end if math.isinf(end) else round((end - origin) / step) for end in (low, high)
    )
    return Whole(*common, reason, step, origin, least, greatest, max(1.0, deviation(x) / step))


def _real(
    common: tuple[str, str, bool],
    x: NDArray[np.float64],
    support: Support | None,
    seen: tuple[NDArray[np.float64], NDArray[np.int64]],
    reason: str,
) -> Column:
    low, high = support or (-math.inf, math.inf)
    distinct, counts = seen
    large = counts > ATOM * counts.sum()
    atoms = distinct[large][np.argsort(-counts[large])][:MOST_ATOMS]
    if len(atoms):
        share = counts[large].sum() / counts.sum()
        reason += (
            f"; {len(atoms)} values in {share:.0%} of the rows have probabilities of their own"
        )
    return Real(
        *common, reason, low, high, float(np.median(x)), deviation(x), tuple(sorted(atoms.tolist()))
    )


def deviation(x: NDArray[np.float64]) -> float:
    """Returns a robust standard deviation: that of a Gaussian with the same interquartile range.

    Where it is zero, the standard deviation is taken; where that is zero too, one.
    """
    low, high = np.quantile(x, (0.25, 0.75))
    for width in (float(high - low) / 1.349, float(np.std(x))):
        if width > 1e-9 * max(1.0, float(np.abs(x).max())):
            return width
    return 1.0
