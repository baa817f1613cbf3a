"""Attacks the files of nits: models and checkpoints, signals, and disks that are full.

    python tests/campaign/files.py --minutes 20          all attacks in turn, with new seeds
    python tests/campaign/files.py models 1234           one case

Every case that fails is printed as the command that repeats it; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from campaign import commands, models  # noqa: E402

ATTACKS: dict[str, Callable[[int], str | None]] = {
    "models": models.attack,
    "signals": commands.signalled,
    "disk": commands.starved,
}

MODELS_AT_ONCE = 50
"""Cases of models for each case of a command, which takes as long."""

SLOW = 5.0
"""Seconds that a model file may take."""

MEMORY = 2**30
"""Bytes by which reading model files may raise what this process has had at most."""


def main() -> int:
    """Runs one case, or as many as there is time for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", nargs="?", choices=list(ATTACKS))
    parser.add_argument("case", nargs="?", type=int)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.case is not None:
        found = case(args.attack, args.case)
        print(found or "fine")
        return 1 if found else 0
    return campaign([args.attack] if args.attack else list(ATTACKS), args.minutes, args.seed)


def campaign(names: list[str], minutes: float, seed: int) -> int:
    """Runs cases for some minutes; prints those that fail, and counts them all."""
    chance = random.Random(seed)
    counts = dict.fromkeys(names, 0)
    failures = 0
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline:
        for name in names:
            for _ in range(MODELS_AT_ONCE if name == "models" else 1):
                number = chance.randrange(2**31)
                counts[name] += 1
                if found := case(name, number):
                    failures += 1
                    print(f"python tests/campaign/files.py {name} {number}  # {found}", flush=True)
    told = ", ".join(f"{count} of {name}" for name, count in counts.items())
    print(f"{told}: {failures} failed")
    return 1 if failures else 0


def case(name: str, number: int) -> str | None:
    """Runs one case; returns what went wrong."""
    if name != "models":
        return ATTACKS[name](number)
    models.folder()
    before, start = _peak(), time.monotonic()
    found = ATTACKS[name](number)
    if (seconds := time.monotonic() - start) > SLOW:
        found = found or f"it took {seconds:.1f} s"
    if (grown := _peak() - before) > MEMORY:
        found = found or f"it took {grown >> 20} MB"
    return found


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    sys.exit(main())
