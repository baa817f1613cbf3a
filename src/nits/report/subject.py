"""What a report is about: a model, some rows of a table, and as many rows that the model drew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.chunks import slices
from nits.tables import scoring, zones
from nits.tables.columns import Column
from nits.tables.estimator import NITSDensity
from nits.tables.frames import Frame
from nits.tables.schema import Encoded
from nits.tables.scoring import SCORED_AT_ONCE

Numbers = NDArray[np.float64]

ROWS = 5000
"""Rows of a longer table that a report looks at."""

REFERENCE = 20_000
"""Training rows to which samples are compared, one by one."""


class CannotSay(ValueError):
    """Why a section cannot be computed, as a sentence."""


@dataclass(frozen=True)
class Some:
    """Some rows of a table.

    index: Their numbers in the table, ascending.
    total: How many rows the table has.
    """

    frame: Frame
    index: NDArray[np.int64]
    total: int
    seed: int

    @classmethod
    def of(cls, frame: Frame, most: int, seed: int) -> Some:
        """Returns all rows, or as many as allowed, drawn with a seed."""
        total = len(frame)
        if total <= most:
            return cls(frame, np.arange(total), total, seed)
        index = np.sort(np.random.default_rng(seed).choice(total, most, replace=False))
        return cls(frame.take(index), index, total, seed)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def words(self) -> str:
        """Which rows they are, in words."""
        if len(self) == self.total:
            return f"all {self.total:,} rows"
        return f"{len(self):,} of {self.total:,} rows (seed {self.seed})"


@dataclass(frozen=True)
class Subject:
    """A model beside rows of a table.

    rows: What the model is judged by.
    table: Rows of the table given: the same, unless held-out rows were given, too.
    held_out: Whether `rows` are such, and the model learned from `table`.
    drawn: As many rows as `rows`, drawn from the model; where it has a context, given theirs.
    """

    model: NITSDensity
    rows: Some
    table: Some
    held_out: bool
    drawn: Frame
    seed: int

    @classmethod
    def of(
        cls, model: NITSDensity, table: Any, held_out: Any = None, seed: int = 0, rows: int = ROWS
    ) -> Subject:
        """Reads tables and draws rows.

        held_out: A table of rows that the model did not learn from; it is judged by them, and
            `table` is what it learned from.
        """
        every = zones.read(table)
        judged = Some.of(every if held_out is None else zones.read(held_out), rows, seed)
        if len(judged) < 2:
            raise ValueError(
                f"a report needs a table of at least 2 rows, but this has {len(judged)}."
            )
        drawn = _drawn(model, judged.frame, seed)
        given = held_out is not None
        return cls(model, judged, Some.of(every, REFERENCE, seed), given, drawn, seed)

    @property
    def columns(self) -> Sequence[Column]:
        """The columns that are modelled."""
        return self.model.schema_.columns

    @property
    def given(self) -> Sequence[Column]:
        """The columns that are given."""
        return self.model.context_schema_.columns

    @cached_property
    def coded(self) -> Encoded:
        """The rows as numbers."""
        return self.model.schema_.encode(self.rows.frame)

    @cached_property
    def context(self) -> torch.Tensor | None:
        """What the networks read of the columns that are given."""
        return self.model._context(self.model._given(self.rows.frame))

    @cached_property
    def model_shares(self) -> Numbers:
        """The network's log-probability of each number, shape (N, D)."""
        return by_rows(
            self.model.model_.log_prob_per_column, self.coded.numbers, self.context
        ).astype(np.float64)

    @cached_property
    def shares(self) -> Numbers:
        """The log-density of each entry given those before it, as `score_samples` has it."""
        model, given = self.model, self.model._given(self.rows.frame)
        with torch.no_grad():
            beyond = scoring.log_beyond(model, model.model_, self.coded, given)
        return self.coded.units(self.model_shares, beyond)


def by_rows(
    function: Any, numbers: NDArray[np.float32], context: torch.Tensor | None
) -> NDArray[Any]:
    """Applies a function of rows and their context to some rows at a time."""
    x = torch.from_numpy(numbers)
    with torch.no_grad():
        parts = [
            function(x[some], None if context is None else context[some]).double()
            for some in slices(len(x), SCORED_AT_ONCE)
        ]
    found: NDArray[Any] = torch.cat(parts).numpy()
    return found


def _drawn(model: NITSDensity, frame: Frame, seed: int) -> Frame:
    """Draws as many rows as a table has, with its columns that are given."""
    if not model.context_schema_.columns:
        return zones.read(model.sample(len(frame), random_state=seed))
    names = model.context_schema_.names
    given = Frame({name: frame.columns[name] for name in names}, frame.form)
    drawn = zones.read(model.sample(1, random_state=seed, given=zones.write(given)))
    return Frame({**drawn.columns, **given.columns}, drawn.form)
