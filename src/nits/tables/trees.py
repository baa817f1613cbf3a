"""Boosted trees as plain numbers: sums of trees over the features of a context.

Trees are grown by scikit-learn, and kept as the arrays that they consist of: what a node asks,
where it leads to, and what a leaf adds, which is a mean over several rows. So a file has numbers
only, and no training row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nits.chunks import slices

Numbers = NDArray[np.floating[Any]]

FOLDS = 5

REPEATS, FEW = 3, 20_000
"""How often rows are cut into folds, in tables of at most so many. The guess of a training row is a
mean over as many models, and so nearly as good as that of a new one, a mean over all of them."""

VISITED_AT_ONCE = 2**20
"""Rows times trees that are followed at once."""

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"min_samples_leaf": 5, "max_leaf_nodes": 15, "max_iter": 200},
)
"""Of scikit-learn's boosting, of which rows left out choose: its defaults, and smaller trees."""


class Trees(nn.Module):
    """Sums of trees, one for each of G outputs.

    nodes, roots: How many there are.
    outputs: G.

    The children of a node have higher numbers than it has, and a leaf leads to itself.
    """

    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    roots: Tensor
    output: Tensor
    base: Tensor

    def __init__(self, nodes: int, roots: int, outputs: int) -> None:
        super().__init__()
        for name, size, kind in (
            ("feature", nodes, torch.int32),
            ("threshold", nodes, torch.float32),
            ("left", nodes, torch.int32),
            ("right", nodes, torch.int32),
            ("value", nodes, torch.float32),
            ("roots", roots, torch.int32),
            ("output", roots, torch.int32),
            ("base", outputs, torch.float32),
        ):
            self.register_buffer(name, torch.zeros(size, dtype=kind))

    @classmethod
    def of(cls, grown: Sequence[Sequence[Any]]) -> Trees:
        """Returns the means of scikit-learn's models, of several for each output."""
        tables, roots, output, count = [], [], [], 0
        for k, models in enumerate(grown):
            for model in models:
                for nodes in _nodes(model):
                    roots.append(count)
                    output.append(k)
                    tables.append(_arrays(nodes, count, 1 / len(models)))
                    count += len(nodes)
        found = cls(count, len(roots), len(grown))
        for name, parts in zip(COLUMNS, zip(*tables, strict=True), strict=True):
            getattr(found, name).copy_(torch.from_numpy(np.concatenate(parts)))
        found.roots.copy_(torch.tensor(roots))
        found.output.copy_(torch.tensor(output))
        bases = [np.mean([_base(model) for model in models]) for models in grown]
        found.base.copy_(torch.tensor(np.array(bases)))
        return found

    def forward(self, features: Tensor) -> Tensor:
        """Maps features, shape (N, F), to the outputs, shape (N, G)."""
        at_once = max(1, VISITED_AT_ONCE // max(1, len(self.roots)))
        parts = [self._some(features[some]) for some in slices(len(features), at_once)]
        return torch.cat(parts) if parts else features.new_zeros(0, len(self.base))

    def _some(self, features: Tensor) -> Tensor:
        node = self.roots.long().expand(len(features), -1)
        while True:
            asked = features.gather(1, self.feature[node].long())
            after = torch.where(asked <= self.threshold[node], self.left[node], self.right[node])
            if torch.equal(after, node.to(after.dtype)):
                break
            node = after.long()
        sums = self.base.to(features).expand(len(features), -1).clone()
        return sums.index_add_(1, self.output.long(), self.value[node].to(features))

    def description(self) -> dict[str, int]:
        """Returns what `Trees` takes, for a file."""
        sizes = {"nodes": self.feature, "roots": self.roots, "outputs": self.base}
        return {name: len(t) for name, t in sizes.items()}

    def refuse_malformed(self, features: int) -> None:
        """Refuses numbers of a file by which no row finds a leaf."""
        nodes = torch.arange(len(self.feature))
        leads = (self.left > nodes) & (self.right > nodes) | (
            (self.left == nodes) & (self.right == nodes)
        )
        within = [
            bool((t >= 0).all()) and bool((t < most).all())
            for t, most in (
                (self.feature, features),
                (self.left, len(nodes)),
                (self.right, len(nodes)),
                (self.roots, len(nodes)),
                (self.output, len(self.base)),
            )
        ]
        if not (bool(leads.all()) and all(within)):
            raise ValueError("its trees lead nowhere")


COLUMNS = ("feature", "threshold", "left", "right", "value")
"""The arrays of nodes."""


def _nodes(model: Any) -> Iterable[NDArray[Any]]:
    """Yields the nodes of each tree of a model of scikit-learn."""
    for (tree,) in model._predictors:
        yield tree.nodes


def _base(model: Any) -> float:
    return float(np.asarray(model._baseline_prediction).ravel()[0])


def _arrays(nodes: NDArray[Any], start: int, share: float) -> tuple[NDArray[Any], ...]:
    """Returns the columns of a tree whose nodes begin at `start`, with a share of its values."""
    leaf = nodes["is_leaf"].astype(bool)
    own = np.arange(len(nodes))
    left, right = (np.where(leaf, own, nodes[side]) + start for side in ("left", "right"))
    feature = np.where(leaf, 0, nodes["feature_idx"])
    value = np.where(leaf, nodes["value"], 0.0) * share
    columns = (feature, nodes["num_threshold"], left, right, value)
    kinds = (np.int32, np.float32, np.int32, np.int32, np.float32)
    return tuple(column.astype(kind) for column, kind in zip(columns, kinds, strict=True))


def grown(
    features: Numbers, targets: Numbers, weight: Numbers | None, seed: int
) -> tuple[Trees, NDArray[np.float32]]:
    """Returns trees for each column of targets, shape (N, G), and what they guess of these rows.

    The guess of each row comes from trees that have not seen it. Missing targets are left out.
    """
    source = np.random.default_rng(seed)
    repeats = REPEATS if len(features) <= FEW else 1
    folds = [source.permutation(len(features)) % FOLDS for _ in range(repeats)]
    found, guesses = [], np.zeros(targets.shape, np.float32)
    for k, target in enumerate(targets.T):
        tried = [_folds(features, target, weight, folds[0], some) for some in SETTINGS]
        best = min(range(len(tried)), key=lambda i: tried[i][2])
        others = [_folds(features, target, weight, fold, SETTINGS[best]) for fold in folds[1:]]
        every = [tried[best], *others]
        found.append([model for models, *_ in every for model in models])
        guesses[:, k] = np.mean([guess for _, guess, _ in every], 0)
    return Trees.of(found), guesses


def _folds(
    features: Numbers,
    target: Numbers,
    weight: Numbers | None,
    fold: NDArray[np.int64],
    settings: dict[str, Any],
) -> tuple[list[Any], NDArray[np.float32], float]:
    """Returns a model for each fold, which was left out, their guesses of it, and their error."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    known, models = ~np.isnan(target), []
    guess = np.zeros(len(target), np.float32)
    read = torch.from_numpy(features.astype(np.float32))
    for k in range(FOLDS):
        some = known & (fold != k)
        model = HistGradientBoostingRegressor(random_state=0, **settings)
        with threadpool_limits(1, "openmp"):  # several wait for one another on a busy machine
            model.fit(features[some], target[some], None if weight is None else weight[some])
        models.append(model)
        here = fold == k
        guess[here] = Trees.of([[model]])(read[torch.from_numpy(here)])[:, 0].numpy()
    share = None if weight is None else weight[known]
    error = np.average((guess[known] - target[known]) ** 2, weights=share)
    return models, guess, float(error)
