"""Fits a model to a table beyond memory: a pass to see what it is, then training from its pieces.

Memory is set by the networks, by some 200,000 rows and those that are held out, and by the buffer
of `nits.training.lanes`, not by the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.blocks import groups
from nits.tables import blurred_training, orders, preparing, resume, zones
from nits.tables.schema import Schema
from nits.tables.stream import decide, scan
from nits.tables.stream.source import Source, opened
from nits.training.rows import Rows
from nits.training.streamed import Piece, Streamed, held_out

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

MEMBERS = 2
"""Networks of a table that does not fit into memory, unless the user names a number."""


class Coded:
    """The pieces of a table as numbers; see `nits.training.streamed.Pieces`."""

    def __init__(self, source: Source, schema: Schema, given: Schema) -> None:
        self.source, self.schema, self.given = source, schema, given
        self.sizes = source.sizes

    def read(self, piece: int) -> Piece:
        """Returns the rows of a piece as numbers."""
        names = list(dict.fromkeys([*self.schema.names, *self.given.names]))
        x = torch.empty(self.sizes[piece], len(self.schema.columns))
        context = torch.empty(self.sizes[piece], len(self.given.columns))
        done = 0
        for table in self.source.read(piece, names):
            frame, rows = zones.read(table), slice(done, done + table.num_rows)
            x[rows] = torch.from_numpy(self.schema.numbers(frame)[0])
            if self.given.columns:
                context[rows] = torch.from_numpy(self.given.numbers(frame)[0])
            done = rows.stop
        return Piece(x[:done], context[:done] if self.given.columns else None)

    def digest(self) -> str:
        """Returns a checksum of the files."""
        return self.source.digest()


class Units:
    """What to add to the log-density of kept rows to have it in the table's units.

    Rows are asked for by their positions in the table.
    """

    def __init__(self, units: NDArray[np.float64], places: NDArray[np.int64]) -> None:
        self.units, self.places = units, places

    def __getitem__(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.units[np.searchsorted(self.places, index)]


def fit(estimator: NITSDensity, table: Any, weight: Any) -> None:
    """Learns the density of a table of many files, which may be open already."""
    _refuse(estimator, weight)
    if isinstance(table, Source):
        learn(estimator, table)
        return
    with opened(table) as source:
        learn(estimator, source)


def learn(estimator: NITSDensity, source: Source) -> None:
    """Learns the density of a table that was opened."""
    seed = resume.chosen(estimator)
    alone = 1 if estimator.max_steps is not None else MEMBERS
    number = estimator.members or alone
    cuts = held_out(len(source), number, estimator.validation_fraction, seed)
    wanted = torch.cat(cuts).sort().values.numpy()
    scanned = scan.scanned(source, wanted, engine=estimator.engine, progress=estimator.verbose)
    frame = scanned.kept
    estimator.n_features_in_ = len(frame.columns)
    estimator.feature_names_in_ = np.array(list(frame.columns), dtype=object)
    preparing.refuse_too_wide(estimator, frame, len(source))
    context = preparing.given_names(estimator, list(frame.columns))
    e = estimator
    decided = decide.infer(scanned, e.kinds, e.support, e.pool_below, context, e.engine)
    preparing.settle(estimator, *decided, list(frame.columns))
    heads = [column.head(preparing.READ_BY, 0) for column in estimator.schema_.columns]
    plan = preparing.plan(estimator, len(source), len(heads), len(list(groups(heads))))
    numbers, units = estimator.schema_.numbers(frame)
    given = estimator._given(frame)
    preparing.read(estimator, given, plan.knots)
    reading = estimator.context_reading_
    kept = Rows(
        torch.from_numpy(numbers),
        None if reading is None else given,
        read=None if reading is None else reading.of_rows,
    )
    places = torch.from_numpy(scanned.places)
    pieces = Coded(source, estimator.schema_, estimator.context_schema_)
    rows = Streamed(pieces, kept, places, torch.from_numpy(scanned.even))
    estimator.orders_ = [None]
    blur = blurred_training.prepared(estimator, frame, given, None, plan)
    del frame, scanned
    estimator._learn(rows, Units(units, places.numpy()), blur, plan, seed)


def _refuse(estimator: NITSDensity, weight: Any) -> None:
    """Refuses what needs all rows in memory."""
    tried = estimator.order in (orders.SEARCH, orders.SEVERAL)
    wanted = {
        "sample_weight=": weight is not None,
        "whiten=True": estimator.whiten,
        f"order={estimator.order!r}": isinstance(estimator.order, str) and tried,
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise ValueError(
                f"{name} needs a table in memory, but this one is read in pieces; leave it out, "
                "or read the table first."
            )
