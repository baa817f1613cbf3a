"""`nits score` and `nits sample` on a Ray cluster: files are shared out by Ray Data.

The model and the folders must lie where all nodes see them. What is written is the same as on one
machine, file by file.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nits.engines.on_ray import Ray
from nits.tables.stream.parts import Parts

ITEM = "item"
"""The column of Ray Data that holds what a call is to do."""


def each(engine: Ray, kind: type[Any], arguments: tuple[Any, ...], count: int) -> list[Any]:
    """Returns what workers of a kind, made on the nodes with some arguments, return for 0 … count.

    kind: A class whose calls take and return a batch of Ray Data.
    """
    ray = engine.started()
    import ray.data as data

    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    items = data.from_items([{ITEM: k} for k in range(count)], override_num_blocks=count)
    packed = ray.put(arguments)
    found = items.map_batches(
        _Made,
        fn_constructor_args=(kind, [packed]),
        batch_size=1,
        num_cpus=1,
        compute=data.ActorPoolStrategy(size=min(engine.parallel(), count)),
    )
    rows: list[Any] = found.take_all()
    return rows


class _Made:
    """Makes a worker on its node, once, and calls it."""

    def __init__(self, kind: type[Any], packed: Sequence[Any]) -> None:
        import ray
        import torch

        torch.set_num_threads(1)
        self.worker = kind(*ray.get(packed[0]))

    def __call__(self, batch: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        found = [self.worker(int(k)) for k in batch[ITEM]]
        return {name: np.array([one[name] for one in found]) for name in found[0]}


class Scorer:
    """Scores the files of a table, each into a file of its own."""

    def __init__(self, args: argparse.Namespace, table: Any, columns: Any, folder: Path) -> None:
        from nits.cli.models import load

        self.args, self.table, self.columns, self.folder = args, table, columns, folder
        self.model = load(args.model)
        self.files = files_of(table)

    def __call__(self, k: int) -> dict[str, float]:
        """Scores file k; returns what its scores come to."""
        from nits.cli.commands.score import Figures, written_scores

        found, parts = Figures(), Parts(self.folder)
        for piece in self.files[k]:
            for table in self.table.read(piece, self.columns):
                for scores in written_scores(self.model, table, self.args, found):
                    parts.append(self.table.file(piece), scores)
        parts.close()
        return {name: float(value) for name, value in vars(found).items()}


def files_of(table: Any) -> list[list[int]]:
    """Returns the pieces of each file of a table, in its order."""
    found: dict[str, list[int]] = {}
    for piece in range(len(table.sizes)):
        found.setdefault(table.file(piece), []).append(piece)
    return list(found.values())


class Sampler:
    """Draws the files of a folder.

    turns: Of each file the numbers of rows and the seeds of its draws.
    """

    def __init__(
        self, args: argparse.Namespace, turns: Sequence[Sequence[tuple[int, int]]], folder: Path
    ) -> None:
        from nits.cli.models import load

        self.args, self.turns, self.folder = args, turns, folder
        self.model = load(args.model)

    def __call__(self, k: int) -> dict[str, float]:
        """Draws file k; returns how many rows it has."""
        from nits.cli.commands.sample import drawn

        parts = Parts(self.folder, self.args.partition_by)
        parts.count = k
        for count, state in self.turns[k]:
            parts.add(drawn(self.model, self.args, count, state))
        parts.close()
        return {"rows": float(sum(count for count, _ in self.turns[k]))}
