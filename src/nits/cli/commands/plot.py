"""nits plot: columns, pairs, the training curve and calibration, as PNG files in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from nits.cli import plots
from nits.cli.commands import images
from nits.cli.commands.score import arrow_types
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.report import calibration, dependence, marginals
from nits.report.subject import CannotSay, Subject
from nits.tables import files


def run(args: argparse.Namespace) -> int:
    """Draws up to 5,000 rows of the table beside as many samples."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.plot(args, model)
    subject = Subject.of(model, files.read_table(args.table, arrow_types(model)), seed=args.seed)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "marginals": plots.marginals(marginals.measured(subject)),
        "pairs": plots.pairs(_pairs(subject)),
        "training": plots.training(model.history_),
        "calibration": plots.calibration(calibration.measured(subject)),
    }
    plots.write(figures, folder)
    return 0


def _pairs(subject: Subject) -> dependence.Dependence | None:
    try:
        return dependence.measured(subject)
    except CannotSay:
        return None
