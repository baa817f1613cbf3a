"""The section about the table: what each column was taken for and why, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass

from nits.report.subject import Subject


@dataclass(frozen=True)
class Taken:
    """What a column was taken for.

    kind: What it is modelled as; "given" or "set aside" for those that are not.
    reason: Why.
    trained_missing, missing: Shares of missing values, in training and in the rows of the report.
    unseen: Entries of the rows that were never seen in training, though they could be.
    """

    name: str
    kind: str
    reason: str
    trained_missing: float | None
    missing: float | None
    unseen: int


@dataclass(frozen=True)
class Overview:
    """The columns, in the order of modelled, given and set aside ones.

    training_rows: How many rows the model learned from; None in old files.
    extra: Columns of the table that the model knows nothing of.
    """

    columns: tuple[Taken, ...]
    training_rows: int | None
    extra: tuple[str, ...]


def measured(subject: Subject) -> Overview:
    """Returns what was decided when the model was fitted, beside the rows of the report."""
    frame, model = subject.rows.frame, subject.model
    unseen = subject.coded.unseen.sum(0).tolist()
    found = []
    for column, count in zip(subject.columns, unseen, strict=True):
        found.append((column.facts, column.kind, int(count)))
    found += [(column.facts, f"given, {column.kind}", 0) for column in subject.given]
    found += [(facts, "set aside", 0) for facts, *_ in model.idle_.columns.values()]
    taken = []
    for facts, kind, count in found:
        total = facts.rows + facts.holes
        values = frame.columns.get(facts.name)
        missing = None if values is None else float(values.missing.mean())
        trained = facts.holes / total if facts.rows else None
        taken.append(Taken(facts.name, kind, facts.reason, trained, missing, count))
    first = subject.columns[0].facts
    known = {facts.name for facts, *_ in found}
    return Overview(
        tuple(taken),
        first.rows + first.holes if first.rows else None,
        tuple(name for name in frame.columns if name not in known),
    )
