"""Writes the tables of results in README.md, benchmarks/README.md and docs/ from results/*.json.

python benchmarks/tables.py            writes what stands between the markers
python benchmarks/tables.py --check    exits 1 if that differs from the results
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import ablation
import outliers
import results
from answers_table import answers_tables
from ask_table import ask_tables
from campaign_table import campaign_tables
from image_table import image_tables
from markdown_table import minus, table, with_rows_outside
from results import Record
from scale_table import scale_tables
from speed_table import speed_tables
from suite_page import suite_tables

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
OURS = "nits-mlp"
ALL_OURS = (OURS, "nits-conv", "nits-window", "nits-mixture")
RACED = ("two-core", "again", "mixture", "rivals", "schedule-free")
"""Settings of runs that the short table is about: benchmarks/README.md has all."""

PUBLISHED_ON = ("power", "gas", "hepmass", "miniboone", "bsds300")
DATASETS = (*PUBLISHED_ON, "gas_turbine", "beijing_air", "diamonds", "magic_gamma")
PUBLISHED = {
    "NITS-MLP": ("0.66 ± 0.01", "13.20 ± 0.01", "-12.93 ± 0.02", "-10.85 ± 0.02", "155.91 ± 0.21"),
    "NITS-CONV": ("–", "–", "–", "–", "163.35 ± 0.22"),
    "NSF": ("0.66 ± 0.01", "13.09 ± 0.02", "-14.01 ± 0.03", "-9.22 ± 0.48", "157.31 ± 0.28"),
    "NAF": ("0.62 ± 0.02", "11.91 ± 0.13", "-15.09 ± 0.40", "-8.86 ± 0.15", "157.73 ± 0.04"),
    "MAF": ("0.30 ± 0.01", "9.59 ± 0.02", "-17.39 ± 0.02", "-11.68 ± 0.44", "156.36 ± 0.28"),
}
"""Test nats of Li & Kluger (2022), table of UCI data sets: other hardware, other budgets."""

SAME_METHOD = {
    OURS: "NITS-MLP",
    "nits-mixture": "NITS-MLP",
    "nits-conv": "NITS-CONV",
    "nits-window": "NITS-WINDOW",
    "zuko-nsf": "NSF",
    "nflows-rq-autoregressive": "NSF",
    "nflows-rq-coupling": "NSF",
    "zuko-naf": "NAF",
    "zuko-maf": "MAF",
}


def runs(folder: Path) -> list[Record]:
    """Returns the records of `run.py` and `mix.py`, the longest run of a data set first."""
    found = [r for r in results.read(folder) if "dataset" in r and "test_nats" in r]
    return sorted(found, key=lambda r: (-r["minutes"], is_rival(r), r["model"], r["seed"]))


def is_rival(run: Record) -> bool:
    """Returns whether a run is of another's model."""
    return run["model"] not in ALL_OURS


def published(dataset: str, model: str) -> str:
    """Returns the paper's figure for a method, or a dash."""
    method = SAME_METHOD.get(model)
    if method not in PUBLISHED or dataset not in PUBLISHED_ON:
        return "–"
    return minus(PUBLISHED[method][PUBLISHED_ON.index(dataset)])


def nats_of(run: Record) -> str:
    """Returns the test nats inside the support, and how many rows were outside."""
    value, error = run["test_nats_inside"], run["test_two_standard_errors"]
    if value is None or error is None:
        return "not finite"
    outside = run["test_rows_outside"], run["test_rows"]
    some = run.get("settings", {}).get("scored_rows")  # fewer than there are
    of = f" (of {some:,} rows)" if some else ""
    return with_rows_outside(f"{value:.3f} ± {error:.3f}{of}", *outside)


def full_table(folder: Path) -> str:
    """Returns one line per run, for benchmarks/README.md."""
    head = ("data set", "model", "minutes", "seed", "settings", "test nats", "weights", "epochs")
    lines, found = [], runs(folder)
    for dataset in DATASETS:
        here = [run for run in found if run["dataset"] == dataset]
        lines += [_full_line(run) for run in here] or [_not_run(dataset)]
    return table((*head, "paper, published on other hardware"), lines)


def _not_run(dataset: str) -> tuple[str, ...]:
    return (dataset, OURS, *("–",) * 3, "not run", *("–",) * 2, published(dataset, OURS))


def _full_line(run: Record) -> tuple[str, ...]:
    return (
        run["dataset"],
        run["model"],
        f"{run['minutes']:g}",
        str(run["seed"]),
        run["settings_name"],
        nats_of(run),
        f"{run['parameters']:,}",
        f"{run['epochs']:.1f}",
        published(run["dataset"], run["model"]),
    )


def short_table(folder: Path) -> str:
    """Returns ours and the best rival, for each budget that rivals had too and for our largest.

    Ours that another of ours beats in no more minutes are left out: benchmarks/README.md has them.
    """
    head = ("test nats", "minutes", "ours", "best rival", "paper, published on other hardware")
    found = [run for run in runs(folder) if run["settings_name"] in RACED]
    lines: list[tuple[str, ...]] = []
    for dataset in DATASETS:
        here = [run for run in found if run["dataset"] == dataset]
        ours = [*_raced(here), *_defaults(folder, dataset)]
        ahead = [run for run in ours if not any(_beats(other, run) for other in ours)]
        lines += [_short_line(run, here) for run in ahead]
    return table(head, lines)


