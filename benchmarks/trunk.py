"""How fast NITS-CONV trains and samples beside another checkout, timed in turn on one thread.

    git worktree add ../base COMMIT
    python benchmarks/trunk.py ../base [--rounds 5] [--programs sampling training]
        → benchmarks/results/trunk.json, or trunk-training.json if that is all that is timed

Both checkouts build the small size for 32 × 32 × 3 pixels from one seed, in a process each. Times
are seconds of CPU, which another program on the same core does not lengthen, as it does those of a
clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

SHAPE, BATCH, SAMPLED = (3, 32, 32), 8, 16
PROGRAMS = ("sampling", "training")
WHAT = {
    "sampling": f"the first `rows` rows of {SAMPLED} images of 32 × 32 × 3, column by column",
    "training": f"batch {BATCH}: zero_grad, log_prob, backward, fused AdamW",
}
HERE = Path(__file__).resolve().parent.parent


def programs(rows: int) -> dict[str, Callable[[], object]]:
    """Returns what is timed, with the `nits` that this process imports.

    rows: How many rows of pixels are drawn.
    """
    from nits import NITS, kernels
    from nits.heads import Quantized

    torch.set_num_threads(1)
    source = torch.Generator().manual_seed(0)
    columns = SHAPE[0] * SHAPE[1] * SHAPE[2]
    images = torch.randint(0, 256, (BATCH, columns), generator=source).float()
    model = NITS.conv(SHAPE, Quantized(0.0, 1.0, 256, (8, 8)), generator=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def training() -> None:
        with kernels.using(training=True):
            optimizer.zero_grad()
            (-model(images).mean()).backward()
            optimizer.step()

    @torch.no_grad()
    def sampling() -> float:
        steps = model.steps(SAMPLED)
        generator, total = torch.Generator().manual_seed(0), 0.0
        for _ in range(columns * rows // SHAPE[1]):
            drawn = steps.quantile(torch.rand(SAMPLED, generator=generator))
            steps.feed(drawn)
            total += float(drawn.sum())
        return total

    return {"sampling": sampling, "training": training}


def serve(rows: int) -> None:
    """Runs the program whose name comes on each line of the input, and writes its seconds."""
    known = programs(rows)
    for line in sys.stdin:
        start = time.process_time()
        found = known[line.strip()]()
        print(time.process_time() - start, found, flush=True)


class Checkout:
    """A process that runs programs with the code of one checkout."""

    def __init__(self, folder: Path, rows: int) -> None:
        place = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", "--rows", str(rows)],
            env=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str) -> tuple[float, str]:
        """Returns the seconds of a program, and what it returned."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the process of a checkout must have pipes, but has none.")
        self.process.stdin.write(f"{program}\n")
        self.process.stdin.flush()
        seconds, found = self.process.stdout.readline().split()
        return float(seconds), found


def compared(base: Path, names: list[str], rounds: int, rows: int) -> dict[str, object]:
    """Returns the seconds of both checkouts and their ratio, for each program."""
    from timing import ratios, seconds

    checkouts = {"base": Checkout(base, rows), "here": Checkout(HERE, rows)}
    found: dict[str, object] = {}
    for name in names:
        times: dict[str, list[float]] = {key: [] for key in checkouts}
        drawn: dict[str, str] = {}
        for counted in (False, *(True,) * rounds):
            for key, checkout in checkouts.items():
                spent, drawn[key] = checkout.run(name)
                times[key] += [spent] * counted
        found[name] = {
            "what": WHAT[name],
            "seconds": seconds(times),
            "base_over_here": ratios(times, "base", "here"),
            "same_result": drawn["base"] == drawn["here"],
        }
    for checkout in checkouts.values():
        checkout.process.communicate()
    return found


def main(argv: list[str] | None = None) -> int:
    """Compares the checkouts and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, nargs="?", help="folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--rows", type=int, default=SHAPE[1], help="rows of pixels to draw")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.serve:
        serve(args.rows)
        return 0
    if args.base is None or not (args.base / "src" / "nits").is_dir():
        print("error: base must be a checkout with src/nits in it.", file=sys.stderr)
        return 2
    from results import write_figures

    git = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(git, cwd=args.base, capture_output=True, text=True, check=True)
    figures = compared(args.base, args.programs, args.rounds, args.rows)
    about = {"base": commit.stdout.strip(), "rounds": args.rounds, "rows": args.rows}
    name = "trunk-training" if args.programs == ["training"] else "trunk"
    print(write_figures(name, about | figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
