"""The tables of docs/questions.md, from results/questions-*.json."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import results
from markdown_table import minus, table
from results import Record


def ask_tables(folder: Path) -> str:
    """Returns a table for each kind of question that was measured."""
    parts = []
    for verb, (title, head, line) in KINDS.items():
        found = results.read(folder, f"questions-{verb}-*.json")
        if found:
            lines = [(one["table"], budget(one), *line(one["results"])) for one in found]
            parts += [f"{title}:", table(("table", "trained", *head), lines)]
    parts += times(folder)
    return "\n\n".join(parts) or "Nothing has been measured on this version yet."


def budget(one: Record) -> str:
    """Returns how long a model was trained."""
    members = "a lone network" if one["members"] == 1 else f"{one['members']} members"
    spent = f"{one['minutes']:g} minutes" if one["minutes"] else f"{one['steps']:,} steps"
    return f"{members}, {spent}"


def _boxes(found: Record) -> tuple[str, ...]:
    return (*(f"{found[q]:.3f}" for q in ("median", "p95", "p99", "max")),)


def _imputed(found: Record) -> tuple[str, ...]:
    mean = found["mean_error"]
    return (
        f"{mean['nits']:.3f}",
        f"{mean['forests']:.3f}",
        f"{found['ahead_on']} of {found['columns']}",
        banded(found),
        minus(f"{found['nats_per_hidden_entry']:.3f}"),
    )


def times(folder: Path) -> list[str]:
    """Returns a table of how long answers take, and what it is called."""
    lines = [
        (model, told, *(f"{1000 * one['seconds']['median']:.0f}" for one in verbs.values()))
        for record in results.read(folder, "answer-time.json")
        for model, each in record["results"].items()
        for told, verbs in each.items()
    ]
    head = ("model", "given", "1,000 rows", "a probability", "three quantiles")
    title = "Milliseconds of an answer with one condition, in the middle of 15 columns:"
    return [title, table(head, lines)] if lines else []


def banded(found: Record) -> str:
    """Returns the share of values in their bands, with its standard error where it is known."""
    share = found["coverage"]
    if "banded" not in found:
        return f"{100 * share:.1f} %"
    return f"{100 * share:.1f} ± {100 * math.sqrt(share * (1 - share) / found['banded']):.1f} %"


def _classes(found: Record) -> tuple[str, ...]:
    auc, loss = found["auc"], found["log_loss"]
    return (
        found["target"],
        *(f"{auc[who]:.4f}" for who in ("nits", "boosting")),
        *(f"{loss[who]:.3f}" for who in ("nits", "boosting")),
    )


def _pairs(found: Record) -> tuple[str, ...]:
    answers = found.get("answers", {}).values()
    by_answers = ("–", "–", "–")
    if answers:
        by_answers = (
            f"{found['answers_mean']:.4f}",
            f"{max(one['ks'] for one in answers):.4f}",
            f"{found['within_3_errors']} of {found['corners']}",
        )
    data = [found.get(of) for of in ("joint_to_data", "roles_to_data")]
    to_data = ["–" if one is None else f"{sum(one.values()) / len(one):.4f}" for one in data]
    roles = (f"{found['mean']:.4f}", f"{max(found['ks'].values()):.4f}")
    return (*by_answers, *roles, *to_data, f"{found['two_halves']:.4f}")


def _brute(found: Record) -> tuple[str, ...]:
    return (
        f"{found['rows']:,}",
        f"{found['within_3_errors']} of {found['questions']}",
        f"{found['mean_square']:.2f}",
        f"{found['worst']:.1f}",
        minus(f"{found['error']:.1e}"),
    )


Line = Callable[[Record], tuple[str, ...]]
KINDS: dict[str, tuple[str, tuple[str, ...], Line]] = {
    "boxes": (
        "q-errors of the probability of 200 random boxes of one to five columns, against the share "
        "of all rows",
        ("median", "95 %", "99 %", "greatest"),
        _boxes,
    ),
    "imputation": (
        "A tenth of the entries of 500 test rows hidden: mean absolute error of medians in "
        "standard deviations, beside random forests (IterativeImputer, 50 trees, 3 rounds, 5,000 "
        "rows)",
        ("error", "forests", "columns ahead", "in 90 % bands", "nats per hidden entry"),
        _imputed,
    ),
    "classes": (
        "A class given all other columns, by the joint model and by HistGradientBoosting",
        ("class", "AUC", "AUC, boosting", "log loss", "log loss, boosting"),
        _classes,
    ),
    "brute_force": (
        "Probabilities of ranges given ranges of other columns, for toy densities, beside the "
        "share of the model's own rows that meet them; misses are in standard errors of both "
        "together",
        (
            "rows",
            "within 3 errors",
            "mean square of misses",
            "greatest miss",
            "median error of answers",
        ),
        _brute,
    ),
    "marginals": (
        "Ten pairs of columns with all others left out, against 10⁶ rows of the joint model: "
        "distance of joint cdfs, mean and worst pair. *Answers* are `model.given().probability` at "
        "random corners; *roles* is the companion alone, which is only a proposal to these",
        (
            "answers",
            "worst",
            "within 3 errors",
            "roles",
            "worst",
            "joint to data",
            "roles to data",
            "two halves of the rows",
        ),
        _pairs,
    ),
}
