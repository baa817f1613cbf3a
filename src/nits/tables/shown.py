"""How a fitted model of a table is shown: a report on it, and a few lines in a notebook."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from sklearn.utils.validation import check_is_fitted

from nits.tables import told

if TYPE_CHECKING:
    from nits.report.document import Report
    from nits.tables.estimator import NITSDensity

MOST_COLUMNS = 12
"""Columns that a notebook lists."""


class Shown:
    """The methods that show a model."""

    def report(
        self, X: Any, held_out: Any = None, *, random_state: int = 0, verbose: bool = False
    ) -> Report:
        """Returns a report on the model beside a table: a page of HTML (docs/report.md).

        X: A table of the columns that the model knows, such as the one that it was fitted on.
        held_out: Rows that it did not learn from, by which it is judged in place of X.
        """
        check_is_fitted(self)
        page = import_module("nits.report.page")  # a room above this one
        options = import_module("nits.report.document").Options
        found: Report = page.of_table(
            self, X, held_out, options(seed=random_state, quiet=not verbose)
        )
        return found

    def _html_repr(self) -> str:
        """Returns what a notebook shows: what was learned, or how it would be."""
        if not hasattr(self, "model_"):
            inherited: str = super()._html_repr()  # type: ignore[misc]
            return inherited
        return summary(cast("NITSDensity", self))


def summary(model: NITSDensity) -> str:
    """Returns a fitted model in a few lines of HTML."""
    columns, given = model.schema_.columns, model.context_schema_.names
    facts = [f"{len(columns)} columns"]
    if given:
        facts.append(f"given {', '.join(given[:MOST_COLUMNS])}")
    if model.held_out_ is not None:
        figure = told.figure(model.held_out_, model.held_out_error_)
        facts.append(f"{figure} nats per row held out")
    facts += [f"{len(model.members_)} members"] if len(model.members_) > 1 else []
    facts += [f"{len(model.idle_.columns)} set aside"] if model.idle_.columns else []
    rows = "".join(
        f"<tr><th>{escape(column.name)}</th><td>{escape(column.kind)}</td>"
        f"<td>{escape(column.reason)}</td></tr>"
        for column in columns[:MOST_COLUMNS]
    )
    rest = len(columns) - MOST_COLUMNS
    more = f"<p>… and {rest} more columns</p>" if rest > 0 else ""
    return (
        f"<div><p><strong>{escape(type(model).__name__)}</strong> · {escape(' · '.join(facts))}</p>"
        f"<table><tbody>{rows}</tbody></table>{more}</div>"
    )
