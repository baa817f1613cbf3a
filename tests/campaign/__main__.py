"""The campaign's command: python -m campaign tables [--case N | --cases N | --minutes M]."""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable

from campaign import attack_tables, attack_values
from campaign.steps import Failure, clock, progress

ATTACKS: dict[str, Callable[[int], str]] = {
    "tables": attack_tables.run,
    "values": attack_values.run,
}


def main() -> int:
    """Runs attacks; returns 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m campaign")
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []], default=[])
    parser.add_argument("--case", type=int, help="one case only")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    names = args.attacks or list(ATTACKS)
    failed = 0
    for name in names:
        failed += _attack(name, args, 60 * args.minutes / len(names))
    return 1 if failed else 0


def _attack(name: str, args: argparse.Namespace, seconds: float) -> int:
    if args.case is not None:
        cases = range(args.case, args.case + 1)
    else:
        cases = range(args.first, args.first + args.cases)
    counts: Counter[str] = Counter()
    start = clock()
    slowest = 0.0
    for case in cases:
        began = clock()
        if began - start > seconds:
            break
        counts[_one(name, case)] += 1
        slowest = max(slowest, clock() - began)
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    progress(f"{name}: {counts.total()} cases, {told}; slowest {slowest:.1f} s")
    return counts["failed"]


def _one(name: str, case: int) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return ATTACKS[name](case)
    except Failure as failure:
        progress(f"FAILED: PYTHONPATH=tests python -m campaign {name} --case {case}\n  {failure}")
        return "failed"


if __name__ == "__main__":
    sys.exit(main())
