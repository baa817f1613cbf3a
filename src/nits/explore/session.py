"""What the explorer answers: a description of the model, panels, rows, probabilities, one row."""

from __future__ import annotations

import io
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from pyarrow import csv

from nits.explore import own_row, shapes, told
from nits.explore.draws import Draws, draws, kept
from nits.explore.shapes import Joint, Shape
from nits.explore.views import Axis, View, spelled, view
from nits.tables import csv_safe, zones
from nits.tables.frames import Frame, Values
from nits.tables.questions import asked
from nits.tables.questions.answer import Answer
from nits.tables.questions.conditions import Conditions, Value

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

BASE = 32768
"""Rows that are drawn without conditions when the page is opened."""

DRAFT, FINE = 512, 4096
"""Particles of an answer while conditions are being moved, and when they rest."""

QUICK = 0.05
"""Seconds that particles may take while conditions are being moved; else there are fewer."""

ENOUGH = 0.5
"""Part of these numbers of rows that is enough, where rows are exact."""

SHOWN = 12
"""Rows that the page shows."""

MOST_ROWS = 100_000
"""Rows of a download."""


@dataclass(frozen=True)
class Panel:
    """A column, as the page shows it: `low` to `marks` are those of an axis, see `Axis`."""

    name: str
    kind: str
    optional: bool
    shape: Shape
    levels: list[str] | None
    low: float
    high: float
    log: bool
    what: str
    marks: list[float]
    whole: bool
    step: float


@dataclass(frozen=True)
class Description:
    """A model.

    rows: How many rows the table has that came with it.
    order: The columns in the order in which they are modelled, if there is just one.
    """

    title: str
    panels: list[Panel]
    rows: int
    order: list[str] | None
    sample: list[list[str | None]]


@dataclass(frozen=True)
class Panels:
    """All columns under conditions.

    evidence: The probability of the conditions, or the density if `is_density`, and its error.
    """

    shapes: list[Shape]
    joint: Joint | None
    sample: list[list[str | None]]
    drawn: int
    ess: float
    exact: bool
    evidence: tuple[float, float]
    is_density: bool


@dataclass(frozen=True)
class Chance:
    """A probability; its effective sample size is None where it is exact."""

    probability: float
    error: float
    ess: float | None


