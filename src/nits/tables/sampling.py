"""Draws rows of a table: what the model knows, what lies beyond it, and what was set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nits import checks
from nits.model.density import Density
from nits.pnn.random import private_generator, uniform
from nits.printable import listed
from nits.tables import frames, orders, zones
from nits.tables.frames import Frame, Values
from nits.tables.outside import Outside
from nits.tables.questions.cloud import members
from nits.tables.questions.conditions import Condition

CONDITIONS = (tuple, list, set, frozenset, slice, np.ndarray, *get_args(Condition))
"""What is given that is no value."""

if TYPE_CHECKING:
    from nits.tables.estimator import NITSDensity


def drawn(estimator: NITSDensity, n: int, seed: int, given: Any, complete: bool) -> Any:
    """Returns n rows, or n for each row of a context, as a table; see `NITSDensity.sample`."""
    checks.positive("n_samples", n)
    schema, model = estimator.schema_, estimator.model_
    source = np.random.default_rng(seed)
    context = _context(estimator, n, given)
    kept = _kept(estimator, None if context is not None else given)
    count = n if context is None else len(context)
    u = uniform(
        torch.Size((count, len(kept))), model.like, private_generator(seed, model.like.device)
    )
    coins = source.random(u.shape)
    coins[:, ~np.isnan(kept)] = np.nan
    outside = Outside(schema.columns, coins, complete)
    with torch.no_grad():
        set_to = torch.from_numpy(kept).to(model.like).expand(count, -1)
        numbers = _numbers(model, u, set_to, context, outside, seed)
    columns = schema.decode(numbers.cpu().numpy(), outside.tails, source)
    if context is None:  # exact to the last digit, which float32 would lose
        for key, value in (given or {}).items():
            name = schema.names[orders.position(key, schema.names)]
            try:
                columns[name] = _repeated(columns[name], value)
            except OverflowError:
                raise ValueError(
                    f"the value given for {name!r} must be one that its type can hold, "
                    f"but is {value!r}; give a smaller one."
                ) from None
    return zones.write(Frame(_every(estimator, columns, count), schema.form))


def _numbers(
    model: Density,
    u: Tensor,
    kept: Tensor,
    context: Tensor | None,
    outside: Outside,
    seed: int,
) -> Tensor:
    """Draws the numbers of rows; members with orders of their own each draw some of the rows."""
    mixture = orders.differing(model)
    if mixture is None:
        return outside.filled(model, u, kept, context, torch.arange(len(u)))
    shares = mixture.log_weights.exp().double().cpu().numpy()
    chosen = np.random.default_rng([seed, 1]).choice(len(shares), len(u), p=shares / shares.sum())
    rows = torch.empty_like(u)
    for k, member in enumerate(mixture.members):
        at = torch.from_numpy(np.flatnonzero(chosen == k))
        if len(at):
            about = None if context is None else context[at]
            rows[at] = outside.filled(member, u[at], kept[at], about, at)
    return rows


def comes_first(estimator: NITSDensity, given: Any) -> bool:
    """Returns whether what is given are values of leading columns, or a table of the context."""
    if estimator.context_reading_ is not None:
        return not isinstance(given, str)
    if not isinstance(given, Mapping):
        return False
    names = estimator.schema_.names
    plain = not any(isinstance(value, CONDITIONS) for value in given.values())
    if not plain or not all(key in names or isinstance(key, int) for key in given):
        return False
    told = {orders.position(key, names) for key in given}
    every = [member.order.tolist() for _, member in members(estimator.model_)]
    return len({tuple(o) for o in every}) == 1 and set(every[0][: len(told)]) == told


def _repeated(values: Values, value: Any) -> Values:
    """Returns one value in all rows of a column."""
    if values.array.dtype.kind == "b" and isinstance(value, str):
        value = value.lower() == "true"
    one = zones.local(frames.plain(frames.single(value)))
    array = values.array.copy()
    if not one.missing[0]:
        array[:] = one.array[0]
    return replace(values, array=array, missing=np.full(len(array), one.missing[0]))


def _every(estimator: NITSDensity, columns: dict[str, Values], count: int) -> dict[str, Values]:
    """Returns sampled columns and those set aside, in the order of the training table."""
    every = estimator.idle_.drawn(count) | columns
    return {name: every[name] for name in estimator.names_}


def _context(estimator: NITSDensity, n: int, given: Any) -> torch.Tensor | None:
    """Returns the features of the context, a row per sample, if the model has one."""
    if estimator.context_reading_ is None:
        return None
    if given is None:
        raise ValueError(
            f"this model needs the columns {listed(estimator.context_schema_.names)}; "
            "pass a table with them as given=."
        )
    numbers = estimator._given(zones.read(given), strict=True)
    return estimator._context(numbers.repeat_interleave(n, 0))


def _kept(estimator: NITSDensity, given: Any) -> NDArray[np.float32]:
    """Returns the numbers of given values, NaN for the columns that are drawn."""
    schema = estimator.schema_
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"given must map columns to their values, but is a {type(given).__name__}; "
            "pass {name: value}, or name the columns in context= when fitting."
        )
    kept = np.full(len(schema.columns), np.nan, np.float32)
    for key, value in (given or {}).items():
        position = orders.position(key, schema.names)
        kept[position] = schema.columns[position].number(value)
    if not given:
        return kept
    orders.refuse(orders.differing(estimator.model_))
    checks.leading(torch.from_numpy(kept).unsqueeze(0), estimator.model_.order)
    return kept
