"""Models with random weights, random questions to them, and their answers by brute force."""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from numpy.typing import NDArray

from mixed_table import mixed, small
from nits import Mixture, NITSDensity
from nits.tables.questions.conditions import Among, Condition, Missing, Range, Value, missing

Flags = NDArray[np.bool_]


def shaken(model: NITSDensity, seed: int, amount: float = 0.25) -> NITSDensity:
    """Returns a model with random numbers added to its weights, so that columns depend."""
    model = deepcopy(model)
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.model_.parameters():
            p.add_(torch.randn(p.shape, generator=source), alpha=amount)
    return model


def random_model(**options: Any) -> NITSDensity:
    """Returns a model of the mixed table whose weights are random."""
    return shaken(small(**{"max_steps": 2, **options}).fit(mixed(300)), 1)


def mixture(model: NITSDensity) -> NITSDensity:
    """Returns a mixture of three models like one."""
    members = [shaken(model, seed, 0.1).model_ for seed in (2, 3, 4)]
    found = deepcopy(model)
    found.model_ = Mixture(members, [0.5, 0.3, 0.2]).eval()
    return found


def nearly_determined() -> NITSDensity:
    """Returns a model of four columns, in their order, the last two of which tell the first two."""
    x, between, a, b = np.random.default_rng(0).standard_normal((4, 1000))
    last = {"y": x + between + 0.05 * a, "z": x - between + 0.05 * b}
    table = pandas.DataFrame({"x": x, "between": between, **last})
    return small(max_steps=200, order="table").fit(table)


class Question(NamedTuple):
    """What is given, and what is asked."""

    given: dict[str, Condition]
    event: dict[str, Condition]


def question(table: Any, source: np.random.Generator, conditions: int) -> Question:
    """Returns a random question about a table with the columns of `mixed`."""
    names = source.permutation(table.columns)
    told = {name: _condition(table[name], source) for name in names[:conditions]}
    event = {name: _condition(table[name], source) for name in names[conditions : conditions + 2]}
    return Question(told, event)


def _condition(values: Any, source: np.random.Generator) -> Condition:
    kind = source.integers(4)
    known = values.dropna()
    if kind == 0 and values.isna().any():
        return missing
    if values.dtype.kind in "bOT" or str(values.dtype) == "str":
        levels = sorted(known.unique())
        return Among(tuple(source.permutation(levels)[: source.integers(1, len(levels))].tolist()))
    if kind == 1 and values.dtype.kind == "i":
        return Value(int(known.sample(random_state=int(source.integers(2**31))).iloc[0]))
    low, high = np.quantile(source.random(2), [0, 1])
    low, high = known.quantile(low * 0.8), known.quantile(0.3 + high * 0.7)
    if kind == 2:
        return Range(low, None, from_low=bool(source.integers(2)))
    if kind == 3:
        return Range(None, high, to_high=bool(source.integers(2)))
    return Range(low, high, bool(source.integers(2)), bool(source.integers(2)))


def holds(table: Any, told: dict[str, Condition]) -> Flags:
    """Returns which rows of a table meet conditions, by pandas alone."""
    found = np.ones(len(table), bool)
    for name, condition in told.items():
        found &= _meets(table[name], condition)
    return found


def _meets(values: Any, condition: Condition) -> Flags:
    if isinstance(condition, Missing):
        return np.asarray(values.isna())
    found = ~values.isna()
    if isinstance(condition, Value):
        found &= values == condition.value
    elif isinstance(condition, Range):
        if condition.low is not None:
            found &= values >= condition.low if condition.from_low else values > condition.low
        if condition.high is not None:
            found &= values <= condition.high if condition.to_high else values < condition.high
    else:
        inside = values.isin(condition.values)
        found &= inside if isinstance(condition, Among) else ~inside
    return np.asarray(found.astype(bool))


def by_rejection(drawn: Any, asked: Question) -> tuple[float, float, int]:
    """Returns the share of the rows that meet the conditions in which the event holds.

    The second number is its standard error, the third how many rows met the conditions.
    """
    told = holds(drawn, asked.given)
    n = int(told.sum())
    share = (holds(drawn[told], asked.event).sum() + 0.5) / (n + 1)
    return float(share), float(np.sqrt(share * (1 - share) / max(n, 1))), n


def misses(model: NITSDensity, drawn: Any, count: int, seed: int) -> list[float]:
    """Returns by how many standard errors random answers miss those by rejection."""
    source = np.random.default_rng(seed)
    found: list[float] = []
    while len(found) < count:
        asked = question(drawn, source, int(source.integers(0, 4)))
        share, error, n = by_rejection(drawn, asked)
        if n < 200:
            continue
        answer = model.given(asked.given).probability(asked.event)
        found.append((answer.estimate - share) / float(np.hypot(error, answer.error)))
    return found
