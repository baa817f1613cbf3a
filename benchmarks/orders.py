"""What a search for the order of the columns is worth: trials, and what longer runs make of them.

    python benchmarks/orders.py [--only NAME …] [--steps 1000] → benchmarks/results/orders-NAME.json
    python benchmarks/orders.py --only gas_turbine --steps 3000 --orders "the table's" greedy
                                                         adds longer runs over these orders to it

Tables are the files NITS_DATA/tables/NAME.csv.gz. The test rows of `suite.py` are left out, and a
tenth of the others are validation rows, which neither trials nor training see. The trials are those
of `NITSDensity(order="search")`. Then lone networks of the same style learn over several orders,
from that of the best trial to that of the worst, with the same steps and seed: do trials tell which
order is ahead? Two networks over the best order and two over different ones are mixed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from results import RESULTS, Record, circumstances, write
from scipy.stats import spearmanr
from suite_densities import held_out

import nits
from nits.model.blocks import groups
from nits.tables import orders, preparing, search
from nits.tables.search import Search, Trial
from nits.tables.teaching import taught
from nits.training.progress import Silent
from nits.training.rows import Rows

TABLES = ("gas_turbine", "magic_gamma", "diamonds", "beijing_air")
LONGER = 4
"""Orders over which networks learn longer."""


class Ready(NamedTuple):
    """A table whose columns are decided, the search for their order, and longer runs so far."""

    model: Any
    search: Search
    candidates: dict[str, list[int]]
    validation: Any
    known: dict[tuple[tuple[int, ...], int], NDArray[np.float64]]


def prepared(table: Any) -> Ready:
    """Decides what the columns are, and sets up the search that a default fit would make."""
    train, validation = held_out(table)
    model = nits.NITSDensity(random_state=0, max_steps=1).fit(train)
    model.max_steps = None
    numbers, units = model.schema_.numbers(nits.tables.zones.read(train))
    rows, columns = numbers.shape
    plan = preparing.plan(model, rows, columns, len(list(groups(model.model_.heads))))
    categories = [i for i, c in enumerate(model.schema_.columns) if c.kind == "categorical"]
    every = orders.candidates([], numbers, categories)
    found = Search.of(model, Rows(torch.from_numpy(numbers)), units, plan, 0)
    return Ready(model, found, every, validation, {})


def longer(ready: Ready, order: list[int] | None, steps: int, seed: int) -> NDArray[np.float64]:
    """Returns the nats of validation rows after longer training over an order."""
    key = (tuple(order or ()), seed)
    if key not in ready.known:
        ready.known[key] = _trained(ready, order, steps, seed)
    return ready.known[key]


def _trained(ready: Ready, order: list[int] | None, steps: int, seed: int) -> NDArray[np.float64]:
    task = ready.search.course.network(seed, 0, ready.search.course.plan.styles[0], order)
    task = task._replace(max_steps=steps)
    ready.model.model_ = taught(task, Silent()).density
    found: NDArray[np.float64] = ready.model.score_samples(ready.validation)
    return found


def spread(trials: list[Trial]) -> list[Trial]:
    """Returns trials from the best to the worst, and among them that of the table."""
    own = next(trial for trial in trials if trial.name == orders.TABLE)
    ranked = sorted((t for t in trials if t is not own), key=lambda trial: -trial.ahead)
    places = np.linspace(0, len(ranked) - 1, min(LONGER - 1, len(ranked))).round().astype(int)
    return [own, *(ranked[i] for i in places)]


def measured(ready: Ready, steps: int) -> Record:
    """Returns the trials, and the validation nats of longer runs beside them."""
    trials = ready.search.trials(ready.candidates)
    best = search.chosen(trials, ready.candidates, 2)
    tried = spread(trials)
    after = compared(ready, [trial.name for trial in tried], steps)
    ranks = spearmanr([t.ahead for t in tried], [after[t.name]["ahead"] for t in tried])
    own = longer(ready, ready.candidates[orders.TABLE], steps, 0)
    pair = [longer(ready, order, steps, k) for k, order in enumerate(best.orders)]
    alike = [pair[0], longer(ready, best.orders[0], steps, 1)]
    return {
        "columns": ready.model.schema_.names,
        "trial_steps": sum(count * s for count, s in ready.search.planned(len(ready.candidates))),
        "trials": [trial._asdict() for trial in best.trials],
        "longer": {str(steps): after},
        "rank_correlation": float(ranks.statistic),
        "mixture_of_two_orders": _ahead(_mixed(pair), own),
        "mixture_of_one_order": _ahead(_mixed(alike), own),
    }


def compared(ready: Ready, names: list[str], steps: int) -> Record:
    """Returns the validation nats of longer runs, and how far ahead of the table's order."""
    own = longer(ready, ready.candidates[orders.TABLE], steps, 0)
    return {name: _ahead(longer(ready, ready.candidates[name], steps, 0), own) for name in names}


def _mixed(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.logaddexp.reduce(parts) - np.log(len(parts))
    return found


def _ahead(values: NDArray[np.float64], own: NDArray[np.float64]) -> Record:
    """Returns the mean of rows, and how far ahead of the table's order it is."""
    here = np.isfinite(values) & np.isfinite(own)
    ahead = values[here] - own[here]
    return {
        "validation_nats": float(values[here].mean()),
        "ahead": float(ahead.mean()),
        "standard_error": float(ahead.std() / np.sqrt(len(ahead))),
    }


def main(argv: list[str] | None = None, folder: Path = RESULTS) -> int:
    """Measures the tables that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--steps", type=int, default=1000, help="of the longer runs")
    parser.add_argument("--orders", nargs="+", help="only longer runs over these, into the file")
    args = parser.parse_args(argv)
    for name in args.only:
        place = folder / f"orders-{name}.json"
        table = pandas.read_csv(Path(os.environ["NITS_DATA"]) / "tables" / f"{name}.csv.gz")
        ready = prepared(held_out(table)[0])
        if args.orders:
            found = json.loads(place.read_text(encoding="utf-8"))
            found["longer"][str(args.steps)] = compared(ready, args.orders, args.steps)
        else:
            found = {**circumstances(), "table": name, **measured(ready, args.steps)}
        write(place, found)
        print(name, found["longer"], file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
