"""A report as a document: how it is asked for, run section by section, written and shown."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nits import atomic
from nits.report import words
from nits.report.charts import checks, training
from nits.report.charts import dependence as pair_charts
from nits.report.charts import marginals as column_charts
from nits.report.charts import pictures as picture_charts
from nits.report.provenance import File
from nits.report.subject import ROWS, CannotSay
from nits.training.progress import Drawn

Sections = Mapping[str, tuple[str, Callable[[Any], Any]]]
"""The title of each section, and what computes it."""

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


class Stages(Drawn):
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


def measured(
    sections: Sections, subject: Any, stages: Stages
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns what each section found, and why those that could not be computed could not."""
    found: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, (title, section) in sections.items():
        stages.at(title)
        try:
            found[name] = section(subject)
        except CannotSay as reason:
            reasons[name] = str(reason)
    return found, reasons


def titles(sections: Sections) -> dict[str, str]:
    """Returns the titles of all sections, that of the origin last."""
    return {name: title for name, (title, _) in sections.items()} | {LAST[0]: LAST[1]}


def files(model: Path | None, table: Any, held_out: Any = None) -> list[File]:
    """Returns the files among model and tables; standard input and tables in memory are none."""
    tables = [t.path if isinstance(t, Source) else t for t in (table, held_out)]
    every = dict(zip(("model", "table", "held-out rows"), (model, *tables), strict=True))
    return [
        File.of(role, Path(path))
        for role, path in every.items()
        if isinstance(path, str | Path) and Path(path).is_file()
    ]


def rendered(template: str, about: Mapping[str, Any]) -> str:
    """Returns the page of a template."""
    text: str = environment().get_template(template).render(about)
    return text


def _visible(value: Any) -> Any:
    """Returns what a template shows, without control characters if it is a text of the table."""
    return words.visible(value) if type(value) is str else value


def environment() -> Any:
    """Returns the templates, in which every text is escaped unless it is a drawing."""
    import jinja2

    env = jinja2.Environment(
        loader=jinja2.PackageLoader("nits.report"),
        autoescape=True,
        finalize=_visible,
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
        "values_chart": picture_charts.values,
    }
    return env
