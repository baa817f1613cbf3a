"""Members of a table trained on all cores, in one pass on one, and one after the other.

    python benchmarks/members.py [--rows 20000] [--columns 10] [--members 4] [--steps 600]
                                                         → benchmarks/results/members.json

The table is generated; networks have the default sizes of a table of this size and the first of its
styles, each holds out a fold of its own, and all take the same steps. The programs run in turn,
three times after a warm-up, so processes have been started before they are timed; how long that
takes is a figure of its own.
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
from nits.tables import sharing
from nits.tables.defaults import Plan, Style, plan
from nits.tables.tasks import Task, folds
from nits.tables.teaching import taught, taught_together
from nits.training.recipe import Recipe
from nits.weights import activations

ROUNDS = 3

SIDE_BY_SIDE, TOGETHER, ONE_THREAD, ALL_THREADS = (
    "side by side",
    "all together, one thread",
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
    style = sizes.styles[0]
    recipe = Recipe(
        batch_size=sizes.batch_size,
        learning_rate=sizes.learning_rate,
        weight_decay=style.weight_decay,
        optimizer=sizes.optimizer,
        patience=steps,
    )
    rows = nits.Rows(table(count, columns))
    found = []
    for k, part in enumerate(folds(count, members, 0.1, 0)):
        model = network(columns, sizes, style, k)
        found.append(Task(model, style.name, {}, k, rows, *part, recipe, steps, None, k))
    return found


def network(columns: int, sizes: Plan, style: Style, seed: int) -> nits.NITS:
    """Returns a network of real columns in the style of a table's members."""
    knots = sizes.knots if style.hats else 0
    return nits.NITS.mlp(
        [nits.heads.Continuous(hidden=style.pnn, knots=knots) for _ in range(columns)],
        hidden=sizes.hidden,
        blocks=sizes.blocks,
        dropout=style.dropout,
        activation=activations.named(style.activation),
        guess=style.guess,
        codes=sizes.codes,
        generator=seed,
    )


def together(workers: int, *sizes: int) -> None:
    """Trains the members in so many processes, one thread each, as the estimator does."""
    Local(workers).run(taught_together, sharing.teams(tasks(*sizes), workers))


def alone(threads: int, *sizes: int) -> None:
    """Trains one member after another, each with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for task in tasks(*sizes):
            Local(1).run(taught, [task])
    finally:
        torch.set_num_threads(before)


def measured(workers: int, *sizes: int) -> Record:
    """Returns seconds, and how many times as fast the members are side by side."""
    start = time.perf_counter()
    Local(workers).run(_nothing, range(workers))
    started = time.perf_counter() - start
    programs = {
        SIDE_BY_SIDE: partial(together, workers, *sizes),
        TOGETHER: partial(together, 1, *sizes),
        ONE_THREAD: partial(alone, 1, *sizes),
        ALL_THREADS: partial(alone, torch.get_num_threads(), *sizes),
    }
    times = alternately(programs, ROUNDS)
    others = TOGETHER, ONE_THREAD, ALL_THREADS
    faster = {name: ratios(times, name, SIDE_BY_SIDE) for name in others}
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
