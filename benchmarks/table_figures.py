"""Figures of tables: hidden entries of Beijing's air, sampled diamonds, a CSV of five million rows.

    python benchmarks/table_figures.py holes quality large      writes
    benchmarks/results/tables-NAME.json

`holes` uses the model that `command_line.py` left under out/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pandas
import pyarrow
import torch
from command_line import KEPT
from pyarrow import csv

import nits
from nits.tables import files, frames

HIDDEN_SHARE = 0.1
SAMPLED = 100_000
ROWS = 5_000_000


def holes(steps: int = 500) -> dict[str, Any]:
    """Hides a tenth of the known entries: their log-densities given the rest, and marginal ones."""
    folder = KEPT / "beijing_air"
    model = nits.load(folder / "model.nits")
    train, x = (_numbers(model, folder / name) for name in ("train.csv", "test.csv"))
    optional = torch.tensor([column.optional for column in model.schema_.columns])
    chosen = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < HIDDEN_SHARE
    chosen &= optional & ~torch.isnan(x)
    marginal = nits.NITS.independent([c.head(model.pnn, 0) for c in model.schema_.columns])
    nits.fit(marginal, train, max_steps=steps, progress=False)
    measure_ = torch.from_numpy(model.schema_.log_measure(x.double().numpy()))
    with torch.no_grad():
        given = torch.cat([model.model_.log_prob_per_column(*part) for part in _parts(x, chosen)])
        alone = torch.cat([marginal.log_prob_per_column(part) for part, *_ in _parts(x, chosen)])
    given, alone = (values.double() + measure_ for values in (given, alone))
    impossible = chosen & torch.isinf(given)  # off the grid that training rows lie on
    chosen &= ~impossible
    per_column = {
        name: {"given_the_rest": float(given[at, i].mean()), "marginal": float(alone[at, i].mean())}
        for i, name in enumerate(model.schema_.names)
        if (at := chosen[:, i]).any()
    }
    return {
        "what": "test rows of beijing_air, a tenth of the known entries of columns with holes hidden; mean "
        "log-density of the hidden entries given the columns before them that are not hidden",
        "hidden_entries": int(chosen.sum()),
        "left_out_as_outside_the_support": int(impossible.sum()),
        "given_the_rest": float(given[chosen].mean()),
        "marginal": float(alone[chosen].mean()),
        "margin": float((given - alone)[chosen].mean()),
        "training_rows": len(train),
        "per_column": per_column,
    }


def _numbers(model: Any, path: Path) -> torch.Tensor:
    from nits.cli.commands.score import arrow_types

    numbers = model.schema_.encode(frames.read(files.read_table(str(path), arrow_types(model))))
    return torch.from_numpy(numbers.astype(np.float32))


def _parts(x: torch.Tensor, hidden: torch.Tensor) -> Any:
    return ((x[i : i + 8192], None, hidden[i : i + 8192]) for i in range(0, len(x), 8192))


def quality(minutes: float = 5.0) -> dict[str, Any]:
    """Draws 100,000 diamonds from a model that was told that nothing is negative, and grades them."""
    table = pandas.read_csv(Path(os.environ["NITS_DATA"]) / "tables" / "diamonds.csv.gz")
    numbers = list(table.select_dtypes("number").columns)
    support = {name: (0.0, float("inf")) for name in numbers}
    model = nits.NITSDensity(support=support, max_minutes=minutes, random_state=0).fit(table)
    drawn = model.sample(SAMPLED, random_state=0)
    shuffled = table.sample(frac=1, random_state=0, ignore_index=True)
    half = len(table) // 2
    return {
        "what": f"{SAMPLED} rows, fitted for {minutes:g} minutes; sdmetrics' quality report (1 is best)",
        **graded(table, drawn),
        "one_half_of_the_table_against_the_other": graded(shuffled[:half], shuffled[half:]),
        "types_kept": bool((drawn.dtypes == table.dtypes).all()),
        "categories_valid": all(
            set(drawn[n]) <= set(table[n]) for n in table.columns if n not in numbers
        ),
        "smallest": {name: float(drawn[name].min()) for name in numbers},
        "largest": {name: float(drawn[name].max()) for name in numbers},
        "largest_in_the_table": {name: float(table[name].max()) for name in numbers},
        "prices_are_integers": bool((drawn["price"] == drawn["price"].round()).all()),
    }


def graded(real: Any, other: Any) -> dict[str, Any]:
    """Returns sdmetrics' grades of a table beside the real one."""
    from sdmetrics.reports.single_table import QualityReport

    numbers = set(real.select_dtypes("number").columns)
    kinds = {
        name: {"sdtype": "numerical" if name in numbers else "categorical"} for name in real.columns
    }
    report = QualityReport()
    report.generate(real, other.reset_index(drop=True), {"columns": kinds}, verbose=False)
    found = report.get_properties()
    return {
        "score": report.get_score(),
        "properties": dict(zip(found["Property"], found["Score"], strict=True)),
    }


def large(rows: int = ROWS) -> dict[str, Any]:
    """Scores a CSV of five million rows: memory over time, and time beside that of the parts."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=rows).cumsum() % 7 for name in "abcdef"}
    sample = np.stack([values[:20_000] for values in columns.values()], 1)
    frame = pandas.DataFrame(sample, columns=list(columns))
    model = nits.NITSDensity(hidden=32, blocks=1, max_steps=100, random_state=0).fit(frame)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "in.csv"
        csv.write_csv(pyarrow.table(columns), source)
        model.save(Path(place) / "model.nits")
        seconds, memory = _watched(
            ["score", f"{place}/model.nits", str(source), "-o", f"{place}/out.csv"]
        )
        parsing = _timed(lambda: [None for _ in files.batches(str(source))])
    table = pyarrow.table(columns)
    in_memory = _timed(lambda: model.score_samples(table))
    quarter = len(memory) // 4
    return {
        "what": f"{rows} rows of 6 columns, hidden=32, 1 block, {torch.get_num_threads()} threads",
        "seconds": seconds,
        "rows_per_second": rows / seconds,
        "seconds_parsing_alone": parsing,
        "seconds_from_memory": in_memory,
        "seconds_less_parsing_over_from_memory": (seconds - parsing) / in_memory,
        "peak_mib": max(memory),
        "peak_mib_in_the_first_quarter": max(memory[: max(quarter, 1)]),
        "file_mib": rows * 6 * 18 / 2**20,
    }


def _watched(argv: list[str]) -> tuple[float, list[float]]:
    """Runs a verb and returns its seconds and its memory, in MiB, twice a second."""
    started, memory = time.monotonic(), []
    process = subprocess.Popen([sys.executable, "-m", "nits", *argv, "--quiet"])
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        memory += [int(kib) / 1024 for kib in found]
        time.sleep(0.5)
    if process.returncode:
        raise RuntimeError(f"nits {' '.join(argv)} ended with {process.returncode}")
    return time.monotonic() - started, memory


def _timed(program: Callable[[], object]) -> float:
    started = time.monotonic()
    program()
    return time.monotonic() - started


FIGURES: dict[str, Callable[[], dict[str, Any]]] = {
    "holes": holes,
    "quality": quality,
    "large": large,
}


def main(argv: list[str] | None = None) -> int:
    """Measures the figures that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="+", choices=list(FIGURES))
    for name in parser.parse_args(argv).figures:
        found = FIGURES[name]()
        print(json.dumps({name: found}, indent=2), flush=True)
        measure.write(f"tables-{name}", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
