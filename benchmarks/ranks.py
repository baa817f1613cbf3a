"""One model on two ranks of one thread against one rank of one thread, timed in turn.

    python benchmarks/ranks.py speed [--rounds 5] [--steps 10]  → benchmarks/results/ranks.json
    python benchmarks/ranks.py weights [--steps 200]     → benchmarks/results/ranks-weights.json

63 columns of the PNN that large tables have, hidden 512, four blocks, 2,048 rows per step in all.
`speed`: each rank is started once, takes a few steps, and waits for its turn, so that rounds of one
rank alone and of both together alternate. `waits` is what the exchange of a step takes on the first
rank, and `bytes` what it exchanges. It needs two cores that nobody else uses. `weights` compares
those of both after some steps; one rank, too, then adds up the gradients of two parts of a batch.
With --quick each is small, and its file ends in -quick.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from results import Record, write_figures
from timing import as_fit, spread

import nits
from nits.training import ranks
from nits.training.loop import Loop
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows

COLUMNS, HIDDEN, BLOCKS, BATCH, WARM = 63, 512, 4, 2048, 3
PNN = (32,)


def loop(parts: int) -> Loop:
    """Returns a run that has its start weights.

    parts: Of a batch, whose gradients are added up.
    """
    x = torch.randn(40_000, COLUMNS, generator=torch.Generator().manual_seed(0))
    rows = Rows(x @ torch.linalg.qr(torch.randn(COLUMNS, COLUMNS)).Q + x.roll(1, 1))
    heads = [nits.heads.Continuous(hidden=PNN, knots=16)] * COLUMNS
    model = nits.NITS.mlp(heads, hidden=HIDDEN, blocks=BLOCKS, generator=0)
    found = Loop(model, rows, None, Recipe(batch_size=BATCH, parts=parts), Budget(None, 10**6), 0)
    found.prepare(None)
    model.train()
    return found


def rank(place: Path, rounds: int, steps: int, parts: int) -> None:
    """Takes steps as one of several ranks, or alone; writes times and the last weights."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with ranks.joined() as group, as_fit():
        run = loop(parts)
        for _ in range(WARM):
            run.advance(0.5)
        times, waits = [], []
        for k in range(rounds):
            _turn(place, group, k)
            begun, before = time.perf_counter(), run.ranks.waited
            for _ in range(steps):
                run.advance(0.5)
            times.append((time.perf_counter() - begun) / steps)
            waits.append((run.ranks.waited - before) / steps)
            if group.rank == 0:
                (place / f"done-{group.size}-{k}").touch()
        if group.rank == 0:
            size = sum(p.numel() for p in run.parameters)
            sent = run.exchanged.count
            about = {"seconds": times, "waits": waits, "weights": size, "exchanged": sent}
            torch.save((about, run.model.state_dict()), place / f"{group.size}.pt")


def _turn(place: Path, group: ranks.Ranks, k: int) -> None:
    """Waits until the other program has had its turn."""
    other = place / (f"done-2-{k - 1}" if group.size == 1 else f"done-1-{k}")
    while not (group.size == 1 and k == 0) and not other.exists():
        time.sleep(0.05)


def both(rounds: int, steps: int, parts: int = 1) -> tuple[Any, Any]:
    """Runs one rank and two ranks, which wait for each other."""
    with tempfile.TemporaryDirectory() as folder:
        own = [__file__, "rank", folder, "--rounds", str(rounds), "--steps", str(steps)]
        own += ["--parts", str(parts)]
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        started = [
            subprocess.Popen([sys.executable, *own], env=env),
            subprocess.Popen([*launcher, "--nproc-per-node=2", *own], env=env),
        ]
        for process in started:
            if process.wait():
                raise RuntimeError(f"{process.args!r} has failed")
        one, two = (torch.load(Path(folder, f"{size}.pt")) for size in (1, 2))
        return one, two


def speed(rounds: int, steps: int) -> Record:
    """Returns seconds per step, their ratio, and what a step waits for."""
    (one, _), (two, _) = both(rounds, steps)
    pairs = zip(one["seconds"], two["seconds"], strict=True)
    return {
        **{"columns": COLUMNS, "hidden": HIDDEN, "batch": BATCH, "weights": one["weights"]},
        "seconds_per_step": {"one": spread(one["seconds"]), "two": spread(two["seconds"])},
        "two_over_one": spread([a / b for a, b in pairs]),
        "waits": spread(two["waits"]),
        "exchanged": one["exchanged"],
        "bytes": 4 * (one["exchanged"] + ranks.EXTRAS),
    }


def weights(steps: int) -> Record:
    """Returns how far the weights of one rank and of two differ after some steps."""
    (_, alone), (_, together) = both(1, steps - WARM, parts=2)
    apart = [
        float((alone[n].double() - together[n].double()).abs().max())
        for n in alone
        if alone[n].numel()
    ]
    return {"steps": steps, "weights_apart": max(apart)}


def main() -> None:
    """Measures, or is one of the ranks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "weights", "rank"])
    parser.add_argument("place", type=Path, nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--parts", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.what == "rank":
        rank(args.place, args.rounds, args.steps, args.parts)
    elif args.what == "speed":
        rounds, steps = (2, 2) if args.quick else (args.rounds, args.steps or 10)
        print(write_figures("ranks" + "-quick" * args.quick, speed(rounds, steps)))
    else:
        steps = WARM + 2 if args.quick else args.steps or 200
        print(write_figures("ranks-weights" + "-quick" * args.quick, weights(steps)))


if __name__ == "__main__":
    main()
