"""What the cost model of scale_model.py predicts: runs that were measured, and a large cluster.

    python benchmarks/scale_plan.py           → benchmarks/results/scale-plan.json
    python benchmarks/scale_plan.py --quick   → benchmarks/results/scale-plan-quick.json

Nothing is measured here. The constants are those of scale_model.py. What they predict is held
against the runs of ranks.py and beyond_memory.py; then come 10⁹ rows × 100 columns on nodes like
this one, with a stated network between them.
"""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

import numpy as np
from results import RESULTS, Record, write_figures
from scale_model import Size, Work, predicted

NODES, CORES = (1, 16, 256), 2
ROWS, COLUMNS, HIDDEN, BATCH = 10**9, 100, 512, 2**16
ETHERNET = 1.25e9
"""Bytes per second of a network of 10 Gbit/s, and its latency; assumed, not measured."""
ETHERNET_LATENCY = 50e-6


class Machine(NamedTuple):
    """The constants of a cluster.

    own: s, o, a and c.
    latency, bandwidth: Of the exchange between ranks.
    reading, passing: Values per second that are decoded, and that the first pass sees.
    """

    own: dict[str, float]
    latency: float
    bandwidth: float
    reading: float
    passing: float

    def waits(self, work: Work, ranks_: int) -> float:
        """Returns the seconds of an exchange."""
        if ranks_ == 1:
            return 0.0
        sent = 8 * work.exchanged * (ranks_ - 1) / ranks_
        return float(self.latency * np.log2(ranks_) + sent / self.bandwidth)

    def reads(self, work: Work, ranks_: int) -> float:
        """Returns the seconds for which threads of a rank decode the rows of a step."""
        return work.batch / ranks_ * work.columns / self.reading

    def step(self, work: Work, ranks_: int) -> float:
        """Returns the seconds of a step whose rows come from files."""
        parts = self.waits(work, ranks_) + self.reads(work, ranks_)
        return predicted(self.own, work, ranks_) + parts


def planned(machine: Machine, work: Work, nodes: int) -> Record:
    """Returns the time of a pass and of an epoch of 10⁹ rows on so many nodes."""
    ranks_ = nodes * CORES
    step = machine.step(work, ranks_)
    return {
        "nodes": nodes,
        "first_pass_hours": ROWS * work.columns / machine.passing / ranks_ / 3600,
        "step_seconds": step,
        "exchange_share": machine.waits(work, ranks_) / step,
        "reading_share": machine.reads(work, ranks_) / step,
        "epoch_hours": ROWS / work.batch * step / 3600,
    }


def levels_off(machine: Machine, work: Work) -> float:
    """Returns at how many ranks half of a step is the exchange and what all must do alike."""
    own = machine.own
    rows = work.batch * (own["a"] * work.weights + own["c"] * work.columns)
    alike = own["s"] + own["o"] * work.weights + 8 * work.exchanged / machine.bandwidth
    return float(rows / alike)


def changed(machine: Machine, work: Work, nodes: int) -> list[Record]:
    """Returns what an epoch on so many nodes would take if something were built otherwise."""
    without = {**machine.own, "o": machine.own["o"] / (nodes * CORES)}
    exchanged = machine.waits(work, nodes * CORES)
    ways = {
        "as it is": machine.step(work, nodes * CORES),
        "gradients of 16 bits": machine._replace(bandwidth=2 * machine.bandwidth).step(
            work, nodes * CORES
        ),
        "25 Gbit/s": machine._replace(bandwidth=2.5 * machine.bandwidth).step(work, nodes * CORES),
        "optimizer shared out": machine._replace(own=without).step(work, nodes * CORES),
        "exchange hidden behind the backward pass": machine.step(work, nodes * CORES) - exchanged,
    }
    found = [
        {"what": name, "epoch_hours": ROWS / work.batch * seconds / 3600}
        for name, seconds in ways.items()
    ]
    larger = work._replace(batch=4 * work.batch)
    hours = ROWS / larger.batch * machine.step(larger, nodes * CORES) / 3600
    return [*found, {"what": f"{larger.batch:,} rows per step", "epoch_hours": hours}]


def runs(machine: Machine, tail: str) -> list[Record]:
    """Returns what is predicted of runs that were measured, and what they took."""
    found: list[tuple[str, float, float]] = []
    if told := _told("ranks" + tail):
        work = Work(told["weights"], told["columns"], told["batch"], told["exchanged"])
        for ranks_, name in ((1, "one"), (2, "two")):
            seconds = predicted(machine.own, work, ranks_) + machine.waits(work, ranks_)
            measured = told["seconds_per_step"][name]["median"]
            found.append((f"step of {name} rank{'s' * (ranks_ - 1)}, s", measured, seconds))
    if told := _told("beyond-memory-memory" + tail):
        work = Work(told["weights"], told["columns"], told["batch"], 0)  # by one process
        measured = told["batch"] / told["rows_per_second"]
        found.append(("step from pieces, s", measured, machine.step(work, 1)))
        seconds = told["rows"] * told["columns"] / machine.passing
        found.append(("first pass, s", told["first_pass_seconds"], seconds))
    return [
        {"what": what, "measured": measured, "predicted_over_measured": seconds / measured}
        for what, measured, seconds in found
    ]


def _told(name: str) -> Record | None:
    """Returns the figures of a result file, if there is one."""
    place = RESULTS / f"{name}.json"
    return json.loads(place.read_text(encoding="utf-8"))["results"] if place.exists() else None


def plan(*, quick: bool) -> Record:
    """Returns what the constants predict."""
    tail = "-quick" * quick
    known, link = _told("scale-steps" + tail), _told("scale-exchange" + tail)
    if known is None or link is None:
        raise SystemExit("error: run scale_model.py first.")
    rates = known["values_per_second"]
    here = Machine(
        known["constants"],
        link["latency"],
        link["bandwidth"],
        rates["decoded"],
        rates["first_pass"],
    )
    far = here._replace(latency=ETHERNET_LATENCY, bandwidth=ETHERNET)
    size = Size(6, 24, 256) if quick else Size(COLUMNS, HIDDEN, BATCH)
    work = Work.of(size)
    return {
        "runs": runs(here, tail),
        "planned": {**size._asdict(), "weights": work.weights, "rows": ROWS, "cores": CORES},
        "plan": [planned(here if n == 1 else far, work, n) for n in NODES],
        "levels_off_at_ranks": levels_off(far, work),
        "changes": {"nodes": NODES[-1], "ways": changed(far, work, NODES[-1])},
    }


def main() -> None:
    """Predicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print(write_figures("scale-plan" + "-quick" * args.quick, plan(quick=args.quick)))


if __name__ == "__main__":
    main()
