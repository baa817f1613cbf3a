"""The networks of a model: each trained on other rows and from another seed, then mixed.

Every member holds out rows of its own, by which it is stopped, so together they learn from all of
them, and what the members say of the rows that they held out is an honest figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.mixture import Mixture
from nits.model.whitened import Whitened
from nits.tables.defaults import Plan
from nits.training.fit import fit as train
from nits.training.recipe import Recipe
from nits.training.rows import Rows, parted

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity

INTERRUPTED = "interrupted"


class Member(NamedTuple):
    """One network.

    density, history: What it learned, and how.
    held_out: Mean log-density of the rows that it held out, in the table's units; None without any.
    weight: The weight of those rows.
    """

    density: Density
    history: dict[str, Any]
    held_out: float | None
    weight: float


def learned(
    estimator: NITSDensity, rows: Rows, units: NDArray[np.float64], plan: Plan, seed: int
) -> list[Member]:
    """Returns the members, all of them but those that an interrupt came before.

    units: What to add to the log-density of each row to have it in the table's units.
    """
    found: list[Member] = []
    for k, (fitted, held_out) in enumerate(folds(len(rows), estimator, seed)):
        density = _built(estimator, plan, seed + k)
        kept = rows.subset(held_out)
        history = _trained(estimator, density, rows.subset(fitted), kept, plan, seed + k)
        figure = _in_units(history, kept, units[held_out.numpy()])
        found.append(Member(density, history, figure, _weight(kept)))
        if history["stopped"] == INTERRUPTED:
            break
    return found


def mixed(members: list[Member]) -> Density:
    """Returns the mixture of the members, or the only one."""
    first, *others = members
    return Mixture([member.density for member in members]) if others else first.density


def history(members: list[Member]) -> dict[str, Any]:
    """Returns the training history of the first member, and those of the others in it."""
    first, *others = members
    return {**first.history, "others": [member.history for member in others]}


def held_out(members: list[Member]) -> float | None:
    """Returns the mean log-density of held-out rows, each under the member that held it out."""
    known = [member for member in members if member.held_out is not None]
    if not known:
        return None
    weights = [member.weight for member in known]
    return float(np.average([member.held_out for member in known], weights=weights))


def folds(count: int, estimator: NITSDensity, seed: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns the rows that each member learns from, and those that it holds out.

    No row is held out by two members, if there are rows enough.
    """
    fraction, members = estimator.validation_fraction, estimator.members
    if members == 1:
        return [parted(count, fraction, seed)]
    size = int(count * min(fraction, 1 / members))
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    if size < 1 or count - size < 2:
        return [(torch.arange(count), torch.arange(0))] * members
    cuts = [(k * size, (k + 1) * size) for k in range(members)]
    return [(torch.cat([order[:a], order[b:]]), order[a:b]) for a, b in cuts]


def _built(estimator: NITSDensity, plan: Plan, seed: int) -> Density:
    """Returns a network with initial weights."""
    density = NITS.mlp(
        [column.head(tuple(estimator.pnn), plan.knots) for column in estimator.schema_.columns],
        hidden=estimator.hidden or plan.hidden,
        blocks=plan.blocks if estimator.blocks is None else estimator.blocks,
        dropout=plan.dropout if estimator.dropout is None else estimator.dropout,
        context=estimator.context_width,
        order=estimator.order_,
        generator=seed,
    )
    return Whitened(density) if estimator.whiten else density


def _trained(
    estimator: NITSDensity, density: Density, rows: Rows, kept: Rows, plan: Plan, seed: int
) -> dict[str, Any]:
    """Trains a network, and returns the history of it."""
    recipe = Recipe(
        batch_size=plan.batch_size,
        learning_rate=estimator.learning_rate or plan.learning_rate,
        optimizer=plan.optimizer,
    )
    minutes = estimator.max_minutes
    return train(
        density,
        rows.x,
        context=rows.context,
        sample_weight=rows.weight,
        validation=kept if len(kept) else 0.0,
        recipe=recipe,
        max_steps=estimator.max_steps if estimator.max_steps or minutes else plan.steps,
        max_minutes=None if minutes is None else minutes / estimator.members,
        seed=seed,
        progress=estimator.verbose,
    ).to_dict()


def _in_units(history: dict[str, Any], kept: Rows, units: NDArray[np.float64]) -> float | None:
    """Returns the mean log-density of held-out rows in the table's units, weighted if they are."""
    if not len(kept):
        return None
    weight = None if kept.weight is None else np.asarray(kept.weight, np.float64)
    return float(history["final_validation"] + np.average(units, weights=weight))


def _weight(kept: Rows) -> float:
    return float(len(kept)) if kept.weight is None else float(torch.as_tensor(kept.weight).sum())
