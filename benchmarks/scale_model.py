"""The constants of a cost model of training beyond one machine, measured here.

    python benchmarks/scale_model.py steps [--rounds 7]     → benchmarks/results/scale-steps.json
    python benchmarks/scale_model.py exchange [--rounds 25] → benchmarks/results/scale-exchange.json

A step of R ranks takes, with W weights, D columns and B rows in all, one thread each,

    t(R) = s + o W + (B / R) (a W + c D) + [R > 1] (l log₂ R + 8 E (R − 1) / (R β))

if E of the weights are exchanged.

`steps`: s, o, a and c are fitted to steps of six networks, of the sort that large tables have, by
non-negative least squares of relative errors, and checked on two others. The first pass and the
decoding of row groups are timed in values per second. `exchange` fits l and β to exchanges of two
vectors by two ranks; it needs two cores that nobody else uses. With --quick both are small, and
their files end in -quick.json. What follows from the constants: scale_plan.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from beyond_memory import some
from pyarrow import parquet
from results import Record, write_figures
from timing import alternately, as_fit, spread

import nits
from nits.training import ranks
from nits.training.exchange import Gradient
from nits.training.loop import Loop
from nits.training.optimizers import ScheduleFree
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows

PNN, KNOTS, BLOCKS, DROPOUT = (32,), 32, 2, 0.1
"""As `nits.tables.defaults` has them for large tables."""

STEPS = 4


class Size(NamedTuple):
    """A network and its batch."""

    columns: int
    hidden: int
    batch: int


FITTED = (
    *(Size(10, 128, 1024), Size(10, 512, 1024), Size(63, 256, 1024)),
    *(Size(63, 512, 256), Size(63, 512, 2048), Size(30, 384, 512)),
)
CHECKED = (Size(40, 256, 2048), Size(20, 512, 512))
QUICK = (Size(4, 16, 64), Size(8, 32, 64), Size(8, 16, 128), Size(4, 32, 32)), (Size(6, 24, 64),)


def loop(size: Size) -> Loop:
    """Returns a training run that has its start weights."""
    generator = torch.Generator().manual_seed(0)
    rows = Rows(torch.randn(8 * size.batch, size.columns, generator=generator))
    heads = [nits.heads.Continuous(hidden=PNN, knots=KNOTS)] * size.columns
    model = nits.NITS.mlp(heads, hidden=size.hidden, blocks=BLOCKS, dropout=DROPOUT, generator=0)
    recipe = Recipe(batch_size=size.batch, optimizer=ScheduleFree())
    found = Loop(model, rows, None, recipe, Budget(None, 10**6), 0)
    found.prepare(None)
    model.train()
    return found


@cache
def weights(size: Size) -> int:
    """Returns how many weights the network of a size has."""
    return sum(p.numel() for p in loop(size._replace(batch=64)).parameters)


@cache
def exchanged(size: Size) -> int:
    """Returns how many of them ranks exchange."""
    return loop(size._replace(batch=64)).exchanged.count


def steps_of(sizes: tuple[Size, ...], rounds: int) -> dict[Size, float]:
    """Returns the median seconds of a step of each network, timed in turn."""
    loops = {size: loop(size) for size in sizes}

    def program(run: Loop) -> Any:
        def steps() -> None:
            for _ in range(STEPS):
                run.advance(0.5)

        return steps

    programs = {str(k): program(run) for k, run in enumerate(loops.values())}
    times = alternately(programs, rounds)
    return {size: spread(times[str(k)])["median"] / STEPS for k, size in enumerate(sizes)}


class Work(NamedTuple):
    """What a step has to do."""

    weights: int
    columns: int
    batch: int
    exchanged: int

    @classmethod
    def of(cls, size: Size) -> Work:
        """Returns that of a network."""
        return cls(weights(size), size.columns, size.batch, exchanged(size))


def features(work: Work, ranks_: int = 1) -> list[float]:
    """Returns what s, o, a and c are multiplied by."""
    own = work.batch / ranks_
    return [1.0, work.weights, own * work.weights, own * work.columns]


def constants(measured: dict[Size, float]) -> dict[str, float]:
    """Returns s, o, a and c, none of them negative, that predict the measured steps best."""
    from scipy.optimize import nnls

    rows = np.array([features(Work.of(size)) for size in measured])
    seconds = np.array(list(measured.values()))
    scale = rows.max(0)
    found = nnls(rows / scale / seconds[:, None], np.ones(len(seconds)))[0] / scale
    return dict(zip(("s", "o", "a", "c"), map(float, found), strict=True))


def predicted(found: dict[str, float], work: Work, ranks_: int = 1) -> float:
    """Returns the seconds of a step without its exchange."""
    parts = zip(found.values(), features(work, ranks_), strict=True)
    return sum(constant * part for constant, part in parts)


def exchange(place: Path, rounds: int) -> None:
    """Times the exchange of a short and a long vector, as one of two ranks."""
    torch.set_num_threads(1)
    with ranks.joined() as group:
        found = {}
        for count in (1_000, 4_000_000):
            parameter = torch.nn.Parameter(torch.zeros(count))
            parameter.grad = torch.zeros(count)
            gradient = Gradient(torch.nn.ParameterList([parameter]), ranks.EXTRAS)
            taken = []
            for _ in range(rounds + 1):
                group.together()
                begun = time.perf_counter()
                group.exchange(gradient, (0.0, 1.0, 0.0), stop=False, divided=True)
                taken.append(time.perf_counter() - begun)
            found[count] = spread(taken[1:])["median"]
        if group.rank == 0:
            torch.save(found, place)


def exchanges(rounds: int) -> dict[str, float]:
    """Returns the latency and the bandwidth of exchanges between two ranks of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "found.pt")
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        own = ["--nproc-per-node=2", __file__, "rank", str(place), "--rounds", str(rounds)]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run([*launcher, *own], check=True, env=env)
        (few, short), (many, long) = torch.load(place).items()
    # With two ranks 8 E (R − 1) / R is 4 bytes for each weight.
    return {"latency": short, "bandwidth": 4 * (many - few) / (long - short)}


