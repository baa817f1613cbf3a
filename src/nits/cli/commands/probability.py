"""nits probability: how probable an event is, given conditions."""

from __future__ import annotations

import argparse
import csv
import sys

from nits.cli.commands.sample import conditions
from nits.images.estimator import NITSImages
from nits.persistence import load


def run(args: argparse.Namespace) -> int:
    """Prints the estimate, its standard error and the effective sample size, as CSV."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        raise ValueError("probabilities are of events of a table's model, but this is of images.")
    answer = model.given(conditions(args.given))
    found = answer.using(args.particles or answer.particles, args.seed).probability(args.event)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["probability", "standard_error", "effective_sample_size"])
    writer.writerow([found.estimate, found.error, found.ess])
    return 0
