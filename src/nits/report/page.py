"""The report on a model of a table: runs every section, and puts them on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nits.report import (
    calibration,
    copies,
    dependence,
    detection,
    document,
    findings,
    likelihood,
    marginals,
    overview,
    provenance,
    surprises,
)
from nits.report.document import LAST, Options, Report, Sections, Source, Stages
from nits.report.provenance import File
from nits.report.subject import Subject
from nits.tables.estimator import NITSDensity

SECTIONS: Sections = {
    "overview": ("The table", overview.measured),
    "marginals": ("Each column", marginals.measured),
    "dependence": ("Pairs of columns", dependence.measured),
    "likelihood": ("Log-likelihood", likelihood.measured),
    "calibration": ("Calibration", calibration.measured),
    "detection": ("Real or sampled?", detection.measured),
    "copies": ("Copies", copies.measured),
    "surprises": ("Surprising rows", surprises.measured),
    "training": ("Training", provenance.trained),
}


def of_table(
    model: NITSDensity,
    table: Any,
    held_out: Any = None,
    options: Options = Options(),  # noqa: B008 - a tuple
) -> Report:
    """Returns the report on a model beside a table.

    table: A table, the path of one, or a `Source`.
    held_out: Rows that the model did not learn from, by which it is judged; by default `table`.
    """
    with Stages(len(SECTIONS) + 2, quiet=options.quiet) as stages:
        stages.at("Drawing rows")
        files = document.files(options.model_file, table, held_out)
        rows, others = (t.table if isinstance(t, Source) else t for t in (table, held_out))
        subject = Subject.of(model, rows, others, options.seed, options.rows)
        found, reasons = document.measured(SECTIONS, subject, stages)
        found[LAST[0]] = provenance.of_model(model, options.seed, files)
        stages.at("Writing the page")
        text = _rendered(subject, found, reasons, files)
    return Report(text, found, reasons)


def _rendered(
    subject: Subject, found: dict[str, Any], reasons: dict[str, str], files: Sequence[File]
) -> str:
    named = {file.role: file.name for file in files}
    calibrated = found.get("calibration")
    about = {
        "title": named.get("model", type(subject.model).__name__),
        "judged": named.get("held-out rows" if subject.held_out else "table", "the table given"),
        "subject": subject,
        "titles": document.titles(SECTIONS),
        "found": found,
        "reasons": reasons,
        "findings": findings.of_sections(found),
        "reach": _reach(calibrated) if calibrated else 1.0,
    }
    return document.rendered("report.html", about)


def _reach(found: calibration.Calibration) -> float:
    """Returns the end of the vertical axis that all calibration charts share."""
    return 1.3 * max(max(c.band, float(abs(c.curve).max())) for c in found.drawn)
