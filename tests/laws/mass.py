"""Laws of mass: every conditional has mass one, and there is none outside the support."""

import torch
from torch import Tensor

from laws.density import (
    Density,
    double,
    heads,
    impossible,
    repeated,
    some_rows,
)
from laws.quadrature import quadrature
from nits import PNN

NODES = (100, 240)
"""Per column, where two are integrated over: more if the first are too few for a spike."""


def each_conditional_has_mass_one(model: Density) -> None:
    model = double(model)
    x, context = some_rows(model, 8)
    for head, distribution in zip(heads(model), model.conditionals(x, context), strict=True):
        nodes, weights = quadrature(distribution, head)
        mass = (distribution.log_prob(nodes).exp() * weights).sum(0)
        torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0, atol=1e-9)
        if isinstance(distribution, PNN):
            whole = distribution.log_mass(distribution.low, distribution.high)
            torch.testing.assert_close(whole, torch.zeros_like(whole), rtol=0, atol=1e-13)


def last_two_columns_have_mass_one(model: Density) -> None:
    """∫∫ ν(x_{D−1}, x_D | the others) = 1, through log_prob_per_column of whole rows."""
    model = double(model)
    mass = _mass_of_the_last_two(model, NODES[0])
    if (mass - 1).abs() > 1e-6:
        mass = _mass_of_the_last_two(model, NODES[1])
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0, atol=1e-6)


def _mass_of_the_last_two(model: Density, nodes: int) -> Tensor:
    rows, context = some_rows(model, 1)
    weights = torch.ones(1, dtype=torch.float64)
    last = model.order[-2:].tolist()
    for i in last:
        conditional = model.conditionals(rows, repeated(context, len(rows)))[i]
        x, w = quadrature(conditional, heads(model)[i], nodes)
        rows = rows.expand(len(x), -1, -1).clone()
        rows[:, :, i] = x
        rows, weights = rows.flatten(0, 1), (weights * w).flatten()
    with torch.no_grad():
        log_prob = model.log_prob_per_column(rows, repeated(context, len(rows)))
    return (log_prob[:, last].sum(1).exp() * weights).sum()


def nothing_outside_the_support(model: Density) -> None:
    """A value outside the support, or infinite, has −inf; NaN gives NaN if it is not optional."""
    x, context = some_rows(model, 6)
    for i, head in enumerate(heads(model)):
        for end in impossible(head):
            assert (model.log_prob(_with(x, i, end), context) == -torch.inf).all()
        assert (model.log_prob(_with(x, i, torch.nan), context).isnan() != head.optional).all()


def _with(x: Tensor, column: int, value: float) -> Tensor:
    x = x.clone()
    x[:, column] = value
    return x
