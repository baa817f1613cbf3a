"""Columns made from the values of a training table, by what the evidence decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.tables.columns import plainly
from nits.tables.columns.categories import Categories
from nits.tables.columns.column import LOWER, UPPER, Column, Facts
from nits.tables.columns.gridded import Gridded, separable
from nits.tables.columns.listed import Codes, Listed, Ordered
from nits.tables.columns.numeric import Numeric
from nits.tables.columns.real import Real
from nits.tables.columns.ruler import Ruler
from nits.tables.evidence import choice, decisions, grids, tails
from nits.tables.evidence.choice import Seen
from nits.tables.evidence.decisions import Decision
from nits.tables.evidence.grids import Grid
from nits.tables.evidence.resolution import Resolution
from nits.tables.evidence.scales import Linear
from nits.tables.evidence.tails import NO_TAIL, Tail
from nits.tables.frames import Values

Support = tuple[float, float]


def column(
    name: str,
    values: Values,
    kind: str | None = None,
    support: Support | None = None,
    pool_below: int = 0,
) -> Column:
    """Returns the column that has these values, decided by evidence or as the user says.

    kind: "continuous", "integer", "ordered" or "categorical"; a continuous column has no atoms.
    support: Limits, beyond which nothing is possible.
    pool_below: Categories in fewer rows than this are modelled as one.
    """
    facts = Facts.of(name, values)
    known = _known(values, facts)
    return built(facts, known, Seen.of(known, values.dtype), kind, support, pool_below)


def built(
    facts: Facts,
    known: NDArray[Any],
    seen: Seen,
    kind: str | None = None,
    support: Support | None = None,
    pool_below: int = 0,
) -> Column:
    """Returns the column of these facts, of whose values so much was seen; see `column`.

    known: Values that are not missing, ordered categories as positions; the extremes among them.
    """
    if len(np.unique(known[:1000])) == 1 and bool((known == known[0]).all()):
        return _single(facts, known)
    declared = len(facts.levels) if facts.levels and facts.ordered else None
    with _named(facts.name):
        decision = choice.judged(
            seen, kind=kind, support=support, atoms=kind != "continuous", levels=declared
        )
    reason = decision.reason if declared is None else f"{declared} categories in order"
    facts = replace(facts, reason=reason, scores=dict(decision.scores))
    made = _made(facts, decision, known, seen.counts, pool_below)
    if isinstance(made, Listed | Categories):
        counts = seen.counts or Counter(known.tolist())
        single = sum(count == 1 for count in counts.values())
        made = replace(made, facts=replace(made.facts, singles=single))
    if not isinstance(made, Numeric):
        return made
    return _edged(made, grids.integers(known), None if seen.record is None else seen.record.counts)


def _edged(column: Numeric, plain: NDArray[Any], counts: NDArray[np.int64] | None) -> Column:
    """Returns a column whose tails know which of the training values are outermost.

    counts: How often each value occurs, if these are the distinct ones.
    """
    numbers = column.place(plain)[0].astype(np.float32)

    def edged(side: int) -> Tail:
        edge, part = tails.outermost(numbers, side, counts)
        return replace(column.ruler.law(side), edge=edge, part=part)

    return replace(column, ruler=replace(column.ruler, lower=edged(LOWER), upper=edged(UPPER)))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Puts the column's name before the sentence of an error."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def _known(values: Values, facts: Facts) -> NDArray[Any]:
    """Returns the values that are not missing; ordered categories as positions."""
    if facts.ordered:
        return plainly.numbers(values, facts, None)[0][~values.missing]
    return values.known


def _single(facts: Facts, known: NDArray[Any]) -> Column:
    """Returns the column of one value and holes."""
    facts = replace(facts, reason="one value, or missing")
    unit = plainly.unit_of(known)
    return Categories(facts, (grids.integers(known[:1]).tolist()[0],), unit=unit)


def _made(
    facts: Facts,
    decision: Decision,
    known: NDArray[Any],
    counts: Mapping[Any, int] | None,
    pool_below: int,
) -> Column:
    unit, kind = plainly.unit_of(known), decision.kind
    if isinstance(kind, decisions.Levels) and (decision.scale is None or pool_below > 0):
        counts = counts or Counter(grids.integers(known).tolist())
        return _categories(facts, kind, counts, pool_below, unit)
    ruler = _ruler(decision, known)
    if isinstance(kind, decisions.Levels):
        return Codes(facts, unit, ruler, kind.values)
    if isinstance(kind, decisions.Ordered):
        return Ordered(facts, unit, ruler, kind.values, kind.shares)
    if isinstance(kind, decisions.Real):
        return Real(facts, unit, ruler, tuple(kind.atoms))
    return _gridded(facts, unit, ruler, kind)


def _ruler(decision: Decision, known: NDArray[Any]) -> Ruler:
    if decision.scale is None or decision.resolution is None:
        raise ValueError(f"a numeric column must have a scale, but was decided as {decision}.")
    plain = grids.integers(known)
    grid = decision.kind.grid if isinstance(decision.kind, _Grids) else None
    return Ruler(
        base=decision.base,
        scale=decision.scale,
        ends=decision.ends,
        lower=decision.lower,
        upper=decision.upper,
        least=plain.min().item(),
        greatest=plain.max().item(),
        low=decision.low,
        high=decision.high,
        hard=decision.hard,
        resolution=decision.resolution,
        grid=grid if grid is not None else _recorded(plain, decision.resolution),
    )


_Grids = decisions.Gridded | decisions.Real


def _recorded(plain: NDArray[Any], resolution: Resolution) -> Grid | None:
    """Returns the grid of values; none that is coarser than they are known to be recorded."""
    found = grids.find(plain)
    if found is None or found.exact:
        return found
    return found if math.isclose(found.width, resolution.step, rel_tol=1e-6) else None


def _gridded(facts: Facts, unit: str | None, ruler: Ruler, kind: decisions.Gridded) -> Column:
    """Returns a grid; or a density in its steps, where float32 cannot tell its cells apart."""
    count = int(kind.grid.encode(np.array([ruler.greatest]))[0][0]) + 1
    if separable(ruler.scale, kind.grid, ruler.base, count):
        return Gridded(facts, unit, ruler, kind.grid, count, kind.atoms)
    ends = ruler.scale.to(ruler.numbers(plainly.array([ruler.least, ruler.greatest])))
    body = replace(ruler, ends=(float(ends[0]), float(ends[1])))
    atoms = kind.grid.decode(np.array(kind.atoms, np.int64)).tolist()
    return Real(facts, unit, body, tuple(atoms))


def _categories(
    facts: Facts,
    kind: decisions.Levels,
    counts: Mapping[Any, int],
    pool_below: int,
    unit: str | None,
) -> Column:
    """Returns categories, of which rare ones are pooled if the user wants it or they are many."""
    rare = sorted(level for level in counts if counts[level] < pool_below)
    if len(rare) < 2:
        return Categories(facts, kind.values, kind.pooled, kind.shares, unit)
    rare = sorted({*rare, *kind.pooled})
    total = sum(counts[level] for level in rare)
    kept = tuple(level for level in kind.values if level not in set(rare))
    facts = replace(facts, reason=f"{len(kept)} categories, {len(rare)} rare ones pooled")
    return Categories(facts, kept, tuple(rare), tuple(counts[one] / total for one in rare), unit)


def unlimited(name: str, values: Values) -> Column:
    """Returns a column of real numbers without limits, atoms or tails, for linear maps of them."""
    facts = Facts.of(name, values)
    known = _known(values, facts)
    if known.dtype.kind not in "fiu" or facts.holes:
        raise ValueError(
            f"whitened columns must be real ones without limits, atoms or missing values, but "
            f"{name!r} is {values.dtype}{' with holes' if facts.holes else ''}; turn whitening off."
        )
    decision = choice.decide(known, values.dtype, kind="continuous", atoms=False)
    ruler = _ruler(decision, known)
    return Real(
        replace(facts, reason="real numbers, whitened"),
        None,
        replace(
            ruler,
            base=0,
            scale=Linear(float(np.median(known)), max(float(np.std(known)), 1e-300)),
            ends=(-math.inf, math.inf),
            lower=NO_TAIL,
            upper=NO_TAIL,
            least=-math.inf,
            greatest=math.inf,
            low=-math.inf,
            high=math.inf,
            grid=None,
        ),
    )
