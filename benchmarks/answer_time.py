"""How long answers take: one condition in the middle of 15 columns, after a warm-up.

    python benchmarks/answer_time.py [--rounds 15]  → benchmarks/results/answer-time.json

`sample` draws 1,000 rows as a DataFrame, `probability` asks for one number, `quantiles` for three.
The models are a lone network and a mixture of nine of them, of the default sizes for 5,000 rows;
how long they have learned does not matter for the time, so they learn for 20 steps. `seconds` are
those of a clock, `processor` those of this process, which other programs cannot lengthen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pandas
from results import Record, write_figures
from timing import spread

from nits import Mixture, NITSDensity

COLUMNS, ROWS, MEMBERS = 15, 5000, 9


def table() -> Any:
    """Returns real numbers, integers and categories in turn, which depend on each other."""
    rng = np.random.default_rng(0)
    common = rng.normal(0, 1, ROWS)
    found: dict[str, Any] = {}
    for k in range(COLUMNS):
        x = common + rng.normal(0, 1, ROWS)
        if k % 3 == 0:
            found[f"real{k}"] = x
        elif k % 3 == 1:
            found[f"whole{k}"] = rng.poisson(np.exp(1 + 0.5 * x))
        else:
            found[f"kind{k}"] = np.array(list("abcdef"))[np.clip(x + 3, 0, 5).astype(int)]
    return pandas.DataFrame(found)


def models() -> dict[str, NITSDensity]:
    """Returns a lone network, and a mixture of nine."""
    alone = NITSDensity(max_steps=20, random_state=0).fit(table())
    several = deepcopy(alone)
    several.model_ = Mixture([deepcopy(alone.model_) for _ in range(MEMBERS)]).eval()
    return {"lone network": alone, f"mixture of {MEMBERS}": several}


def timed(program: Callable[[], object], rounds: int) -> Record:
    """Returns the spread of seconds of the clock and of the processor."""
    program()
    clock, processor = [], []
    for _ in range(rounds):
        start = time.perf_counter(), time.process_time()
        program()
        clock.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return {"seconds": spread(clock), "processor": spread(processor)}


def figures(rounds: int) -> Record:
    """Returns the time of each answer by each model."""
    found: Record = {}
    for name, model in models().items():
        told = {
            "a range": {"whole7": (2, 6)},
            "a value": {"kind8": "c"},
        }
        for what, condition in told.items():
            programs = {
                "sample 1,000 rows": lambda c=condition, m=model: m.given(c).sample(1000, 0),
                "probability": lambda c=condition, m=model: m.given(c).probability("real9 > 0"),
                "quantiles": lambda c=condition, m=model: m.given(c).quantiles("real9"),
            }
            each = {verb: timed(program, rounds) for verb, program in programs.items()}
            found.setdefault(name, {})[what] = each
    return found


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    print(write_figures("answer-time", figures(args.rounds)))


if __name__ == "__main__":
    main()
