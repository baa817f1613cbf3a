"""The tables of docs/roles.md, from results/answers-*.json."""

from __future__ import annotations

from pathlib import Path

import results
from answers import BASE, CHANGES
from markdown_table import minus, table
from results import Record

QUESTIONS = {
    "joint": "all columns",
    "half": "a half given the other half",
    "pair": "two columns, the others absent",
}


def answers_tables(folder: Path) -> str:
    """Returns a table of trials for each data set, and of test rows for each that has some."""
    parts = [_trials(search) for search in results.read(folder, "answers-trials-*.json")]
    for record in results.read(folder, "answers-*-half.json"):
        count = len(record["seeds"])
        networks = "one network" if count == 1 else f"{count} networks, mixed"
        spent = sum(one["core_seconds"] for one in record["networks"]) / 60
        budget = f"{record['minutes']:g} minutes each, {spent:.1f} core minutes in all"
        if any(one["started_from"] for one in record["networks"]):
            budget += ", from joint networks"
        if record.get("weighted"):
            budget += f", trained on a weighted part of {record['training_rows']:,} rows"
        parts += [f"{record['dataset'].upper()}, {networks}, {budget}:", _half(record)]
    return "\n\n".join(parts) or "Nothing has been measured on this version yet."


def _trials(search: Record) -> str:
    found = search["results"]
    steps = min(one["steps"] for one in found.values())
    head = (f"{search['dataset']}, {steps:,} steps", *QUESTIONS.values(), "core seconds")
    lines = [
        (
            change,
            *(_nats(found, change, question) for question in QUESTIONS),
            f"{found[change]['core_seconds']:.0f}",
        )
        for change in CHANGES
        if change in found
    ]
    return table(head, lines)


def _nats(found: Record, change: str, question: str) -> str:
    """Returns the nats of a change, and by how much it is ahead of the base."""
    one, base = (found.get(name, {}).get("validation", {}) for name in (change, BASE))
    if question not in one:
        return "–"
    value = one[question]["nats"]
    ahead = change != BASE and question in base
    return minus(f"{value:.3f}" + (f" ({value - base[question]['nats']:+.3f})" if ahead else ""))


def _half(record: Record) -> str:
    lines = [
        (name, *(_figure(record[part][question]) for part in ("validation", "test")))
        for question, name in QUESTIONS.items()
    ]
    return table(("nats", "validation", "test"), lines)


def _figure(one: Record) -> str:
    outside = f" ({one['rows_outside']} of {one['rows']:,} rows outside)"
    figure = minus(f"{one['nats']:.3f} ± {one['two_standard_errors']:.3f}")
    return figure + (outside if one["rows_outside"] else "")
