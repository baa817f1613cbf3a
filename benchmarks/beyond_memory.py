"""A table of 50 million rows in a folder of Parquet: memory, speed and likelihood of a fit to it.

    python benchmarks/beyond_memory.py make FOLDER [--rows 50000000]   writes the table, about 8 GB
    python benchmarks/beyond_memory.py memory FOLDER [--minutes 5]     peak memory of `nits fit`
    python benchmarks/beyond_memory.py speed FOLDER [--rounds 5]       steps from both in turn
    python benchmarks/beyond_memory.py nats FOLDER [--steps 2000]      held-out nats of both

Each of the last three writes benchmarks/results/beyond-memory-….json. `speed` times 200 steps from
all pieces and 200 steps from the first two million rows in memory in turn, with the same network.
`nats` fits both ways to the first two million rows, with one seed, and scores 100,000 later rows.
With --quick each is small; `make` then writes 60,000 rows, and result files end in -quick.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import torch
from pyarrow import dataset, parquet
from results import Record, write_figures
from timing import alternately, as_fit, ratios, seconds

from nits import NITSDensity
from nits.tables import members, preparing
from nits.training import lanes
from nits.training.rows import Rows

COLUMNS, FILE_ROWS, GROUP_ROWS = 20, 2_000_000, 2**17
WINDOWS = 2**25
"""Bytes of a window of one row group, and of the one that is read ahead, and some more."""


def some(rows: int, seed: int) -> pyarrow.Table:
    """Returns rows of real numbers, skewed ones, integers and strings that depend on each other."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rows, 3))
    found: dict[str, Any] = {}
    for k in range(COLUMNS):
        mix = common @ np.sin(np.arange(3) + k) + 0.5 * rng.normal(size=rows)
        if k % 10 == 9:
            found[f"kind{k}"] = pyarrow.array(
                np.array(list("abcdef"), object)[np.clip(mix + 3, 0, 5).astype(int)]
            )
        elif k % 5 == 4:
            found[f"whole{k}"] = rng.poisson(np.exp(1 + 0.5 * np.clip(mix, -4, 4)))
        elif k % 2:
            found[f"skewed{k}"] = np.exp(mix)
        else:
            found[f"real{k}"] = mix + 0.3 * mix**2
    return pyarrow.table(found)


