"""nits info: what a model file holds."""

from __future__ import annotations

import argparse

from nits.cli.commands import images
from nits.cli.models import load
from nits.images.estimator import NITSImages
from nits.printable import printable
from nits.tables import told
from nits.tables.guessing import Guessed


def run(args: argparse.Namespace) -> int:
    """Prints the schema, the sizes and how training went."""
    model = load(args.model)
    if isinstance(model, NITSImages):
        return images.info(args, model)
    weights = sum(p.numel() for p in model.model_.parameters())
    name, columns = printable(args.model), len(model.schema_.columns)
    print(f"{name}: a density of {columns} columns, {weights:,} weights")
    for line in told.lines(model.schema_, model.context_schema_, model.idle_):
        print(line)
    history = model.history_
    if history["validation"]:
        print("training: seconds, validation nats (in the model's units)")
        pairs = list(zip(history["seconds"], history["validation"], strict=True))
        for seconds, value in pairs[:: max(1, len(pairs) // 10)]:
            print(f"  {seconds:8.1f}  {value:.4f}")
    if model.order_trials_:
        print("orders of the columns, and how far ahead of the table's each was in a trial:")
        print(*told.orders(model.order_trials_, model.schema_.names), sep="\n")
    if model.sorts_:
        print("members, by weight:", *told.sorts(model.sorts_), sep="\n")
    for line in [*told.mixing(model.model_), *told.curves(model.model_, model.schema_.names)]:
        print(line)
    if isinstance(model.context_reading_, Guessed):
        count = len(model.context_reading_.trees.roots)
        print(f"trees: {count:,}, whose guesses the networks read beside what is given")
    if model.companion_ is not None:
        weights = sum(p.numel() for p in model.companion_.parameters())
        print(f"companion: {weights:,} weights, for questions with any columns given")
    if model.held_out_ is not None:
        figure = told.figure(model.held_out_, model.held_out_error_)
        print(f"held-out rows: {figure} nats per row, in the table's units")
    return 0
