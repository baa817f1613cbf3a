"""Model files and checkpoints that somebody changed: never long, never large, never a traceback."""

import resource
import time

from campaign import models
from campaign.steps import Failure

SLOW = 5.0
"""Seconds that a file may take."""

MEMORY = 2**30
"""Bytes by which reading a file may raise what this process has had at most."""


def run(case: int) -> str:
    """Runs a case and returns "passed" or "refused"; raises Failure."""
    before, start = _peak(), time.monotonic()
    found = models.attack(case)
    if found.wrong is not None:
        raise Failure(found.wrong)
    if (seconds := time.monotonic() - start) > SLOW:
        raise Failure(f"it took {seconds:.1f} s")
    if (grown := _peak() - before) > MEMORY:
        raise Failure(f"it took {grown >> 20} MB")
    return "refused" if found.refused else "passed"


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
