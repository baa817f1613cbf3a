"""nits plot: marginals, pairs, the training curve and calibration, as PNG files in a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from nits import atomic, files, frames, plots
from nits.commands.score import arrow_types
from nits.persistence import load

ROWS = 5000


def run(args: argparse.Namespace) -> int:
    """Draws up to 5,000 rows of the table beside as many samples."""
    model = load(args.model)
    if model.context_schema_.columns:
        raise ValueError("plots are of joint densities, but this model has given columns; score it instead.")
    table = files.read_table(args.table, arrow_types(model))
    some = np.linspace(0, table.num_rows - 1, min(ROWS, table.num_rows)).astype(int)
    frame = frames.read(table.take(some))
    numbers = model.schema_.encode(frame)
    real = {name: values.known for name, values in frame.columns.items()}
    drawn = model.schema_.decode(model.model_.sample(len(some), generator=args.seed).double().numpy())
    with torch.no_grad():
        u = model.model_.to_uniform(torch.from_numpy(numbers.astype(np.float32))).double().numpy()
    paired = {
        name: model.schema_.columns[i].decode(numbers[:, i])
        for i, name in enumerate(model.schema_.names)
        if model.schema_.columns[i].kind != "categorical"
    }
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "marginals": plots.marginals(model.schema_, real, drawn),
        "pairs": plots.pairs(model.schema_, paired, drawn),
        "training": plots.training(model.history_),
        "calibration": plots.calibration(model.schema_.names, u),
    }
    for name, figure in figures.items():
        with atomic.temporary(folder / f"{name}.png") as place:
            figure.savefig(place, format="png", dpi=110)
    print(f"{len(figures)} pictures in {folder}", file=sys.stderr)
    return 0
