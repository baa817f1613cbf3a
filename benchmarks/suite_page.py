"""The tables of docs/suite.md, from the files that suite.py writes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import results
from markdown_table import minus, table, with_rows_outside
from results import Record

FACTOR = 3.0
"""What a share beyond the range may be off by."""

NOISE = 3.0
"""Standard deviations of a count by which it must be off before that is no accident."""

DENSITIES = ("gaussian", "gaussian_mixture", "kernel_density")
SAMPLED = ("nits", "real rows", "gaussian-copula", "tvae", "arf")


def suite_tables(folder: Path) -> str:
    """Returns the sections of the page."""
    named = {
        path.stem.removeprefix("suite-"): _parts(folder, path.name)
        for path in sorted(folder.glob("suite-*.json"))
    }
    tables, anomalies = (
        {name: parts for name, parts in named.items() if parts["kind"] == kind}
        for kind in ("tables", "anomalies")
    )
    sections = {
        "Held-out nats": nats_table(tables),
        "Sampled rows": samples_table(tables),
        "Ranges": ranges_table(tables),
        "Anomalies": anomaly_table(anomalies),
    }
    return "\n\n".join(f"## {title}\n\n{made}" for title, made in sections.items())


def _parts(folder: Path, name: str) -> Record:
    (record,) = results.read(folder, name)
    return {key: part if key == "kind" else part["results"] for key, part in record.items()}


def nats_table(tables: dict[str, Record]) -> str:
    """Returns a line per table: all columns; then the columns of numbers, ours and rivals'."""
    head = ("table", "all columns", "unseen values", "numbers")
    lines = []
    for name, parts in tables.items():
        ours, rivals = parts.get("nits", {}), parts.get("densities", {})
        whole, numbers = ours.get("all_columns"), ours.get("numeric_columns")
        unseen = "–" if whole is None else f"{sum(whole['unseen'].values()):,}"
        others = map(_nats, (numbers, *map(rivals.get, DENSITIES)))
        lines.append((name, _nats(whole), unseen, *others))
    return table((*head, *(name.replace("_", " ") for name in DENSITIES)), lines)


def _nats(found: Record | None) -> str:
    if found is None:
        return "not run"
    figure = f"{found['nats']:.2f} ± {found['two_standard_errors']:.2f}"
    return with_rows_outside(figure, found.get("rows_outside", 0), found.get("rows", 0))


def samples_table(tables: dict[str, Record]) -> str:
    """Returns a line per table and model that was sampled."""
    head = ("table", "rows of", "detection AUC", "trained on, tested on real rows", "column shapes")
    lines = [
        (name, model, *_worth(parts[model]))
        for name, parts in tables.items()
        for model in SAMPLED
        if model in parts
    ]
    return table((*head, "pair trends", "training rows", "seconds"), lines)


def _worth(found: Record) -> tuple[str, ...]:
    shapes, trends = (f"{found[k]:.3f}" if k in found else "–" for k in ("shapes", "trends"))
    transfer = minus(f"{found['transfer']:.3f} ({found['target']})")
    rows, seconds = f"{found['training_rows']:,}", f"{found['seconds']:,.0f}"
    return f"{found['detection']:.3f}", transfer, shapes, trends, rows, seconds


def ranges_table(tables: dict[str, Record]) -> str:
    """Returns a line per table: samples beyond the range of each column, over 2/(n + 1)."""
    head = ("table", "samples", "columns of numbers", "with mass beyond", "least ratio")
    ours = {name: parts["nits"] for name, parts in tables.items() if "nits" in parts}
    lines = [_range(name, found["ranges"]) for name, found in ours.items()]
    return table((*head, "greatest ratio", f"off by more than {FACTOR:g}", "wrong values"), lines)


def _range(name: str, found: Record) -> tuple[str, ...]:
    count, columns = found["samples"], found["columns"]
    beyond = {key: c["below"] + c["above"] for key, c in columns.items() if "below" in c}
    expected = {key: 2 * count / (columns[key]["known"] + 1) for key in beyond}
    ratios = sorted((beyond[key] / expected[key], key) for key in beyond if beyond[key])
    ends = [f"{ratio:.2f} ({key})" for ratio, key in (ratios[:1] + ratios[-1:])] or ["–"] * 2
    off = [key for key in beyond if beyond[key] and is_off(beyond[key], expected[key])]
    wrong = {key: c["wrong"] for key, c in columns.items() if c["wrong"]}
    told = ", ".join(f"{key} {value:,}" for key, value in wrong.items()) or "none"
    sizes = f"{count:,}", str(len(beyond)), str(len(ratios))
    return name, *sizes, *ends, ", ".join(off) or "none", told


def is_off(count: int, expected: float) -> bool:
    """Returns whether a count is off by more than the factor, and not by the noise of counting."""
    low, high = expected / FACTOR, expected * FACTOR
    return count > high + NOISE * math.sqrt(high) or count < low - NOISE * math.sqrt(low)


def anomaly_table(tables: dict[str, Record]) -> str:
    """Returns a line per table, the means, and on how many we are not left behind."""
    names = list(next(iter(tables.values()), {}).get("detectors", {}))
    found = {
        name: [parts.get("nits", {}).get("auroc"), *map(parts.get("detectors", {}).get, names)]
        for name, parts in tables.items()
    }
    lines = [(name, *map(_auroc, values)) for name, values in found.items()]
    whole = [values for values in found.values() if None not in values]
    if whole:
        means = np.mean(whole, 0).tolist()
        lines.append(("mean", *map(_auroc, means)))
    behind = sum(values[0] < 0.6 and max(values[1:]) >= 0.8 for values in whole)
    told = f"Not below 0.6 where a rival has 0.8: {len(whole) - behind} of {len(whole)} tables."
    return f"{table(('table', 'nits', *names), lines)}\n\n{told}"


def _auroc(value: float | None) -> str:
    return "not run" if value is None else f"{value:.3f}"
