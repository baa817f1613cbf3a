"""What a report says first: a few figures, each from one of its sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nits.report import words
from nits.report.calibration import Calibration
from nits.report.copies import Copies
from nits.report.detection import Detection
from nits.report.likelihood import Likelihood
from nits.report.marginals import Marginals


@dataclass(frozen=True)
class Finding:
    """A figure, what it is of, what to hold it against, and the section that it comes from.

    within: Whether it is what chance allows; None if there is nothing to compare it with.
    error: What is written behind the figure.
    """

    title: str
    figure: str
    note: str
    section: str
    within: bool | None = None
    error: str = ""


def of_sections(found: dict[str, Any]) -> list[Finding]:
    """Returns a finding of each section that could be computed, by its name."""
    makers: dict[str, Callable[[Any], Finding]] = {
        "likelihood": _likelihood,
        "calibration": _calibration,
        "detection": _detection,
        "copies": _copies,
        "marginals": _marginals,
    }
    return [make(found[name]) for name, make in makers.items() if name in found]


def _likelihood(found: Likelihood) -> Finding:
    if found.held_out is None:
        title, figure = "Log-likelihood of these rows", words.fixed(found.model.mean, 2)
        error: float | None = found.model.error
    else:
        title, figure = "Held-out log-likelihood", words.fixed(found.held_out, 2)
        error = found.held_out_error
    spread = "" if error is None else f"±\u00a0{words.fixed(error, 2)}"
    note = "nats per row"
    if found.ahead_of_independent is not None and found.ahead_of_gaussian is not None:
        note += (
            f"; on the rows here {words.fixed(found.ahead_of_independent.mean, 2)} ahead of "
            f"independent columns, {words.fixed(found.ahead_of_gaussian.mean, 2)} of a Gaussian"
        )
    return Finding(title, figure, note, "likelihood", error=spread)


def _calibration(found: Calibration) -> Finding:
    total, worst = len(found.columns), found.worst
    inside = total - len(found.outside)
    note = (
        f"columns within what chance allows; worst is {worst.name}, "
        f"{words.fixed(worst.gap)} off where chance allows {words.fixed(worst.band)}"
    )
    return Finding("Calibration", f"{inside} of {total}", note, "calibration", inside == total)


def _detection(found: Detection) -> Finding:
    note = f"AUC of a classifier between real and sampled rows, ±\u00a0{words.fixed(found.error)}; "
    note += f"chance stays below {words.fixed(found.chance)}"
    within = found.auc <= found.chance
    if not within:
        note += f"; told most by {found.seen[0].name}"
    return Finding("Told from real rows", words.fixed(found.auc), note, "detection", within)


def _copies(found: Copies) -> Finding:
    note = (
        "of samples lie as near to a training row as the nearest "
        f"{words.percent(found.real_near)} of real rows"
    )
    near = found.drawn_near
    return Finding("Copies", words.percent(near), note, "copies", near <= found.high)


def _marginals(found: Marginals) -> Finding:
    worst = found.worst
    note = (
        f"gap between the table and samples of {worst.name}, the worst column; "
        f"chance allows {words.percent(worst.chance)} in one column"
    )
    return Finding("Columns", words.percent(worst.gap), note, "marginals")