def make(folder: Path, rows: int) -> None:
    """Writes the table, file by file."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(-(-rows // FILE_ROWS)):
        part = some(min(FILE_ROWS, rows - k * FILE_ROWS), k)
        parquet.write_table(part, folder / f"part-{k:03}.parquet", row_group_size=GROUP_ROWS)
    bytes_ = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{rows} rows, {bytes_ / 1e9:.2f} GB in {folder}")


def memory(folder: Path, minutes: float) -> Record:
    """Fits in a process of its own, and returns its peak memory and what it says of itself.

    rows_per_second: Of training, the median over the looks at validation, without these.
    """
    with tempfile.TemporaryDirectory() as place:
        code = (
            "import resource, sys, time\n"
            "from nits import NITSDensity\n"
            f"m = NITSDensity(max_minutes={minutes}, members=1, random_state=0)\n"
            f"start = time.time(); m.fit({str(folder)!r}); whole = time.time() - start\n"
            "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "h = m.history_\n"
            "weights = sum(p.numel() for p in m.model_.parameters())\n"
            "rate = sorted(h['rows_per_second'])[len(h['rows_per_second']) // 2]\n"
            "print(peak, whole, h['step'][-1], h['seconds'][-1], m.held_out_, weights, rate)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=place,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    peak, whole, steps, training, held_out, weights, rate = map(float, done.stdout.split())
    rows = dataset.dataset(folder).count_rows()
    return {
        "rows": rows,
        "columns": COLUMNS,
        "batch": NITSDensity()._plan(rows, COLUMNS).batch_size,
        "weights": int(weights),
        "peak_bytes": int(peak * 1024),
        "seconds": whole,
        "first_pass_seconds": whole - training,
        "steps": int(steps),
        "training_seconds": training,
        "rows_per_second": rate,
        "held_out": held_out,
    }


class Stop(Exception):
    """Ends a fit when its rows are there."""


def rows_of(table: Any, **options: Any) -> tuple[Any, Rows]:
    """Returns an estimator that has decided and its rows, as members would learn from them."""
    model = NITSDensity(random_state=0, **options)
    caught: list[Rows] = []

    def instead(estimator: Any, rows: Rows, units: Any, plan: Any, seed: int) -> Any:
        caught.append(rows)
        raise Stop

    with _replaced(members, "learned", instead), suppress(Stop):
        model.fit(table)
    return model, caught[0]


@contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def speed(folder: Path, rounds: int, steps: int) -> Record:
    """Times training steps from pieces and from memory in turn, one thread.

    Windows are of one row group: with the usual buffer hundreds of steps read nothing, and the next
    ones all that these used.
    """
    torch.set_num_threads(1)
    lanes.BUFFER = WINDOWS
    few = first(folder)
    model, inside = rows_of(few, order="table")
    _, pieces = rows_of_pieces(folder, model)
    programs = {
        name: _steps(model, rows, steps) for name, rows in (("memory", inside), ("pieces", pieces))
    }
    with as_fit():
        times = alternately(programs, rounds)
    rate = ratios(times, "memory", "pieces")
    return {"steps": steps, "seconds": seconds(times), "pieces_over_memory": rate}


def rows_of_pieces(folder: Path, model: Any) -> tuple[Any, Rows]:
    """Returns the rows of all pieces, with the decisions about the first rows."""
    from nits.tables.stream import fitting, scan
    from nits.tables.stream.source import opened
    from nits.training.streamed import Streamed

    with opened(folder) as source:
        few = first(folder)
        places = scan.spread(few.num_rows, 20_000)
        kept = Rows(torch.from_numpy(model.schema_.numbers(_frame(few, places))[0]))
        pieces = fitting.Coded(source, model.schema_, model.context_schema_)
        at = torch.from_numpy(places)
        return model, Streamed(pieces, kept, at, at)


def _frame(table: pyarrow.Table, places: Any) -> Any:
    from nits.tables import zones

    return zones.read(table.take(pyarrow.array(places)))


def first(folder: Path) -> pyarrow.Table:
    """Returns the first two million rows."""
    return parquet.read_table(sorted(folder.glob("*.parquet"))[0])


def _steps(model: Any, rows: Rows, steps: int) -> Callable[[], object]:
    """Returns a program of some steps, each on rows that it has not seen."""
    from nits.tables import networks
    from nits.training.loop import Loop
    from nits.training.recipe import Budget, Recipe

    plan = preparing.plan(model, 50_000_000, len(model.schema_.columns))
    model.orders_ = [None]
    density = networks.network(model.sketch_, plan.styles[0], plan, 0)
    loop = Loop(density, rows, None, Recipe(batch_size=plan.batch_size), Budget(None, 10**6), 0)
    loop.prepare(None)
    density.train()

    def program() -> None:
        for _ in range(steps):
            loop.advance(0.5)

    return program


def nats(folder: Path, steps: int) -> Record:
    """Fits the first rows in memory and from a folder of them, and scores later rows."""
    table = first(folder)
    test = some(100_000, 10**6)
    options: dict[str, Any] = {"max_steps": steps, "random_state": 0, "validation_fraction": 0.05}
    with tempfile.TemporaryDirectory() as place:
        parquet.write_table(table, Path(place, "a.parquet"), row_group_size=GROUP_ROWS)
        start = time.time()
        streamed = NITSDensity(**options).fit(place)
        between = time.time()
        whole = NITSDensity(**options).fit(table)
    each = {name: m.score_samples(test) for name, m in (("pieces", streamed), ("memory", whole))}
    difference = each["pieces"] - each["memory"]
    return {
        "steps": steps,
        "nats": {name: float(scores.mean()) for name, scores in each.items()},
        "pieces_ahead": float(difference.mean()),
        "standard_error": float(difference.std() / len(difference) ** 0.5),
        "seconds": {"pieces": between - start, "memory": time.time() - between},
    }


def main() -> None:
    """Runs one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["make", "memory", "speed", "nats"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.rows, args.minutes, args.rounds, args.steps = 60_000, 0.1, 2, 20
    if args.what == "make":
        make(args.folder, args.rows)
        return
    found = {
        "memory": lambda: memory(args.folder, args.minutes),
        "speed": lambda: speed(args.folder, args.rounds, 2 if args.quick else 200),
        "nats": lambda: nats(args.folder, args.steps),
    }[args.what]()
    print(write_figures(f"beyond-memory-{args.what}" + "-quick" * args.quick, found))


if __name__ == "__main__":
    main()
