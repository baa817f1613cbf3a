"""Members of a table trained side by side, one core each, beside one after the other.

    python benchmarks/members.py [--rows 20000] [--columns 10] [--members 4] [--steps 600]
                                                         → benchmarks/results/members.json

The table is generated; networks have the default sizes of a table of this size, and all take the
same steps. The programs run in turn, three times after a warm-up, so processes have been started
before they are timed; how long that takes is a figure of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

import torch
from results import Record, write_figures
from timing import alternately, ratios, seconds

import nits
from nits.engines.local import Local
from nits.tables.defaults import plan
from nits.tables.members import Task, trained
from nits.training.recipe import Recipe
from nits.training.rows import parted

ROUNDS = 3

SIDE_BY_SIDE, ONE_THREAD, ALL_THREADS = (
    "side by side",
    "one after another, one thread",
    "one after another, all threads",
)


def table(count: int, columns: int) -> torch.Tensor:
    """Returns rows of columns that bend with the columns before them."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(count, columns, generator=generator)
    rows = noise.clone()
    for i in range(1, columns):
        rows[:, i] = torch.sin(2 * rows[:, i - 1]) + 0.3 * noise[:, i]
    return (rows - rows.mean(0)) / rows.std(0)


def tasks(count: int, columns: int, members: int, steps: int) -> list[Task]:
    """Returns what the members need to train; each call, networks with the same initial weights."""
    sizes = plan(count, columns)
    recipe = Recipe(
        batch_size=sizes.batch_size,
        learning_rate=sizes.learning_rate,
        optimizer=sizes.optimizer,
        patience=steps,
    )
    rows = nits.Rows(table(count, columns))
    found = []
    for seed in range(members):
        torch.manual_seed(seed)
        heads: list[nits.heads.Head] = [
            nits.heads.Continuous(knots=sizes.knots) for _ in range(columns)
        ]
        model = nits.NITS.mlp(
            heads, hidden=sizes.hidden, blocks=sizes.blocks, dropout=sizes.dropout
        )
        fitted, held_out = parted(count, 0.1, seed)
        found.append(Task(model, rows, fitted, held_out, recipe, steps, None, seed))
    return found


def together(workers: int, *sizes: int) -> None:
    """Trains the members in so many processes, one thread each."""
    Local(workers).run(trained, tasks(*sizes))


def alone(*sizes: int) -> None:
    """Trains one member after another, each with all threads."""
    for task in tasks(*sizes):
        Local(1).run(trained, [task])


def measured(workers: int, *sizes: int) -> Record:
    """Returns seconds, and how many times as fast the members are side by side."""
    start = time.perf_counter()
    Local(workers).run(_nothing, range(workers))
    started = time.perf_counter() - start
    programs = {
        SIDE_BY_SIDE: partial(together, workers, *sizes),
        ONE_THREAD: partial(together, 1, *sizes),
        ALL_THREADS: partial(alone, *sizes),
    }
    times = alternately(programs, ROUNDS)
    faster = {name: ratios(times, name, SIDE_BY_SIDE) for name in (ONE_THREAD, ALL_THREADS)}
    return {"start_seconds": started, "seconds": seconds(times), "times_as_fast_as": faster}


def _nothing(task: int, reporter: object) -> int:
    return task


def main(argv: list[str] | None = None) -> int:
    """Times the programs, and writes the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600, help="of each member")
    args = parser.parse_args(argv)
    workers = min(Local().workers, args.members)
    figures = measured(workers, args.rows, args.columns, args.members, args.steps)
    place = write_figures("members", {**vars(args), "workers": workers, **figures})
    print(f"wrote {place}: {figures}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
