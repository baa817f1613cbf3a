"""One hostile table: fit → info → score → sample → score the samples → plot, by the command line.

Laws: a table is modelled unless a column of it cannot be; its own rows and all samples have finite
scores and nothing in them was never seen; samples written in any format are read back as they were,
and so have the same scores.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from pyarrow import csv

from campaign import tables
from campaign.steps import Failure, nits, well
from nits.cli.commands.score import arrow_types
from nits.persistence import load
from nits.tables import files, frames

BUDGET = ("--max-steps", "3", "--quiet")
SAMPLED = "40"


def run(case: int, *, plots: bool = True) -> str:
    """Runs a case and returns "passed" or "refused"; raises Failure."""
    table = tables.made(case)
    with tempfile.TemporaryDirectory() as place:
        try:
            return _run(table, Path(place), plots)
        except Failure as failure:
            raise Failure(f"{failure}\n  table: {table.told}") from None


def _run(table: tables.Table, folder: Path, plots: bool) -> str:
    path, model = table.write(folder), str(folder / "m.nits")
    fitted = nits("fit", path, "-o", model, *BUDGET, "--seed", str(table.case))
    if fitted.code != 0:
        _refused(table, fitted.err)
        return "refused"
    well("info", model)
    scores = _scores(model, path, folder)
    if len(scores) != table.table.num_rows:
        raise Failure(f"{len(scores)} scores of {table.table.num_rows} rows")
    _samples(table, model, folder)
    if plots:
        well("plot", model, path, "-o", str(folder / "figures"))
    return "passed"


def _refused(table: tables.Table, words: str) -> None:
    """Refusals must be one line, of what may be refused, and name it."""
    if len(words.strip().splitlines()) > 2:
        raise Failure(f"fit refuses in several lines: {words}")
    few = table.table.num_rows < 2
    nothing = "a column must be left to model" in words
    if few or nothing:
        return
    named = [name for name in table.refusable if shown(name) in words]
    if not named:
        raise Failure(f"fit refuses: {words.strip()[-600:]}")


def shown(name: str) -> str:
    """Returns a name as errors show it."""
    return " ".join(repr(name)[1:-1].split())


def _scores(model: str, path: str, folder: Path) -> Any:
    """Scores a file of the model's own and checks that all is well; returns the scores."""
    output = str(folder / "scores.csv")
    told = well("score", model, path, "-o", output).err
    if "never seen" in told or "outside" in told or "differs" in told:
        raise Failure(f"score of {Path(path).name}: {told.strip()[-300:]}")
    found = csv.read_csv(output).column("log_density").to_numpy()
    if not np.isfinite(found).all():
        raise Failure(f"{int((~np.isfinite(found)).sum())} scores of {Path(path).name} not finite")
    return found


def _samples(table: tables.Table, model: str, folder: Path) -> None:
    types = arrow_types(load(model))
    whole, first = None, None
    for form in tables.FORMATS:
        path = str(folder / f"samples.{form}")
        well("sample", model, "-n", SAMPLED, "-o", path, "--seed", "7", "--quiet")
        scores = _scores(model, path, folder)
        read = frames.read(files.read_table(path, types))
        if whole is None or first is None:
            whole, first = read, scores
            if (names := pyarrow.parquet.read_schema(path).names) != table.table.column_names:
                raise Failure(f"samples have the columns {names}")
            continue
        for name, values in whole.columns.items():
            _same(name, values, read.columns[name], form)
        apart = np.abs(scores - first).max()
        if apart > 1e-6:
            raise Failure(f"samples as {form} score other than as parquet, by {apart}")


def _same(name: str, one: frames.Values, other: frames.Values, form: str) -> None:
    """Refuses values that a file did not keep."""
    if not np.array_equal(one.missing, other.missing):
        raise Failure(f"column {name!a} has other holes as {form}")
    a, b = one.known, other.known
    if not np.array_equal(a, b) and a.astype(str).tolist() != b.astype(str).tolist():
        at = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        raise Failure(f"column {name!a} has {b[at]!r} as {form}, not {a[at]!r}")
