"""Scores the test rows again from every kept weights file and compares with what the result says.

python benchmarks/rescore.py [RESULT.json …]     exits 1 if a figure is not reproduced
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mix import member_scores, members, mixture_score
from results import RESULTS, ROOT, Record
from scores import nats

from nits import datasets

TOLERANCE = 1e-4
"""Nats by which the mean may differ: rounding on another processor, no more."""


def compared(record: Record, results: Path) -> tuple[float, float]:
    """Returns the recorded and the newly measured test nats of the rows inside the support."""
    several = isinstance(record["weights"], list)
    paths = [ROOT / name for name in (record["weights"] if several else [record["weights"]])]
    runs = members(record["dataset"], paths, results) if several else [record]
    split, pairs = datasets.load(record["dataset"]), zip(runs, paths, strict=True)
    parts = [member_scores(run, path, split, "test") for run, path in pairs]
    again = nats(mixture_score(parts, record.get("shares", [1 / len(paths)] * len(paths))))
    before = record["test_rows_outside"]
    if again["rows_outside"] != before:
        raise ValueError(
            f"{again['rows_outside']} rows lie outside, but the record has {before}; are these the "
            "same data?"
        )
    return float(record["test_nats_inside"]), float(again["nats_inside"])


def main(argv: list[str] | None = None, results: Path = RESULTS) -> int:
    """Rescores the given results, or all that have weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="*", type=Path, help="result files; all by default")
    wrong = 0
    for path in parser.parse_args(argv).results or sorted(results.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if "weights" not in record:
            continue
        try:
            before, now = compared(record, results)
        except (ValueError, OSError) as error:
            print(f"error: {path.name}: {error}", file=sys.stderr)
            return 2
        same = abs(before - now) <= TOLERANCE
        wrong += not same
        verdict = "same" if same else "DIFFERENT"
        print(f"{path.stem}: recorded {before:.6f}, now {now:.6f} nats, {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