def _beats(other: Record, run: Record) -> bool:
    """Returns whether another run has more nats in no more minutes."""
    more: bool = other["test_nats_inside"] > run["test_nats_inside"]
    return more and bool(other["minutes"] <= run["minutes"])


def _defaults(folder: Path, dataset: str) -> list[Record]:
    """Returns what the defaults reach where no paper has figures, of whose models they differ."""
    if dataset in PUBLISHED_ON:
        return []
    records = results.read(folder, f"suite-published-{dataset}.json")
    found = [record["nits"]["results"] for record in records]
    return [
        {
            "dataset": dataset,
            "model": "defaults",
            "minutes": run["max_minutes"],
            **{f"test_{name}": value for name, value in run["test"].items()},
        }
        for run in found
        if run["max_minutes"] and "test" in run
    ]


def _raced(found: list[Record]) -> list[Record]:
    """Of runs with the same minutes and several seeds the first seed stands here, not the best."""
    ours = {(r["minutes"], r["model"]): r for r in reversed(found) if not is_rival(r)}
    raced = {r["minutes"] for r in found if is_rival(r)}
    longest = {SAME_METHOD[model]: minutes for minutes, model in sorted(ours)}
    return [
        ours[minutes, model]
        for minutes, model in sorted(ours)
        if minutes in raced or minutes == longest[SAME_METHOD[model]]
    ]


def _short_line(run: Record, found: list[Record]) -> tuple[str, ...]:
    """Returns the line of a run of ours.

    found: All runs with the same data.
    """
    dataset, model, minutes = run["dataset"], run["model"], run["minutes"]
    which = "" if model == OURS else f", {model.removeprefix('nits-')}"
    rival = _best_rival([r for r in found if is_rival(r) and r["minutes"] == minutes])
    return dataset, f"{minutes:g}", nats_of(run) + which, rival, published(dataset, model)


def _best_rival(rivals: list[Record]) -> str:
    finite = [r for r in rivals if r["test_nats_inside"] is not None]
    best = max(finite, key=lambda r: float(r["test_nats_inside"]), default=None)
    return "not run" if best is None else f"{nats_of(best)}, {best['model']}"


def ablation_tables(folder: Path) -> str:
    """Returns the searches from the recipe, then those from the estimator's defaults."""
    found = results.read(folder, "ablation-*.json")
    groups = [
        [search for search in found if search["defaults"] == group] for group in (False, True)
    ]
    made = [ablation_table(group) for group in groups]
    return "\n\nFrom the defaults of `NITSDensity`:\n\n".join(made)


def recipe_tables(folder: Path) -> str:
    """Returns the searches, and what was tried on small tables, for docs/recipe.md."""
    parts = [ablation_tables(folder)]
    for record in results.read(folder, "small-tables.json"):
        parts += ["Small tables, by rate and epochs:", table(*_trials(record["results"]))]
    return "\n\n".join(parts)


def _trials(found: Record) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    names = list(next(iter(found.values()))["validation_nats"])
    lines = [
        (
            f"{name}, {one['rows']:,} × {one['columns']}",
            *(minus(f"{one['validation_nats'][trial]:.2f}") for trial in names),
        )
        for name, one in found.items()
    ]
    return ("rows that were learned from", *names), lines


def ablation_table(searches: list[Record]) -> str:
    """Returns one line per change and a column per search."""
    head = ("change", *(f"{s['dataset']}, {s['minutes']:g} minutes" for s in searches))
    lines = [
        (change, *(_change(search["results"], change) for search in searches))
        for change in ablation.CHANGES
        if any(change in search["results"] for search in searches)
    ]
    return table(head, lines)


def _change(found: Record, change: str) -> str:
    if change not in found:
        return "–"
    value, base = (found[name]["validation_nats"] for name in (change, ablation.BASE))
    difference = "" if change == ablation.BASE else f" ({value - base:+.3f})"
    return minus(f"{value:.3f}{difference}")


PLACES: dict[str, Callable[[Path], str]] = {
    "README.md": short_table,
    "benchmarks/README.md": full_table,
    "docs/recipe.md": recipe_tables,
    "docs/image-models.md": image_tables,
    "docs/speed.md": speed_tables,
    "docs/scale.md": scale_tables,
    "docs/suite.md": suite_tables,
    "docs/roles.md": answers_tables,
    "docs/questions.md": ask_tables,
    "docs/prediction.md": outliers.page,
    "SECURITY.md": campaign_tables,
}


def replaced(text: str, made: str, name: str) -> str:
    """Returns the text with the table between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name} must have the lines {BEGIN} and {END}, but lacks one; add it.")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main(argv: list[str] | None = None, root: Path = results.ROOT) -> int:
    """Writes or checks the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if out of date")
    check, stale = parser.parse_args(argv).check, 0
    for name, made in PLACES.items():
        path = root / name
        old = path.read_text(encoding="utf-8")
        try:
            new = replaced(old, made(root / "benchmarks" / "results"), name)
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        stale += new != old
        if new != old and check:
            print(f"{name} differs from its results; run benchmarks/tables.py", file=sys.stderr)
        elif new != old:
            path.write_text(new, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
