"""The campaign's command: python -m campaign [ATTACK …] [--case N | --first N --cases N].

    PYTHONPATH=tests python -m campaign --minutes 60            all attacks, a share of time each
    PYTHONPATH=tests python -m campaign tables --case 1234      one case
    PYTHONPATH=tests python -m campaign tables --cases 1000 --record

A case is a number, from which all else follows. Those that fail are printed as the command that
repeats them; the exit code is then 1.
"""

import argparse
import sys
import warnings

from campaign.attacks import ATTACKS
from campaign.record import Tally
from campaign.steps import Failure, clock, progress


def main() -> int:
    """Runs attacks; returns 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m campaign")
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []], default=[])
    parser.add_argument("--case", type=int, help="one case only")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, help="by default as many as there is time for")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument(
        "--record", action="store_true", help="write benchmarks/results/campaign-ATTACK.json"
    )
    args = parser.parse_args()
    names = args.attacks or list(ATTACKS)
    failed = sum(_attack(name, args, 60 * args.minutes / len(names)) for name in names)
    return 1 if failed else 0


def _attack(name: str, args: argparse.Namespace, seconds: float) -> int:
    first, count = args.first, args.cases
    if args.case is not None:
        first, count = args.case, 1
    ATTACKS[name].prepare()
    tally = Tally(name, first, kept=args.record)
    case, start = first, clock()
    while (count is None or case < first + count) and clock() - start < seconds:
        tally.add(*_one(name, case))
        case += 1
    tally.write()
    progress(tally.told)
    return len(tally.failures)


def _one(name: str, case: int) -> tuple[str, float, str | None]:
    """Runs a case; returns what became of it, the seconds, and the command if it failed."""
    began = clock()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = ATTACKS[name].run(case)
    except Failure as failure:
        command = f"PYTHONPATH=tests python -m campaign {name} --case {case}"
        progress(f"FAILED: {command}\n  {failure}")
        return "failed", clock() - began, f"{command}  # {str(failure).splitlines()[0]}"
    return found, clock() - began, None


if __name__ == "__main__":
    sys.exit(main())
