"""Writes the tables of results in README.md, benchmarks/README.md and docs/ from benchmarks/results/*.json.

python benchmarks/tables.py            writes what stands between the markers
python benchmarks/tables.py --check    exits 1 if that differs from the results
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ablation
import measure
from markup import minus, table
from speed_table import speed_tables

Record = dict[str, Any]

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
OURS = "nits-mlp"
ALL_OURS = (OURS, "nits-conv", "nits-mixture")
RACED = ("two-core", "mixture", "rivals", "schedule-free")
"""Settings of runs that the short table is about: benchmarks/README.md has all."""

DATASETS = (
    "power",
    "gas",
    "hepmass",
    "miniboone",
    "bsds300",
    "gas_turbine",
    "beijing_air",
    "diamonds",
    "magic_gamma",
)

PUBLISHED_ON = ("power", "gas", "hepmass", "miniboone", "bsds300")
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
    "zuko-nsf": "NSF",
    "nflows-rq-autoregressive": "NSF",
    "nflows-rq-coupling": "NSF",
    "flowjax-nsf": "NSF",
    "zuko-naf": "NAF",
    "zuko-maf": "MAF",
}


def read(results: Path) -> list[Record]:
    """Returns the records of `run.py`, by data set and model, the longest run first."""
    found = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))
    ]
    runs = [record for record in found if "dataset" in record and "test_nats" in record]
    return sorted(
        runs,
        key=lambda r: (
            DATASETS.index(r["dataset"]),
            -r["minutes"],
            r["model"] not in ALL_OURS,
            r["model"],
            r["seed"],
        ),
    )


def published(dataset: str, model: str) -> str:
    """Returns the paper's figure for a method, or a dash."""
    method = SAME_METHOD.get(model)
    if method is None or dataset not in PUBLISHED_ON:
        return "–"
    return minus(PUBLISHED[method][PUBLISHED_ON.index(dataset)])


def figure(record: Record) -> str:
    """Returns the test nats inside the support with two standard errors, and how many rows were outside."""
    value, error, outside = (
        record[f"test_{name}"] for name in ("nats_inside", "two_standard_errors", "rows_outside")
    )
    if value is None or error is None:
        return "not finite"
    text = minus(f"{value:.3f} ± {error:.3f}")
    return f"{text} ({outside} of {record['test_rows']:,} rows outside)" if outside else text


def full_table(records: list[Record]) -> str:
    """Returns one line per run, for benchmarks/README.md."""
    head = (
        "data set",
        "model",
        "minutes",
        "seed",
        "settings",
        "test nats",
        "weights",
        "epochs",
        "paper, published on other hardware",
    )
    return table(head, (line for dataset in DATASETS for line in _full_lines(dataset, records)))


def _full_lines(dataset: str, records: list[Record]) -> list[tuple[str, ...]]:
    runs = [r for r in records if r["dataset"] == dataset]
    if not runs:
        return [(dataset, OURS, *("–",) * 3, "not run", *("–",) * 2, published(dataset, OURS))]
    return [
        (
            dataset,
            r["model"],
            f"{r['minutes']:g}",
            str(r["seed"]),
            r["settings_name"],
            figure(r),
            f"{r['parameters']:,}",
            f"{r['epochs']:.1f}",
            published(dataset, r["model"]),
        )
        for r in runs
    ]


def short_table(records: list[Record]) -> str:
    """Returns ours and the best rival, for each budget that rivals had too and for our largest."""
    head = ("test nats", "minutes", OURS, "best rival", "paper, published on other hardware")
    return table(head, (line for dataset in DATASETS for line in _short_lines(dataset, records)))


def _short_lines(dataset: str, records: list[Record]) -> list[tuple[str, ...]]:
    """Of runs with the same minutes and several seeds the first seed stands here, never the best."""
    runs = [r for r in records if r["dataset"] == dataset and r["settings_name"] in RACED]
    ours = {(r["minutes"], r["model"]): r for r in reversed(runs) if r["model"] in ALL_OURS}
    raced = {r["minutes"] for r in runs if r["model"] not in ALL_OURS}
    longest = {SAME_METHOD[model]: minutes for minutes, model in sorted(ours)}
    return [
        (
            dataset,
            f"{minutes:g}",
            _ours(ours[key]),
            _best_rival(runs, minutes),
            published(dataset, model),
        )
        for key in sorted(ours)
        for minutes, model in [key]
        if minutes in raced or minutes == longest[SAME_METHOD[model]]
    ]


def _ours(record: Record) -> str:
    """Returns our figure, and says which model's it is if not NITS-MLP's."""
    return figure(record) + (
        "" if record["model"] == OURS else f", {record['model'].removeprefix('nits-')}"
    )


