"""A cost model of training beyond one machine: its constants here, and what it predicts.

    python benchmarks/scale_model.py [--rounds 9]     → benchmarks/results/scale-model.json
    python benchmarks/scale_model.py --quick          → benchmarks/results/scale-model-quick.json

A step of R ranks takes, with W weights, D columns and B rows in all, one thread each,

    t(R) = s + o W + (B / R) (a W + c D) + [R > 1] (l + 8 W (R − 1) / (R β))

s, o, a and c are fitted to steps of six networks by non-negative least squares of relative errors,
and checked on two others; the latency l and the bandwidth β to exchanges of two vectors by two
ranks. The first pass and the decoding of row groups are timed in values per second. The prediction
for 10⁹ rows × 100 columns takes the constants of this machine, and a stated bandwidth of a network.
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
from timing import alternately, spread

import nits
from nits.training import ranks
from nits.training.loop import Loop
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows

KNOTS, BLOCKS = 16, 2
STEPS = 10
NODES = (1, 16, 256)
ROWS, COLUMNS, HIDDEN, BATCH = 10**9, 100, 512, 2**16
ETHERNET = 1.25e9
"""Bytes per second of a network of 10 Gbit/s, and its latency; assumed, not measured."""
ETHERNET_LATENCY = 50e-6


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
    heads = [nits.heads.Continuous(knots=KNOTS)] * size.columns
    model = nits.NITS.mlp(heads, hidden=size.hidden, blocks=BLOCKS, generator=0)
    found = Loop(model, rows, None, Recipe(batch_size=size.batch), Budget(None, 10**6), 0)
    found.prepare(None)
    model.train()
    return found


@cache
def weights(size: Size) -> int:
    """Returns how many weights the network of a size has."""
    return sum(p.numel() for p in loop(size._replace(batch=64)).parameters)


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


def features(size: Size, ranks_: int = 1) -> list[float]:
    """Returns what s, o, a and c are multiplied by."""
    count, own = weights(size), size.batch / ranks_
    return [1.0, count, own * count, own * size.columns]


def constants(measured: dict[Size, float]) -> dict[str, float]:
    """Returns s, o, a and c, none of them negative, that predict the measured steps best."""
    from scipy.optimize import nnls

    rows = np.array([features(size) for size in measured])
    seconds = np.array(list(measured.values()))
    scale = rows.max(0)
    found = nnls(rows / scale / seconds[:, None], np.ones(len(seconds)))[0] / scale
    return dict(zip(("s", "o", "a", "c"), map(float, found), strict=True))


def predicted(found: dict[str, float], size: Size, ranks_: int = 1) -> float:
    """Returns the seconds of a step without its exchange."""
    parts = zip(found.values(), features(size, ranks_), strict=True)
    return sum(constant * part for constant, part in parts)


def exchange(place: Path, rounds: int) -> None:
    """Times the exchange of a short and a long vector, as one of two ranks."""
    torch.set_num_threads(1)
    with ranks.joined() as group:
        found = {}
        for count in (1_000, 4_000_000):
            parameter = torch.zeros(count, requires_grad=True)
            parameter.grad = torch.zeros(count)
            taken = []
            for _ in range(rounds + 1):
                group.together()
                begun = time.perf_counter()
                group.exchange([parameter], (0.0, 1.0, 0.0), stop=False)
                taken.append(time.perf_counter() - begun)
            found[count] = spread(taken[1:])["median"]
        if group.rank == 0:
            torch.save(found, place)


def exchanges(rounds: int) -> dict[str, float]:
    """Returns the latency and the bandwidth of exchanges between two ranks of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "found.pt")
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        own = ["--nproc-per-node=2", __file__, "--exchange", str(place), "--rounds", str(rounds)]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run([*launcher, *own], check=True, env=env)
        (few, short), (many, long) = torch.load(place).items()
    # With two ranks 8 W (R − 1) / R is 4 bytes for each weight.
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


def plan(found: dict[str, float], rates: dict[str, float], size: Size) -> list[Record]:
    """Returns the time of a pass and of an epoch of 10⁹ rows on several nodes of one core each."""
    count, lines = weights(size), []
    for nodes in NODES:
        bytes_ = 8 * count * (nodes - 1) / nodes
        waits = 0.0 if nodes == 1 else ETHERNET_LATENCY * np.log2(nodes) + bytes_ / ETHERNET
        computes = predicted(found, size, nodes)
        reads = size.batch / nodes * size.columns / rates["decoded"]  # in threads, beside the rest
        lines.append(
            {
                "nodes": nodes,
                "first_pass_hours": ROWS * size.columns / rates["first_pass"] / nodes / 3600,
                "step_seconds": computes + waits,
                "exchange_share": waits / (computes + waits),
                "reading_share": reads / (computes + waits),
                "epoch_hours": ROWS / size.batch * (computes + waits) / 3600,
            }
        )
    return lines


def figures(rounds: int, *, quick: bool) -> Record:
    """Measures the constants, and returns them with what they predict."""
    torch.set_num_threads(1)
    fitted, checked = QUICK if quick else (FITTED, CHECKED)
    measured = steps_of((*fitted, *checked), rounds)
    found = constants({size: measured[size] for size in fitted})
    rates = reading(60_000 if quick else 2_000_000)
    size = Size(6, 24, 256) if quick else Size(COLUMNS, HIDDEN, BATCH)
    return {
        "constants": found,
        "exchange": exchanges(rounds),
        "values_per_second": rates,
        "steps": [
            {
                **size_._asdict(),
                "weights": weights(size_),
                "fitted": size_ in fitted,
                "seconds": seconds,
                "predicted_over_measured": predicted(found, size_) / seconds,
            }
            for size_, seconds in measured.items()
        ],
        "planned": {**size._asdict(), "weights": weights(size), "rows": ROWS},
        "plan": plan(found, rates, size),
    }


def main() -> None:
    """Measures, or is one of the ranks that exchange."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--exchange", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.exchange is not None:
        exchange(args.exchange, args.rounds)
        return
    rounds = 2 if args.quick else args.rounds
    name = "scale-model" + "-quick" * args.quick
    print(write_figures(name, figures(rounds, quick=args.quick)))


if __name__ == "__main__":
    main()
