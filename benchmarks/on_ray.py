"""A Ray cluster of this machine, a head and two nodes of one CPU, beside one process.

    python benchmarks/on_ray.py members [--rounds 1]     → benchmarks/results/ray-members.json
    python benchmarks/on_ray.py scores FOLDER [--files 10]    → benchmarks/results/ray-scores.json

`members`: five members learn on the two nodes, and one after another here, in turn; the weights of
both are compared bit by bit. `scores`: `nits score` of some files, of two million rows each, of the
folder that beyond_memory.py makes, by Ray Data, and in one process; ten of its columns are in the
model. With --quick both are small, and their files are ray-members-quick.json and so on. Both need
two cores that nobody else uses.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from beyond_memory import some
from pyarrow import dataset
from results import Record, write_figures
from timing import alternately, ratios, seconds

from nits import NITSDensity
from nits.cli.main import main as nits
from nits.engines import Local, Ray

MEMBERS, SCORED_COLUMNS = 5, 10


@contextmanager
def cluster() -> Iterator[None]:
    """Starts a head without CPUs and two nodes of one CPU each."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_worker_niceness", "0")  # as the process that they are raced with
    found: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        found.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = found.address
    try:
        yield
    finally:
        ray.shutdown()
        found.shutdown()


def members(rounds: int, rows: int, steps: int) -> Record:
    """Returns the seconds of five members here and on two nodes, and whether bits are the same."""
    table = some(rows, 0)
    fitted: dict[str, Any] = {}

    def fit(name: str, engine: Any, steps: int) -> None:
        model = NITSDensity(
            max_steps=steps, members=MEMBERS, random_state=0, outliers=False, engine=engine
        )
        fitted[name] = model.fit(table)

    programs = {
        "one after another": lambda: fit("one after another", Local(1), steps),
        "two nodes": lambda: fit("two nodes", Ray(workers=2), steps),
    }
    for name, engine in (("one after another", Local(1)), ("two nodes", Ray(workers=2))):
        fit(name, engine, 3)  # which starts processes
    times = alternately(programs, rounds, warm_up=False)
    states = [model.model_.state_dict() for model in fitted.values()]
    return {
        "members": MEMBERS,
        "rows": rows,
        "steps": steps,
        "seconds": seconds(times),
        "two_nodes_ahead": ratios(times, "one after another", "two nodes"),
        "same_bits": all(torch.equal(t, states[1][name]) for name, t in states[0].items()),
    }


def scores(folder: Path, files: int) -> Record:
    """Returns the seconds of scores in one process and on two nodes, and whether they are equal."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "table").mkdir()
        for path in sorted(folder.absolute().glob("*.parquet"))[:files]:
            (place / "table" / path.name).symlink_to(path)
        rows = dataset.dataset(place / "table").count_rows()
        some_rows = some(100_000, 0)
        model = NITSDensity(max_steps=200, members=1, hidden=128, random_state=0, outliers=False)
        model.fit(some_rows.select(some_rows.column_names[:SCORED_COLUMNS])).save(place / "m.nits")
        taken = {
            how: _scored(place, how, options)
            for how, options in (("two nodes", ["--engine", "ray"]), ("one process", []))
        }
        found = [dataset.dataset(place / how).to_table() for how in taken]
    return {
        "rows": rows,
        "columns": SCORED_COLUMNS,
        "seconds": taken,
        "two_nodes_ahead": taken["one process"] / taken["two nodes"],
        "same_scores": found[0].equals(found[1]),
    }


def _scored(place: Path, how: str, options: list[str]) -> float:
    torch.set_num_threads(1)
    begun = time.perf_counter()
    paths = [str(place / "m.nits"), str(place / "table"), "-o", f"{place / how}/"]
    if nits(["score", *paths, "--quiet", *options]):
        raise RuntimeError(f"the scores of {how} have failed")
    return time.perf_counter() - begun


def main() -> None:
    """Runs one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["members", "scores"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--files", type=int, default=10, help="that are scored")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.what == "scores" and args.folder is None:
        parser.error("scores need the folder that beyond_memory.py makes")
    with cluster():
        if args.what == "members":
            found = members(*((2, 600, 10) if args.quick else (args.rounds, 100_000, 500)))
        else:
            found = scores(args.folder, 1 if args.quick else args.files)
    print(write_figures(f"ray-{args.what}" + "-quick" * args.quick, found))


if __name__ == "__main__":
    main()
