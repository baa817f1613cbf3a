"""Guesses of the modelled columns by trees, which networks read beside the columns that are given.

Trees find steps and interactions that small networks learn slowly. Rows are cut into K folds, R
times. The guess of a training row comes from trees that have not seen it, so that networks learn
how far guesses can be trusted; that of a new row is the mean over all folds of all cuts:

    g(c) = 1/(K R) Σ_k,r T_kr(c)                                                             (44)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from nits.heads import Continuous
from nits.heads.head import Head
from nits.model.reading import Reading
from nits.tables import networks, trees
from nits.tables.columns import Column
from nits.tables.columns.numeric import Numeric
from nits.tables.defaults import MANY
from nits.tables.preparing import READ_BY
from nits.tables.trees import Numbers, Trees
from nits.weights.allowance import Allowance, size

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

CLASSES = 8
"""The most categories of a column that is guessed: of each, whether it is that."""

LEAST_KNOWN = 50
"""Values of a column that is guessed."""


class Guessed(nn.Module):
    """What networks read of a context: features of its columns, and of guesses from these.

    It takes the place of a `Reading` of the columns.
    """

    def __init__(self, columns: Reading, grown: Trees, guesses: Reading) -> None:
        super().__init__()
        self.columns, self.trees, self.guesses = columns, grown, guesses
        self.straight = networks.no_hats(columns.heads)

    @property
    def heads(self) -> tuple[Head, ...]:
        """Those of the columns, and of the guesses."""
        return (*self.columns.heads, *self.guesses.heads)

    @property
    def knots(self) -> Tensor:
        """Of all hats."""
        return torch.cat([self.columns.knots, self.guesses.knots])

    def of_rows(self, rows: Tensor) -> Tensor:
        """Maps the numbers of columns to features, both with a row for each row.

        Training rows have their guesses in further columns.
        """
        count = len(self.columns.heads)
        features = self.columns.of_rows(rows[:, :count])
        guesses = rows[:, count:]
        if not guesses.shape[1]:
            guesses = self.trees(features[:, self.straight])
        return torch.cat([features, self.guesses.of_rows(guesses)], 1)


def wanted(estimator: NITSDensity, rows: int) -> bool:
    """Returns whether to grow trees: if the user says so, or where evidence is to decide.

    It is, unless the table is large, or a lone network is trained.
    """
    if estimator.trees is None:
        alone = estimator.max_steps is not None or estimator.members is not None
        return bool(estimator.context) and not alone and rows < MANY
    return estimator.trees


def refuse_without_context(estimator: NITSDensity, *, in_memory: bool) -> None:
    """Refuses trees where nothing is given that they could read, and beyond memory."""
    if estimator.trees and not (estimator.context and in_memory):
        raise ValueError(
            "trees need columns that are given, in a table that fits into memory, but "
            f"{'the table is read in pieces' if estimator.context else 'no context is named'}; "
            f"{'leave trees out' if estimator.context else 'name a context'}."
        )


def added(
    estimator: NITSDensity,
    given: Tensor,
    numbers: Numbers,
    weight: Numbers | None,
    knots: int,
    seed: int,
) -> Tensor:
    """Has networks read guesses, if they are wanted, and returns the context of training rows.

    numbers: Of the modelled columns.
    knots: Hats of each guess.
    """
    reading = estimator.context_reading_
    if not isinstance(reading, Reading) or not wanted(estimator, len(given)):
        return given
    targets = [_standard(target) for target in _targets(estimator.schema_.columns, numbers)]
    if not targets:
        return given
    features = reading.of_rows(given)[:, networks.no_hats(reading.heads)]
    grown, guesses = trees.grown(features.double().numpy(), np.stack(targets, 1), weight, seed)
    found = read(len(targets), knots)
    found.start_at(torch.from_numpy(guesses).t())
    estimator.context_reading_ = Guessed(reading, grown, found)
    return torch.cat([given, torch.from_numpy(guesses).to(given)], 1)


def read(count: int, knots: int) -> Reading:
    """Returns how so many guesses are read."""
    return Reading([Continuous(hidden=READ_BY, knots=knots)] * count)


def rebuilt(
    columns: Reading, about: dict[str, Any], knots: Sequence[int], allowance: Allowance
) -> Guessed:
    """Returns what a file describes, with other numbers; see `Trees.description`."""
    most = allowance.numbers
    sizes = {name: size(about[name], name, most) for name in ("nodes", "roots", "outputs")}
    heads = [Continuous(hidden=READ_BY, knots=count) for count in knots]
    if len(heads) != sizes["outputs"]:
        raise ValueError("it has not as many guesses as trees for them")
    return Guessed(columns, Trees(**sizes), Reading(heads))


def _standard(target: Numbers) -> Numbers:
    """Returns a target in standard deviations from its mean, as networks want what they read."""
    spread = float(np.nanstd(target))
    return (target - np.nanmean(target)) / (spread if spread > 0 else 1.0)


def _targets(columns: Sequence[Column], numbers: Numbers) -> Iterator[Numbers]:
    """Yields what is guessed of each column: its numbers, or whether it is a category."""
    for column, values in zip(columns, numbers.T, strict=True):
        if isinstance(column, Numeric):
            hole = np.float32(column.missing_number) if column.optional else np.nan
            found = np.where(values == hole, np.nan, values).astype(np.float64)
            if np.count_nonzero(~np.isnan(found)) >= LEAST_KNOWN:
                yield found
            continue
        codes = np.unique(values)
        if len(codes) <= CLASSES and len(values) >= LEAST_KNOWN:
            yield from ((values == code).astype(np.float64) for code in codes[1:])