def _best_rival(runs: list[Record], minutes: float) -> str:
    rivals = [r for r in runs if r["model"] not in ALL_OURS and r["minutes"] == minutes]
    best = max(rivals, key=_comparable, default=None)
    return "not run" if best is None else f"{figure(best)}, {best['model']}"


def _comparable(record: Record) -> float:
    value = record["test_nats_inside"]
    return float("-inf") if value is None else float(value)


def replaced(text: str, made: str, name: str) -> str:
    """Returns the text with the table between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{name} must have the lines {BEGIN} and {END}, but lacks one; add it.")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def ablation_tables(results: Path) -> str:
    """Returns the searches from the recipe, then those from the estimator's defaults, for docs/recipe.md."""
    paths = sorted(results.glob("ablation-*.json"))
    searches = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    searches = [search for search in searches if ablation.BASE in search["results"]]
    if not searches:
        return "No search has been run on this version yet."
    groups = [[s for s in searches if s.get("defaults", False) == group] for group in (False, True)]
    return "\n\nFrom the defaults of `NITSDensity`:\n\n".join(
        ablation_table(group) for group in groups if group
    )


def ablation_table(searches: list[Record]) -> str:
    """Returns one line per change and a column per search."""
    head = ("change", *(f"{s['dataset']}, {s['minutes']:g} minutes" for s in searches))
    lines = [
        (change, *(_change(search["results"], change) for search in searches))
        for change in ablation.CHANGES
        if any(change in search["results"] for search in searches)
    ]
    return table(head, lines)


def _change(results: Record, change: str) -> str:
    if change not in results:
        return "–"
    value, base = (results[name]["validation_nats"] for name in (change, ablation.BASE))
    difference = "" if change == ablation.BASE else f" ({value - base:+.3f})"
    return minus(f"{value:.3f}{difference}")


def command_line_table(results: Path) -> str:
    """Returns one line per table that went through the command line, for docs/tables.md."""
    head = (
        "table",
        "minutes",
        "all columns",
        "numeric columns",
        "Gaussian mixture, the same columns",
    )
    lines = []
    for path in sorted(results.glob("command-line-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))["results"]
        parts = [found[name] for name in ("all_columns", "numeric_columns", "gaussian_mixture")]
        name = path.stem.removeprefix("command-line-")
        lines.append((name, f"{found['minutes']:g}", *map(_held_out, parts)))
    return table(head, lines) if lines else "No table has been measured on this version yet."


def _held_out(part: Record) -> str:
    outside = part.get("rows_outside", 0)
    text = minus(f"{part['nats']:.2f} ± {part['two_standard_errors']:.2f}")
    return f"{text} ({outside} of {part['rows']:,} rows outside)" if outside else text


def image_table(results: Path) -> str:
    """Returns one line per run on images, for docs/image-models.md."""
    head = (
        "images",
        "head",
        "minutes",
        "bits per dimension, test",
        "validation",
        "weights",
        "epochs",
    )
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(results.glob("images-*.json"))
    ]
    lines = [
        (
            r["images_of"],
            f"{r['head']} ({' × '.join(map(str, r['settings']['pnn']))})",
            f"{r['minutes']:g}",
            f"{r['test_bits_per_dim']:.3f} ± {r['two_standard_errors']:.3f} ({r['test_images']:,} images)",
            f"{r['validation_bits_per_dim']:.3f}",
            f"{r['parameters']:,}",
            f"{r['epochs']:.2f}",
        )
        for r in found
    ]
    return (
        table(head, lines) if lines else "No set of images has been measured on this version yet."
    )


PLACES: dict[str, Callable[[Path], str]] = {
    "README.md": lambda results: short_table(read(results)),
    "benchmarks/README.md": lambda results: full_table(read(results)),
    "docs/recipe.md": ablation_tables,
    "docs/tables.md": command_line_table,
    "docs/image-models.md": image_table,
    "docs/speed.md": speed_tables,
}


def main(argv: list[str] | None = None, root: Path = measure.ROOT) -> int:
    """Writes or checks the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a table is out of date"
    )
    check = parser.parse_args(argv).check
    results = root / "benchmarks" / "results"
    stale = 0
    for name, made in PLACES.items():
        path = root / name
        old = path.read_text(encoding="utf-8")
        try:
            new = replaced(old, made(results), name)
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        if new == old:
            continue
        stale += 1
        if check:
            print(
                f"{name} differs from benchmarks/results; run python benchmarks/tables.py",
                file=sys.stderr,
            )
        else:
            path.write_text(new, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
