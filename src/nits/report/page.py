"""The page: runs every section, and writes what they found as one HTML file."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from nits import atomic
from nits.report import (
    calibration,
    copies,
    dependence,
    detection,
    findings,
    likelihood,
    marginals,
    overview,
    provenance,
    surprises,
    words,
)
from nits.report.charts import checks, training
from nits.report.charts import dependence as pair_charts
from nits.report.charts import marginals as column_charts
from nits.report.provenance import File
from nits.report.subject import ROWS, CannotSay, Subject
from nits.tables.estimator import NITSDensity

SECTIONS: dict[str, tuple[str, Callable[[Subject], Any]]] = {
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
LAST = ("provenance", "Origin")


class Options(NamedTuple):
    """How a report is made.

    rows: How many rows of a longer table are looked at.
    model_file: Where the model was read from, if from a file.
    quiet: Whether to show no progress.
    """

    seed: int = 0
    rows: int = ROWS
    model_file: Path | None = None
    quiet: bool = True


class Source(NamedTuple):
    """A table, and the file that it was read from."""

    table: Any
    path: Path


@dataclass(frozen=True)
class Report:
    """A report as HTML text; a notebook shows it in a frame.

    sections: What each section found, by name.
    reasons: Why a section could not be computed.
    """

    html: str
    sections: dict[str, Any]
    reasons: dict[str, str]

    def save(self, path: str | Path) -> Path:
        """Writes the page to a file, whole or not at all, and returns its path."""
        place = Path(path)
        atomic.write(place, self.html.encode())
        return place

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        style = "width:100%;height:46rem;border:1px solid #8884;border-radius:6px"
        return f'<iframe title="report" sandbox="" srcdoc="{page}" style="{style}"></iframe>'


class Stages:
    """A progress bar that names the section at work."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(bar_width=24), TextColumn("{task.completed} of {task.total}")
        self.bar = Progress(
            *columns,
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            disable=quiet,
            transient=True,
        )
        self.task = self.bar.add_task("", total=total)
        self.started = False

    def at(self, title: str) -> None:
        """Says that the stage before is done, and which one begins."""
        if self.started:
            self.bar.advance(self.task)
        self.started = True
        self.bar.update(self.task, description=title)

    def __enter__(self) -> Stages:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()


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
        files = _files(options.model_file, table, held_out)
        rows, others = (t.table if isinstance(t, Source) else t for t in (table, held_out))
        subject = Subject.of(model, rows, others, options.seed, options.rows)
        found: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        for name, (title, measured) in SECTIONS.items():
            stages.at(title)
            try:
                found[name] = measured(subject)
            except CannotSay as reason:
                reasons[name] = str(reason)
        found[LAST[0]] = provenance.measured(subject, files)
        stages.at("Writing the page")
        text = _rendered(subject, found, reasons, files)
    return Report(text, found, reasons)


def _files(model: Path | None, table: Any, held_out: Any) -> list[File]:
    """Returns the files among model and tables; standard input and tables in memory are none."""
    tables = [t.path if isinstance(t, Source) else t for t in (table, held_out)]
    every = dict(zip(("model", "table", "held-out rows"), (model, *tables), strict=True))
    return [
        File.of(role, Path(path))
        for role, path in every.items()
        if isinstance(path, str | Path) and Path(path).is_file()
    ]


def _rendered(
    subject: Subject, found: dict[str, Any], reasons: dict[str, str], files: Sequence[File]
) -> str:
    named = {file.role: file.name for file in files}
    titles = {name: title for name, (title, _) in SECTIONS.items()} | {LAST[0]: LAST[1]}
    calibrated = found.get("calibration")
    template = environment().get_template("report.html")
    text: str = template.render(
        title=named.get("model", "a model"),
        judged=named.get("held-out rows" if subject.held_out else "table", "the table given"),
        subject=subject,
        titles=titles,
        found=found,
        reasons=reasons,
        findings=findings.of_sections(found),
        reach=_reach(calibrated) if calibrated else 1.0,
    )
    return text


def _reach(found: calibration.Calibration) -> float:
    """Returns the end of the vertical axis that all calibration charts share."""
    drawn = found.drawn
    return 1.3 * max(max(c.band, float(abs(c.curve).max())) for c in drawn)


def environment() -> Any:
    """Returns the templates, in which every text is escaped unless it is a drawing."""
    import jinja2

    env = jinja2.Environment(
        loader=jinja2.PackageLoader("nits.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    env.filters |= {
        "number": words.number,
        "fixed": words.fixed,
        "percent": words.percent,
        "short": words.short,
        "several": words.several,
        "listed": words.listed,
    }
    env.globals |= {
        "column_chart": column_charts.drawn,
        "special_chart": column_charts.specials,
        "pair_panels": pair_charts.panels,
        "every_pair": pair_charts.every_pair,
        "calibration_chart": checks.calibration,
        "roc": checks.roc,
        "seen": checks.seen,
        "copies_chart": checks.copies,
        "surprise_chart": checks.surprise,
        "training_chart": training.curves,
    }
    return env