def reading(rows: int) -> dict[str, float]:
    """Returns values per second of the first pass, and of row groups decoded and put on scales."""
    from nits.tables.stream import decide, fitting, scan
    from nits.tables.stream.source import opened

    with tempfile.TemporaryDirectory() as folder:
        table = some(rows, 0)
        parquet.write_table(table, Path(folder, "a.parquet"), row_group_size=2**17)
        with opened(folder) as source:
            begun = time.perf_counter()
            scanned = scan.scanned(source, np.empty(0, np.int64))
            passed = time.perf_counter() - begun
            schema = decide.infer(scanned)[0]
            pieces = fitting.Coded(source, schema, schema.select([]))
            begun = time.perf_counter()
            for piece in range(len(pieces.sizes)):
                pieces.read(piece)
            decoded = time.perf_counter() - begun
    values = rows * table.num_columns
    return {"first_pass": values / passed, "decoded": values / decoded}


def steps(rounds: int, *, quick: bool) -> Record:
    """Measures steps and reading, and returns them with the constants that they give."""
    torch.set_num_threads(1)
    fitted, checked = QUICK if quick else (FITTED, CHECKED)
    with as_fit():
        measured = steps_of((*fitted, *checked), rounds)
    found = constants({size: measured[size] for size in fitted})
    return {
        "constants": found,
        "values_per_second": reading(60_000 if quick else 2_000_000),
        "steps": [
            {
                **size._asdict(),
                "weights": weights(size),
                "fitted": size in fitted,
                "seconds": seconds,
                "predicted_over_measured": predicted(found, Work.of(size)) / seconds,
            }
            for size, seconds in measured.items()
        ],
    }


def main() -> None:
    """Measures, or is one of the ranks that exchange."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["steps", "exchange", "rank"])
    parser.add_argument("place", type=Path, nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    tail = "-quick" * args.quick
    if args.what == "rank":
        exchange(args.place, args.rounds)
    elif args.what == "steps":
        found = steps(2 if args.quick else args.rounds or 7, quick=args.quick)
        print(write_figures("scale-steps" + tail, found))
    else:
        rates = exchanges(2 if args.quick else args.rounds or 25)
        print(write_figures("scale-exchange" + tail, dict(rates)))


if __name__ == "__main__":
    main()
