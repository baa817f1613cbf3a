"""nits plot: marginals, pairs, the training curve and calibration, as PNG files in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nits.cli import plots
from nits.cli.commands import images
from nits.cli.commands.score import arrow_types
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.tables import files, orders, zones

ROWS = 5000


def run(args: argparse.Namespace) -> int:
    """Draws up to 5,000 rows of the table beside as many samples."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.plot(args, model)
    if model.context_schema_.columns:
        raise ValueError(
            "plots are of joint densities, but this model has a context; score it instead."
        )
    table = files.read_table(args.table, arrow_types(model))
    some = np.linspace(0, table.num_rows - 1, min(ROWS, table.num_rows)).astype(int)
    with files.named(args.table):
        frame = zones.read(table.take(some))
        coded = model.schema_.encode(frame)
    drawn = zones.read(model.sample(len(some), random_state=args.seed)).columns
    known = [
        {name: values.known for name, values in columns.items()}
        for columns in (frame.columns, drawn)
    ]
    paired = [
        {name: plots.with_gaps(values) for name, values in columns.items()}
        for columns in (frame.columns, drawn)
    ]
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "marginals": plots.marginals(model.schema_, *known),
        "pairs": plots.pairs(model.schema_, *paired),
        "training": plots.training(model.history_),
    }
    if orders.differing(model.model_) is None:
        u = _uniform(model, coded.numbers, args.seed)
        figures["calibration"] = plots.calibration(model.schema_.names, u)
    plots.write(figures, folder)
    return 0


def _uniform(model: Any, numbers: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """Returns conditional probabilities; where an entry has mass, a random point of the jump."""
    x = torch.from_numpy(numbers)
    with torch.no_grad():
        middle = model.model_.to_uniform(x).double().numpy()
        mass = model.model_.log_prob_per_column(x).double().exp().numpy()
    pairs = zip(model.model_.heads, x.t(), strict=True)
    steps = mass * torch.stack([head.has_mass(part) for head, part in pairs], 1).numpy()
    found: NDArray[np.float64] = middle + steps * (
        np.random.default_rng(seed).random(x.shape) - 0.5
    )
    return found
