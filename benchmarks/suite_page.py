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
    tables, anomalies, made, fitted, published = (
        {
            name.removeprefix(f"{kind}-"): parts
            for name, parts in named.items()
            if parts["kind"] == kind
        }
        for kind in ("tables", "anomalies", "generated", "regression", "published")
    )
    sections = {
        "Held-out nats": nats_table(tables),
        "Generated tables": generated_table(made),
        "Published splits": published_table(published),
        "Regression": regression_table(fitted),
        "Out-of-fold figure": out_of_fold_table(out_of_fold_of(tables, made, fitted)),
        "What each sort of members is worth": sorts_table(tables, made, fitted, published),
        "Sampled rows": samples_table(tables),
        "Ranges": ranges_table(tables),
        "Anomalies": anomaly_table(anomalies),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


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


def generated_table(tables: dict[str, Record]) -> str:
    """Returns a line per generated table: nats, and what they are less than the truth's."""
    models = ("nits", *DENSITIES, "independent")
    head = ("table", "rows", "truth", *(name.replace("_", " ") for name in models))
    lines = []
    for name, parts in tables.items():
        truth = parts["truth"]
        size = f"{truth['training_rows']:,} × {truth['columns']}"
        figures = (_beside(parts.get(model), truth) for model in models)
        lines.append((name, size, minus(f"{truth['nats']:.3f}"), *figures, _ahead(parts)))
    return table((*head, "nits less the best rival"), lines)


def _beside(found: Record | None, truth: Record) -> str:
    if found is None:
        return "not run"
    figure = f"{found['nats']:.3f} ({difference(found, truth)})"
    return with_rows_outside(figure, found["rows_outside"], found["rows"])


def _ahead(parts: Record) -> str:
    rivals = [name for name in (*DENSITIES, "independent") if name in parts]
    if "nits" not in parts or not rivals:
        return "–"
    best = max(rivals, key=lambda name: float(parts[name]["nats"]))
    return minus(difference(parts["nits"], parts[best])) + f" ({best.replace('_', ' ')})"


def difference(one: Record, other: Record) -> str:
    """Returns the difference of two models on the same rows, ± two standard errors of it.

    Blocks with a row of density zero are left out.
    """
    pairs = zip(one["blocks"], other["blocks"], strict=True)
    less = np.array([a - b for a, b in pairs if a is not None and b is not None])
    error = less.std(ddof=1) / math.sqrt(len(less))
    return f"{less.mean():+.3f} ± {2 * error:.3f}"


def regression_table(tables: dict[str, Record]) -> str:
    """Returns a line per table and model: means over the splits that it was measured on."""
    head = ("table", "model", "splits", "NLL", "CRPS", "RMSE", "over boosting's", "coverage")
    lines = [
        (name, model, *_splits(parts[model]["splits"], parts.get("boosting", {}).get("splits", {})))
        for name, parts in tables.items()
        for model in ("nits", "ngboost", "boosting")
        if model in parts
    ]
    return table((*head, "in the interval", "seconds"), lines)


def _splits(found: Record, boosting: Record) -> tuple[str, ...]:
    def mean(key: str, digits: int = 3) -> str:
        values = [one[key] for one in found.values() if key in one]
        return minus(f"{np.mean(values):.{digits}f}") if values else "–"

    shared = found.keys() & boosting.keys()
    rmse, other = (sum(part[key]["rmse"] for key in shared) for part in (found, boosting))
    nll = [one["nll"] for one in found.values() if "nll" in one]
    spread = f" ± {2 * np.std(nll, ddof=1) / math.sqrt(len(nll)):.3f}" if len(nll) > 1 else ""
    outside = sum(one.get("rows_outside", 0) for one in found.values())
    left_out = f" ({outside} rows outside)" if outside else ""
    return (
        str(len(found)),
        mean("nll") + spread + left_out,
        mean("crps"),
        mean("rmse"),
        f"{rmse / other:.3f}" if shared else "–",
        mean("coverage"),
        mean("in_interval"),
        mean("seconds", 1),
    )


def published_table(data: dict[str, Record]) -> str:
    """Returns a line per data set: nats of held-out, validation and test rows."""
    head = ("data set", "training rows", "networks", "out of fold", "validation", "test", "seconds")
    lines = []
    for name, parts in data.items():
        ours = parts["nits"]
        value, error = ours["held_out"]
        rows = f"{ours['training_rows']:,}" + (", weighted" if ours["weighted"] else "")
        told = "–" if value is None else minus(f"{value:.3f} ± {2 * error:.3f}")
        scored = [_published(ours.get(part)) for part in ("validation", "test")]
        seconds = f"{ours['seconds']:.0f}"
        lines.append((name, rows, str(ours["members"]), told, *scored, seconds))
    return table(head, lines)


def sorts_table(*groups: dict[str, Record]) -> str:
    """Returns a line per table: held-out nats of each sort alone, its weight, and of the mixture.

    Of regression it is the first split.
    """
    found = {}
    for group in groups:
        for name, parts in group.items():
            ours = parts.get("nits", {})
            ours = ours.get("splits", {}).get("0", ours)
            if ours.get("held_out", [None])[0] is not None and len(ours["sorts"]) > 1:
                found[name] = ours
    sorts = list(dict.fromkeys(sort["sort"] for ours in found.values() for sort in ours["sorts"]))
    lines = []
    for name, ours in found.items():
        own = {sort["sort"]: sort for sort in ours["sorts"]}
        value, error = ours["held_out"]
        whole = minus(f"{value:.3f} ± {2 * error:.3f}")
        each = (_sort(own.get(sort)) for sort in sorts)
        lines.append((name, *each, whole, "yes" if ours["calibrated"] else "no"))
    return table(("table", *sorts, "the mixture", "with curves"), lines)


def _sort(found: Record | None) -> str:
    if found is None:
        return "–"
    alone = "–" if found["held_out"] is None else minus(f"{found['held_out']:.3f}")
    return f"{alone}, {found['weight']:.0%}"


def _published(found: Record | None) -> str:
    if found is None:
        return "not scored"
    figure = f"{found['nats_inside']:.3f} ± {found['two_standard_errors']:.3f}"
    return with_rows_outside(figure, found["rows_outside"], found["rows"])


def out_of_fold_of(
    tables: dict[str, Record], generated: dict[str, Record], regression: dict[str, Record]
) -> dict[str, Record]:
    """Returns what our models said of rows they had held out, beside test rows, by table.

    Of regression it is the first split.
    """
    found = {
        **{name: parts.get("nits", {}).get("all_columns", {}) for name, parts in tables.items()},
        **{name: parts.get("nits", {}) for name, parts in generated.items()},
        **{
            name: parts.get("nits", {}).get("splits", {}).get("0", {})
            for name, parts in regression.items()
        },
    }
    kept = {name: one.get("out_of_fold", {}) for name, one in found.items()}
    return {name: one for name, one in kept.items() if one.get("held_out") is not None}


def out_of_fold_table(found: dict[str, Record]) -> str:
    """Returns a line per table, and on how many the two figures agree."""
    lines, near = [], 0
    for name, one in found.items():
        less = one["held_out"] - one["test"]
        error = math.hypot(one["held_out_error"] or 0.0, one["test_error"])
        near += abs(less) <= 2 * error
        figures = (f"{one['held_out']:.3f}", f"{one['test']:.3f}", f"{less:+.3f}", f"{error:.3f}")
        lines.append((name, *map(minus, figures), f"{abs(less) / error:.1f}"))
    head = ("table", "held out", "test", "difference", "standard error", "in standard errors")
    told = f"Within 2 standard errors: {near} of {len(lines)} tables."
    return f"{table(head, lines)}\n\n{told}" if lines else table(head, lines)


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
