"""A few words on why a column is modelled as it is."""

from __future__ import annotations

from nits.tables.evidence.cases import Case
from nits.tables.evidence.contest import Candidate
from nits.tables.evidence.decisions import Levels
from nits.tables.evidence.grids import Grid
from nits.tables.evidence.limits import Limits
from nits.tables.evidence.scales import Combed

NAMES = {
    "levels": "categories",
    "ordered": "ordered values",
    "grid": "a grid",
    "real": "real numbers",
}

SIZES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
"""Units of times and durations in nanoseconds; those that are not here are days."""

UNITS = {
    "days": 86_400_000_000_000,
    "hours": 3_600_000_000_000,
    "minutes": 60_000_000_000,
    "seconds": 1_000_000_000,
    "milliseconds": 1_000_000,
    "microseconds": 1000,
    "nanoseconds": 1,
}


def categories(levels: Levels, kind: str | None) -> str:
    """Returns the words for strings, booleans, and what the user calls categorical."""
    found = f"{len(levels.values) + bool(levels.pooled)} categories"
    if levels.pooled:
        found += f", one of them for {len(levels.pooled)} rare values"
    return found + ("; as you said" if kind else "")


def reason(
    best: Candidate, entries: list[Candidate], case: Case, within: Limits, kind: str | None
) -> str:
    """Returns what the column is, its limits, and how far ahead of the next other kind."""
    found = _what(best, case)
    found += "".join(f", {limit}" for limit in _limits(within, case))
    if kind is not None:
        return f"{found}; as you said"
    others = [one for one in entries if _family(one.name) != _family(best.name)]
    if not others:
        return found
    rival = max(others, key=lambda one: case.contest.mean(one.scores))
    lead, _ = case.contest.lead(best.scores, rival.scores)
    name = NAMES[_family(rival.name)]
    if case.contest.tied(best.scores, rival.scores) and case.contest.tied(
        rival.scores, best.scores
    ):
        return f"{found}; level with {name}, simpler"
    return f"{found}; {lead:.2f} nats per row ahead of {name}"


def _family(name: str) -> str:
    return name.partition(" ")[0]


def _what(best: Candidate, case: Case) -> str:
    size = len(case.record.values)
    if best.name == "levels":
        return f"{size} categories"
    if best.name == "ordered":
        return f"{size} ordered values"
    grid = case.record.grid if best.name.startswith("grid") else None
    found = steps(grid, case.record.unit) if grid is not None else _reals(case)
    if count := int(best.made.atoms.sum()):
        found += f" with {count} frequent value{'s' if count > 1 else ''}"
    scale = best.made.scale
    if isinstance(scale, Combed):
        found += f" in steps of {scale.step:.4g} blurred by {scale.share * scale.step:.4g}"
        scale = scale.inner
    if scale.name == "linear":
        return found
    return f"{found} on {'an' if scale.name == 'asinh' else 'a'} {scale.name} scale"


def _reals(case: Case) -> str:
    digits = case.record.resolution.digits
    if digits:
        return f"real numbers of {digits} digits"
    if case.record.grid is not None:
        return f"real numbers in {steps(case.record.grid, case.record.unit)}"
    return "real numbers"


def steps(grid: Grid, unit: str | None) -> str:
    """Returns what the values of a grid are called.

    unit: That of times and durations, None for numbers.
    """
    if unit is not None:
        count, name = _counted(int(grid.step), unit)
        return name if count == 1 else f"steps of {count} {name}"
    if isinstance(grid.step, int) and grid.origin % grid.step == 0:
        return "integers" if grid.width == 1 else f"multiples of {grid.width:g}"
    return f"steps of {grid.width:.4g}"


def _counted(ticks: int, unit: str) -> tuple[int, str]:
    """Returns a duration in the coarsest unit of which it is a multiple, and that unit's name."""
    whole = ticks * SIZES.get(unit, UNITS["days"])
    name, size = next((name, size) for name, size in UNITS.items() if whole % size == 0)
    return whole // size, name


def _limits(within: Limits, case: Case) -> list[str]:
    if within.hard or case.record.time:
        return []
    least, greatest = case.record.values[0].item(), case.record.values[-1].item()
    if (within.low, within.high) == (0, 1) and (least, greatest) != (0, 1):
        return ["a share"]
    found = ["never negative"] if within.low == 0 else []
    if within.high == 0:
        found.append("never positive")
    if within.low == least != 0:
        found.append(f"at least {_value(least, case.record.unit)}")
    if within.high == greatest != 0:
        found.append(f"at most {_value(greatest, case.record.unit)}")
    return found


def _value(value: float, unit: str | None) -> str:
    if unit is None:
        return f"{value:g}"
    count, name = _counted(int(value), unit)
    return f"{count} {name.removesuffix('s') if abs(count) == 1 else name}"