class Session:
    """A model, and perhaps a table, to explore.

    title: What the page calls it.
    base: How many rows are drawn without conditions.
    """

    def __init__(
        self,
        estimator: NITSDensity,
        table: Any = None,
        *,
        title: str = "model",
        base: int = BASE,
    ) -> None:
        if estimator.context_schema_.columns:
            names = ", ".join(estimator.context_schema_.names)
            raise ValueError(
                f"nits explore takes a joint model, but this one was fitted given {names}; "
                "fit it without --context."
            )
        self.estimator, self.title = estimator, title
        self.columns = estimator.schema_.columns
        self.base = draws(estimator, asked.query(estimator, {}), base)
        self.draft = self._affordable()
        self.views: list[View] = [view(c, self.base.values[c.name]) for c in self.columns]
        self.plain = [shapes.shape(one, self.base, i) for i, one in enumerate(self.views)]
        self.frame: Frame | None = None if table is None else zones.read(table)
        if self.frame is not None:
            _refuse_lacking(self.frame, estimator.schema_.names)

    def _affordable(self) -> int:
        """Returns how many particles are quick enough."""
        start = time.process_time()
        draws(self.estimator, asked.query(self.estimator, {}), DRAFT)
        spent = time.process_time() - start
        return max(DRAFT // 4, min(DRAFT, int(DRAFT * QUICK / spent)))

    def describe(self) -> Description:
        """Returns the columns without conditions, and what is fixed about them."""
        order = self.estimator.order_
        names = self.estimator.schema_.names
        return Description(
            self.title,
            [self._panel(i, one) for i, one in enumerate(self.views)],
            0 if self.frame is None else len(self.frame),
            None if order is None else [names[i] for i in order],
            self._sample(self.base),
        )

    def _panel(self, i: int, one: View) -> Panel:
        column, own = one.column, self.plain[i]
        kind, optional = column.kind, column.optional
        if isinstance(one, Axis):
            fixed = (one.low, one.high, one.log, one.what, one.marks.tolist(), one.whole, one.step)
            return Panel(column.name, kind, optional, own, None, *fixed)
        levels = [spelled(level) for level in one.levels]
        return Panel(
            column.name, kind, optional, own, levels, 0.0, 1.0, False, "level", [], True, 0.0
        )

    def panels(
        self, given: Any, *, fine: bool = False, pair: tuple[int, int] | None = None
    ) -> Panels:
        """Returns all columns under conditions, from one cloud of draws.

        fine: Whether there is time for many draws.
        pair: Two columns to show together.
        """
        told_of = told.conditions(self.views, given)
        drawn = self._drawn(told_of, FINE if fine else self.draft)
        each = self.plain
        if told_of:
            each = [
                shapes.shape(one, drawn, i, told.within(one, told_of.get(one.column.name, [])))
                for i, one in enumerate(self.views)
            ]
        return Panels(
            each,
            None if pair is None else self._joint(drawn, pair),
            self._sample(drawn, told_of),
            len(drawn.weights),
            drawn.ess,
            drawn.exact,
            drawn.evidence(),
            self._is_density(told_of),
        )

    def _drawn(self, told_of: Conditions, total: int) -> Draws:
        """Returns rows under conditions: of those drawn already, if enough of them meet these."""
        if not told_of:
            return self.base
        query = asked.query(self.estimator, told_of)
        found = kept(self.estimator, self.base, query)
        if found.ess >= ENOUGH * total:
            return found
        walked = draws(self.estimator, query, total)
        return walked if walked.ess > found.ess else found

    def _joint(self, drawn: Draws, pair: tuple[int, int]) -> Joint:
        count = len(self.views)
        if not all(type(i) is int and 0 <= i < count for i in pair):
            raise ValueError(f"a joint view has two columns, from 0 to {count - 1}; reload.")
        return shapes.joint((self.views[pair[0]], self.views[pair[1]]), drawn, pair)

    def _is_density(self, told_of: Conditions) -> bool:
        """Returns whether a value of a real column is given, which has a density."""
        kinds = {column.name: column.kind for column in self.columns}
        pairs = told_of.items()
        return any(
            isinstance(c, Value) and kinds[n] == "continuous" for n, all_ in pairs for c in all_
        )

    def _sample(self, drawn: Draws, told_of: Conditions | None = None) -> list[list[str | None]]:
        """Returns some of the rows; a value that is given stands as it is."""
        some = drawn.chosen(SHOWN)
        columns: list[list[str | None]] = []
        for column in self.columns:
            one = (told_of or {}).get(column.name, [None])[0]
            if isinstance(one, Value):
                columns.append([spelled(one.value)] * SHOWN)
            else:
                columns.append(_spelled(drawn.values[column.name].take(some)))
        return [list(row) for row in zip(*columns, strict=True)]

    def rows_csv(self, given: Any, count: Any, seed: int = 0) -> bytes:
        """Returns rows under conditions as CSV, in which no text is taken for a formula."""
        if type(count) is not int or not 1 <= count <= MOST_ROWS:
            raise ValueError(f"a download has 1 to {MOST_ROWS} rows, but {count!r:.40} are asked.")
        found = self._answer(given).sample(count, random_state=seed)
        buffer = io.BytesIO()
        csv.write_csv(csv_safe.safe(_arrow(found, self.estimator.names_)), buffer)
        return buffer.getvalue()

    def chance(self, given: Any, event: Any) -> Chance:
        """Returns the probability of an event, a text such as "price > 5000", under conditions."""
        if not isinstance(event, str) or not event.strip():
            raise ValueError("an event must be a text, such as \"delay > 30 and carrier == 'UA'\".")
        if len(event) > told.TOO_LONG * 10:
            raise ValueError(f"an event has at most {told.TOO_LONG * 10} characters; shorten it.")
        found = self._answer(given).probability(event)
        ess = None if math.isinf(found.ess) else float(found.ess)
        return Chance(float(found.estimate), float(found.error), ess)

    def _answer(self, given: Any) -> Answer:
        return Answer(self.estimator, told.conditions(self.views, given))

    def row(self, said: Any) -> own_row.OwnRow:
        """Returns what the model says of a row, given as texts by column."""
        if not isinstance(said, dict):
            raise ValueError("a row must be an object by column.")
        return own_row.own_row(self.estimator, self.views, said)

    def picked(self, number: Any) -> dict[str, str | None]:
        """Returns a row of the table as texts; the first is number 1."""
        count = 0 if self.frame is None else len(self.frame)
        if self.frame is None:
            raise ValueError("there is no table to pick a row from; name one after the model.")
        if type(number) is not int or not 1 <= number <= count:
            raise ValueError(f"the table has rows 1 to {count}, but {number!r:.40} is asked.")
        at = np.array([number - 1])
        found = {c.name: self.frame.columns[c.name].take(at) for c in self.columns}
        return {name: _spelled(values)[0] for name, values in found.items()}


def _arrow(table: Any, names: list[str]) -> Any:
    """Returns a table of any library as one of Arrow."""
    if isinstance(table, pyarrow.Table):
        return table
    if isinstance(table, np.ndarray):
        return pyarrow.table(dict(zip(names, table.T, strict=True)))
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    return pyarrow.Table.from_pandas(table, preserve_index=False)


def _spelled(values: Values) -> list[str | None]:
    pairs = zip(values.array, values.missing, strict=True)
    return [None if hole else spelled(value) for value, hole in pairs]


def _refuse_lacking(frame: Frame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"the table must have the model's column {name!r}, but has "
                f"{', '.join(list(frame.columns)[:12])}."
            )
