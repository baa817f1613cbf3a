"""The networks that the benchmark of answers trains, and what is measured of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from models.fitted import SCORED_AT_ONCE, Points, Values
from models.ours import support
from results import Record
from role_draws import coins, pairs
from scores import nats
from torch import Tensor

import nits
from nits.model.density import Density
from nits.model.joint import NITS
from nits.model.roles import optional
from nits.weights import Guided, MaskedMLP, activations

SETTINGS: dict[str, dict[str, Any]] = {
    "power": {"hidden": 256, "dropout": 0.0, "pnn": 32, "knots": 32, "rate": 6e-3, "batch": 1024},
    "gas_turbine": {
        "hidden": 128,
        "dropout": 0.3,
        "pnn": 16,
        "knots": 8,
        "rate": 2e-3,
        "batch": 256,
    },
    "magic_gamma": {
        "hidden": 64,
        "dropout": 0.3,
        "pnn": 8,
        "knots": 8,
        "rate": 2e-3,
        "batch": 64,
        "rows": 2000,
    },
    "miniboone": {
        "hidden": 128,
        "dropout": 0.2,
        "pnn": 8,
        "knots": 8,
        "rate": 4e-3,
        "batch": 256,
        "decay": 0.1,
        "guess": True,
        "activation": "silu",
        "optimizer": nits.AdamW(),
        "real": True,
    },
}
"""Of each data set; with `rows`, only so many of the training rows are learned from; with `real`,
columns have no ends, so that no row of others is impossible."""


def network(train: Points, settings: dict[str, Any], seed: int) -> Density:
    """Returns an untrained network of real columns: with random roles, or a plain one."""
    pnn, knots = (settings["pnn"],), settings["knots"]
    ends = [(-math.inf, math.inf)] * train.shape[1]
    if not settings.get("real"):
        ends = list(zip(*support(train), strict=True))
    heads = [nits.heads.Continuous(low, high, pnn, knots) for low, high in ends]
    sizes = {"hidden": settings["hidden"], "blocks": 2, "dropout": settings["dropout"]}
    if settings.get("plain"):
        return NITS.mlp(heads, **sizes, generator=seed)
    order = settings.get("order")
    asked = optional(heads)
    inputs = [head.inputs for head in asked]
    net: Any = MaskedMLP(
        inputs,
        [head.weights for head in asked],
        sum(inputs),
        **sizes,
        activation=activations.named(settings.get("activation", "relu")),
        generator=seed,
    )
    if settings.get("guess"):
        straight = [i for i in range(sum(inputs)) if not 1 <= i % inputs[0] <= knots]
        net = Guided(net, asked, sum(inputs), straight)
    return nits.RandomRoles(nits.Roles(NITS(asked, net, order)), settings.get("shares"))


def recipe(settings: dict[str, Any]) -> nits.Recipe:
    """Returns how networks are trained: to the end of the budget."""
    return nits.Recipe(
        batch_size=settings["batch"],
        learning_rate=settings["rate"],
        weight_decay=settings.get("decay", 1e-5),
        optimizer=settings.get("optimizer", nits.ScheduleFree()),
        patience=10**9,
    )


def answered(model: Density, rows: Points, slopes: Values) -> dict[str, Values]:
    """Returns the log-densities of rows: of all columns, of a half given the rest, of pairs.

    slopes: What each column that is asked adds for the units of the table.
    """
    more = torch.from_numpy(slopes)
    x, given, two = torch.from_numpy(np.array(rows)), coins(*rows.shape), pairs(*rows.shape)
    found: dict[str, list[Tensor]] = {}
    with torch.no_grad():
        for some in range(0, len(x), SCORED_AT_ONCE):
            here = slice(some, some + SCORED_AT_ONCE)
            found.setdefault("joint", []).append(model.log_prob(x[here]).double() + more.sum())
            if isinstance(model, nits.RandomRoles):
                roles, none = model.roles, torch.zeros_like(given[here])
                half = roles.log_prob(x[here], given[here], ~given[here]).double()
                pair = roles.log_prob(x[here], none, two[here]).double()
                found.setdefault("half", []).append(half + (~given[here]).double() @ more)
                found.setdefault("pair", []).append(pair + two[here].double() @ more)
    return {name: torch.cat(parts).numpy() for name, parts in found.items()}


def figures(models: Sequence[Density], rows: Points, slopes: Values | None = None) -> Record:
    """Returns the means of `answered` with two standard errors, over rows inside the support.

    What several models say is mixed in equal parts.
    """
    more = np.zeros(rows.shape[1]) if slopes is None else slopes
    each = [answered(model, rows, more) for model in models]
    found = {}
    for question in each[0]:
        mixed = np.logaddexp.reduce([said[question] for said in each]) - math.log(len(each))
        one = nats(mixed)
        names = ("two_standard_errors", "rows", "rows_outside")
        found[question] = {"nats": one["nats_inside"], **{name: one[name] for name in names}}
    return found
