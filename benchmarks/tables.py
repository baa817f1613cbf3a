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
import results
from markdown_table import minus, table
from results import Record
from speed_table import speed_tables

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NONE = "Nothing has been measured on this version yet."
OURS = "nits-mlp"
ALL_OURS = (OURS, "nits-conv", "nits-mixture")
RACED = ("two-core", "mixture", "rivals", "schedule-free")
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

ELSEWHERE = "paper, published on other hardware"
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


def runs(folder: Path) -> list[Record]:
    """Returns the records of `run.py` and `mix.py`, by data set, the longest run first."""
    found = [r for r in results.read(folder) if "dataset" in r and "test_nats" in r]

    def place(r: Record) -> tuple[object, ...]:
        rival = r["model"] not in ALL_OURS
        return DATASETS.index(r["dataset"]), -r["minutes"], rival, r["model"], r["seed"]

    return sorted(found, key=place)


def published(dataset: str, model: str) -> str:
    """Returns the paper's figure for a method, or a dash."""
    method = SAME_METHOD.get(model)
    if method is None or dataset not in PUBLISHED_ON:
        return "–"
    return minus(PUBLISHED[method][PUBLISHED_ON.index(dataset)])


def nats(run: Record) -> str:
    """Returns the test nats inside the support, and how many rows were outside."""
    value, error = run["test_nats_inside"], run["test_two_standard_errors"]
    if value is None or error is None:
        return "not finite"
    return with_rows_outside(f"{value:.3f} ± {error:.3f}", run, "test_")


def with_rows_outside(text: str, part: Record, prefix: str = "") -> str:
    """Returns a figure, followed by the number of rows that it leaves out, if there are any."""
    outside = part.get(f"{prefix}rows_outside", 0)
    more = f" ({outside} of {part[f'{prefix}rows']:,} rows outside)" if outside else ""
    return minus(text) + more


def full_table(folder: Path) -> str:
    """Returns one line per run, for benchmarks/README.md."""
    names = ("data set", "model", "minutes", "seed", "settings", "test nats", "weights", "epochs")
    found = runs(folder)
    lines = [line for dataset in DATASETS for line in _full_lines(dataset, found)]
    return table((*names, ELSEWHERE), lines)


def _full_lines(dataset: str, records: list[Record]) -> list[tuple[str, ...]]:
    found = [r for r in records if r["dataset"] == dataset]
    if not found:
        return [(dataset, OURS, *("–",) * 3, "not run", *("–",) * 2, published(dataset, OURS))]
    return [
        (
            dataset,
            r["model"],
            f"{r['minutes']:g}",
            str(r["seed"]),
            r["settings_name"],
            nats(r),
            f"{r['parameters']:,}",
            f"{r['epochs']:.1f}",
            published(dataset, r["model"]),
        )
        for r in found
    ]


def short_table(folder: Path) -> str:
    """Returns ours and the best rival, for each budget that rivals had too and for our largest."""
    head = ("test nats", "minutes", OURS, "best rival", ELSEWHERE)
    found = [r for r in runs(folder) if r["settings_name"] in RACED]
    return table(head, [line for dataset in DATASETS for line in _short_lines(dataset, found)])


def _short_lines(dataset: str, records: list[Record]) -> list[tuple[str, ...]]:
    """Of runs with the same minutes and several seeds the first seed stands here, never the best."""
    found = [r for r in records if r["dataset"] == dataset]
    ours = {(r["minutes"], r["model"]): r for r in reversed(found) if r["model"] in ALL_OURS}
    raced = {r["minutes"] for r in found if r["model"] not in ALL_OURS}
    longest = {SAME_METHOD[model]: minutes for minutes, model in sorted(ours)}
    lines: list[tuple[str, ...]] = []
    for minutes, model in sorted(ours):
        if minutes in raced or minutes == longest[SAME_METHOD[model]]:
            which = "" if model == OURS else f", {model.removeprefix('nits-')}"
            figure = nats(ours[minutes, model]) + which
            rival, paper = _best_rival(found, minutes), published(dataset, model)
            lines.append((dataset, f"{minutes:g}", figure, rival, paper))
    return lines


def _best_rival(records: list[Record], minutes: float) -> str:
    rivals = [r for r in records if r["model"] not in ALL_OURS and r["minutes"] == minutes]
    finite = [r for r in rivals if r["test_nats_inside"] is not None]
    best = max(finite, key=lambda r: float(r["test_nats_inside"]), default=None)
    return "not run" if best is None else f"{nats(best)}, {best['model']}"


def ablation_tables(folder: Path) -> str:
    """Returns the searches from the recipe, then those from the estimator's defaults."""
    searches = results.read(folder, "ablation-*.json")
    searches = [search for search in searches if ablation.BASE in search["results"]]
    groups = [[s for s in searches if s.get("defaults", False) == group] for group in (False, True)]
    made = [ablation_table(group) for group in groups if group]
    return "\n\nFrom the defaults of `NITSDensity`:\n\n".join(made) or NONE


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


def command_line_table(folder: Path) -> str:
    """Returns one line per table that went through the command line, for docs/tables.md."""
    measured = ("all columns", "numeric columns")
    head = ("table", "minutes", *measured, "Gaussian mixture, the same columns")
    lines = []
    for path in sorted(folder.glob("command-line-*.json")):
        (record,) = results.read(folder, path.name)
        found = record["results"]
        parts = [found[name] for name in ("all_columns", "numeric_columns", "gaussian_mixture")]
        cells = [
            with_rows_outside(f"{part['nats']:.2f} ± {part['two_standard_errors']:.2f}", part)
            for part in parts
        ]
        lines.append((path.stem.removeprefix("command-line-"), f"{found['minutes']:g}", *cells))
    return table(head, lines) if lines else NONE


def image_table(folder: Path) -> str:
    """Returns one line per run on images, for docs/image-models.md."""
    test = "bits per dimension, test"
    head = ("images", "head", "minutes", test, "validation", "weights", "epochs")
    lines = []
    for r in results.read(folder, "images-*.json"):
        bits = f"{r['test_bits_per_dim']:.3f} ± {r['two_standard_errors']:.3f}"
        pnn = " × ".join(map(str, r["settings"]["pnn"]))
        lines.append(
            (
                r["images_of"],
                f"{r['head']} ({pnn})",
                f"{r['minutes']:g}",
                f"{bits} ({r['test_images']:,} images)",
                f"{r['validation_bits_per_dim']:.3f}",
                f"{r['parameters']:,}",
                f"{r['epochs']:.2f}",
            )
        )
    return table(head, lines) if lines else NONE


PLACES: dict[str, Callable[[Path], str]] = {
    "README.md": short_table,
    "benchmarks/README.md": full_table,
    "docs/recipe.md": ablation_tables,
    "docs/tables.md": command_line_table,
    "docs/image-models.md": image_table,
    "docs/speed.md": speed_tables,
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
