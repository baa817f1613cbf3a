"""Laws of the order: a column's conditional looks at the columns before it, and they multiply."""

import torch

from laws.density import Density, double, parts, sloped, some_rows
from nits import NITS
from nits.weights import Independent
from registry import seeded


def looks_only_at_the_columns_before(model: Density) -> None:
    """In modelling order, ∂θ_i/∂x_j is zero if and only if j ≥ i, and no output is dead."""
    for part in parts(model):
        _weights_look_only_before(part)


def _weights_look_only_before(model: NITS) -> None:
    n = 64
    rows, context = some_rows(model, n, seed=1)
    x = rows.t()[model.order].detach().requires_grad_()
    # A category is read through which one it is, which has no slope.
    slopes = torch.tensor([sloped(head) for head in model.ordered])
    theta = model.weights(model.reading(x), None if context is None else context.t()).expand(-1, n)
    for i, part in enumerate(theta.split(model.weights.outputs)):
        cotangent = torch.randn(part.shape, generator=seeded(2 + i))
        (jacobian,) = torch.autograd.grad(
            (part * cotangent).sum() + 0 * x.sum(), x, retain_graph=True
        )
        depends = i if not isinstance(model.weights, Independent) else 0
        assert (jacobian[depends:] == 0).all()
        assert torch.equal((jacobian[:depends] != 0).any(1), slopes[:depends])
        varies = depends > 0 or context is not None
        assert ((part.std(1) > 1e-6) == varies).all()


def later_columns_change_nothing(model: Density) -> None:
    """The conditionals up to column i are bitwise the same whatever the columns from i on hold."""
    x, context = some_rows(model, 30)
    with torch.no_grad():
        before = model.log_prob_per_column(x, context)
        for position, column in enumerate(model.order.tolist()):
            changed = x.clone()
            changed[:, model.order[position:]] = x.roll(1, 0)[:, model.order[position:]]
            after = model.log_prob_per_column(changed, context)
            earlier = model.order[:position]
            assert torch.equal(after[:, earlier], before[:, earlier])
            assert not torch.equal(after[:, column], before[:, column])


def chain_rule(model: Density) -> None:
    """log ν(x) is the sum of the columns' shares, which are the conditionals' log-probabilities."""
    for candidate, tolerance in ((model, 2e-5), (double(model), 1e-11)):
        x, context = some_rows(candidate, 50)
        shares = candidate.log_prob_per_column(x, context)
        for i, distribution in enumerate(candidate.conditionals(x, context)):
            expected = distribution.log_prob(x[:, i])
            torch.testing.assert_close(shares[:, i], expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(
            candidate.log_prob(x, context), shares.sum(1), rtol=tolerance, atol=tolerance
        )
