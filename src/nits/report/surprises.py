"""The section about surprising rows: those of least density, and the entries that make them so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nits.report import words
from nits.report.subject import Subject
from nits.tables.frames import Frame

Numbers = NDArray[np.float64]

MOST_ROWS = 10
MOST_ENTRIES = 4
LEAST_NATS = 0.5
"""By which an entry must lie below its column's mean to be named."""


@dataclass(frozen=True)
class Entry:
    """An entry of a row: by how much its log-density lies below its column's mean.

    note: "never seen in training" or "ruled out", if it is.
    """

    name: str
    value: str
    nats: float
    below: float
    note: str


@dataclass(frozen=True)
class Row:
    """A surprising row: its number in the table, counted from 1, and its log-density."""

    number: int
    nats: float
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Surprises:
    """The rows of least density, the most surprising first.

    nats: Log-densities of all rows that were looked at, where they are finite.
    typical: The middle one.
    """

    rows: tuple[Row, ...]
    nats: Numbers
    typical: float


def measured(subject: Subject) -> Surprises:
    """Returns the rows of least density among those of the report."""
    shares = subject.shares
    total = shares.sum(1)
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(shares), shares, np.nan)
    known = ~np.isnan(finite).all(0)
    usual = np.zeros(shares.shape[1])
    usual[known] = np.nanmean(finite[:, known], 0)
    worst = np.argsort(total, kind="stable")[:MOST_ROWS].tolist()
    nats = total[np.isfinite(total)]
    typical = float(np.median(nats)) if len(nats) else float("nan")
    return Surprises(tuple(_row(subject, i, usual) for i in worst), nats, typical)


def _row(subject: Subject, i: int, usual: Numbers) -> Row:
    shares, coded = subject.shares[i], subject.coded
    below = usual - shares
    entries = []
    for j in np.argsort(-below)[:MOST_ENTRIES].tolist():
        if below[j] < LEAST_NATS:
            continue
        name = subject.columns[j].name
        unseen, impossible = bool(coded.unseen[i, j]), not np.isfinite(shares[j])
        note = "ruled out" if impossible else "never seen in training" if unseen else ""
        value = words.value(entry(subject.rows.frame, name, i))
        entries.append(Entry(name, value, float(shares[j]), float(below[j]), note))
    return Row(int(subject.rows.index[i]) + 1, float(shares.sum()), tuple(entries))


def entry(frame: Frame, name: str, i: int) -> object:
    """Returns the value of a row, None if it is missing."""
    values = frame.columns[name]
    return None if values.missing[i] else values.array[i]
