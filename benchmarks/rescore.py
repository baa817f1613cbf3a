"""Scores the test rows again from every kept weights file and compares with what the result says.

python benchmarks/rescore.py [RESULT.json …]     exits 1 if a figure is not reproduced
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import measure
import mix
import run
import scale

from nits import datasets

TOLERANCE = 1e-4
"""Nats by which the mean may differ: rounding on another processor, no more."""


def compared(record: dict[str, Any]) -> tuple[float, float]:
    """Returns the recorded and the newly measured test nats of the rows inside the support."""
    kept = record["weights"] if isinstance(record["weights"], list) else [record["weights"]]
    split, shift = scale.scaled(datasets.load(record["dataset"]))
    again = run.nats(mix.score([measure.ROOT / name for name in kept], split.test) + shift)
    if again["rows_outside"] != record["test_rows_outside"]:
        raise ValueError(
            f"{again['rows_outside']} rows lie outside, but the record has {record['test_rows_outside']}; "
            "are these the same data?"
        )
    return float(record["test_nats_inside"]), float(again["nats_inside"])


def main(argv: list[str] | None = None, results: Path = measure.RESULTS) -> int:
    """Rescores the given results, or all that have weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="*", type=Path, help="result files; all by default")
    paths = parser.parse_args(argv).results or sorted(results.glob("*.json"))
    wrong = 0
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        if "weights" not in record:
            continue
        try:
            before, now = compared(record)
        except (ValueError, OSError) as error:
            print(f"error: {path.name}: {error}", file=sys.stderr)
            return 2
        same = abs(before - now) <= TOLERANCE
        wrong += not same
        print(
            f"{path.stem}: recorded {before:.6f}, now {now:.6f} nats, {'same' if same else 'DIFFERENT'}"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
