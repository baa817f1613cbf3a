"""Autoregressive neural spline flow from flowjax, which runs on JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox
import jax
import numpy as np
import optax
import paramax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import masked_autoregressive_flow
from jax import numpy as jnp

from models.fitted import SCORED_AT_ONCE, VALIDATION_ROWS, Clock, Fitted, Points, Settings, Values
from models.rival_training import Loop
from nits.datasets import Split

Tree = Any
"""A flow, or a part of one: JAX's pytrees have no type of their own."""


def build(columns: int, settings: Settings, seed: int) -> Tree:
    """Returns the untrained flow, its fast direction that of scoring."""
    return masked_autoregressive_flow(
        jax.random.key(seed),
        base_dist=Normal(jnp.zeros(columns)),
        transformer=RationalQuadraticSpline(knots=settings["bins"], interval=settings["interval"]),
        flow_layers=settings["transforms"],
        nn_width=settings["hidden"],
        nn_depth=settings["depth"],
    )


def _is_fixed(leaf: object) -> bool:
    return isinstance(leaf, paramax.NonTrainable)


class JaxLoop(Loop):
    """The loop over a flow's arrays; AdamW but for its rate, which `take` is given."""

    def __init__(self, flow: Tree, train: Points, settings: Settings, seed: int) -> None:
        super().__init__(train, settings, seed)
        if self.free:
            raise ValueError(
                "flowjax-nsf is trained with AdamW and a cosine only; set optimizer to adamw."
            )
        arrays = equinox.is_inexact_array
        self.weights, self.rest = equinox.partition(flow, arrays, is_leaf=_is_fixed)
        self.average = self.best_weights = self.weights
        self.optimizer = optax.chain(
            optax.clip_by_global_norm(settings["clip"]),
            optax.scale_by_adam(),
            optax.add_decayed_weights(settings["weight_decay"]),
        )
        self.moments = self.optimizer.init(self.weights)
        self._compiled = equinox.filter_jit(self._step)

    def _step(self, state: Tree, rows: Tree, rate: Tree, decay: Tree) -> tuple[Tree, Tree]:
        """Returns weights, moments and average after a step, or as they were if not finite."""
        weights, moments, average = state

        def loss(trained: Tree) -> Tree:
            return -equinox.combine(trained, self.rest).log_prob(rows).mean()

        value, gradient = equinox.filter_value_and_grad(loss)(weights)
        update, later = self.optimizer.update(gradient, moments, weights)
        moved = jax.tree.map(lambda w, u: w - rate * u, weights, update)
        nearer = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, moved)
        finite = jnp.isfinite(value) & jnp.isfinite(optax.tree.norm(gradient))
        after = moved, later, nearer
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state)
        return kept, finite

    def take(self, rows: Points, rate: float, decay: float) -> bool:
        """Takes one step, unless its loss or gradient is not finite."""
        state = self.weights, self.moments, self.average
        state, finite = self._compiled(state, rows, np.float32(rate), np.float32(decay))
        self.weights, self.moments, self.average = state
        return bool(finite)

    def score(self, rows: Points) -> Values:
        """Returns the nats of rows under the averaged weights."""
        return score(equinox.combine(self.average, self.rest), rows)

    def keep(self) -> None:
        """Keeps the averaged weights as the best so far; JAX's arrays never change."""
        self.best_weights = self.average


_log_prob = equinox.filter_jit(lambda flow, rows: flow.log_prob(rows))


def score(flow: Tree, rows: Points) -> Values:
    """Returns the nats of rows; the last few are filled up, so that only one shape is compiled."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), SCORED_AT_ONCE):
        part = np.array(rows[start : start + SCORED_AT_ONCE])
        filled = np.resize(part, (SCORED_AT_ONCE, rows.shape[1]))
        found[start : start + len(part)] = np.asarray(_log_prob(flow, filled))[: len(part)]
    return found


def fit(split: Split, settings: Settings, minutes: float, seed: int) -> Fitted:
    """Trains the flow; compiling counts."""
    clock = Clock(minutes)
    loop = JaxLoop(build(split.train.shape[1], settings, seed), split.train, settings, seed)
    loop.run(np.array(split.validation[:VALIDATION_ROWS]), clock)
    best = equinox.combine(loop.best_weights, loop.rest)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(loop.weights))
    return loop.fitted(partial(score, best), parameters, clock)
