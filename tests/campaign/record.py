"""Counts of cases and failures, kept as result files that tell how they came about."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from campaign.steps import clock

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import results

EVERY = 60.0
"""Seconds after which counts are written again, so that a run that is stopped keeps them."""


class Tally:
    """The cases of an attack so far.

    first: The number of the first case.
    kept: Whether they are written to benchmarks/results.
    """

    def __init__(self, attack: str, first: int, *, kept: bool) -> None:
        self.attack, self.first, self.kept = attack, first, kept
        self.about = results.circumstances()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.slowest = self.seconds = 0.0
        self._written = clock()

    def add(self, found: str, seconds: float, failure: str | None) -> None:
        """Counts a case."""
        self.counts[found] += 1
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)
        if failure is not None:
            self.failures.append(failure)
        if clock() - self._written > EVERY:
            self.write()

    def write(self) -> None:
        """Writes the result file, if it is wanted."""
        self._written = clock()
        if self.kept and self.counts:
            name = f"campaign-{self.attack}" + (f"-{self.first}" if self.first else "")
            results.write(results.RESULTS / f"{name}.json", self.record())

    def record(self) -> dict[str, Any]:
        """Returns the counts, and what they depend on."""
        command = " ".join(["PYTHONPATH=tests python -m campaign", *sys.argv[1:]])
        return {
            **self.about,
            "command": command,
            "attack": self.attack,
            "first": self.first,
            "cases": self.counts.total(),
            "outcomes": dict(sorted(self.counts.items())),
            "failures": self.failures,
            "seconds": round(self.seconds, 1),
            "slowest_seconds": round(self.slowest, 1),
        }

    @property
    def told(self) -> str:
        """The counts in a line."""
        each = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        cases = f"{self.attack}: {self.counts.total()} cases from {self.first} on"
        return f"{cases}, {each}; slowest {self.slowest:.1f} s"


def write_figures(name: str, figures: dict[str, Any]) -> None:
    """Writes figures with their circumstances to benchmarks/results."""
    results.write_figures(name, figures)
