"""Laws of derivatives: densities are slopes, and gradients agree with finite differences."""

from collections.abc import Callable

import torch
from torch import Tensor

from laws.density import (
    Density,
    double,
    heads,
    some_context,
    some_rows,
    steps,
    uniforms,
    values,
)
from registry import seeded


def slope_is_the_derivative_of_to_uniform(model: Density) -> None:
    """∂u_i/∂x_i = exp log ν_i; of integers, u rises by (P(k) + P(k′)) / 2 from k to the next k′."""
    model = double(model)
    x, context = some_rows(model, 32)
    x.requires_grad_()
    u, prob = model.to_uniform(x, context), model.log_prob_per_column(x, context).exp()
    jump = steps(model, x.detach(), context)
    for i, head in enumerate(heads(model)):
        known = values(head)
        if known is not None:
            up = x.detach().clone()
            above = torch.searchsorted(known, up[:, i].contiguous(), right=True)
            up[:, i] = known[above.clamp(max=len(known) - 1)]
            rise = model.to_uniform(up, context)[:, i] - u[:, i]
            expected = (prob[:, i] + model.log_prob_per_column(up, context).exp()[:, i]) / 2
            expected = torch.where(up[:, i] == x[:, i], 0, expected)
        else:
            (gradient,) = torch.autograd.grad(u[:, i].sum(), x, retain_graph=True)
            smooth = jump[:, i] == 0
            rise, expected = gradient[smooth, i], prob[smooth, i]
        torch.testing.assert_close(rise, expected, rtol=1e-9, atol=1e-12)


def log_prob_has_the_right_slope_in_x(model: Density) -> None:
    """∂ log ν/∂x by autograd agrees with central differences, through the network too."""
    model = double(model)
    x, context = some_rows(model, 16)
    smooth = steps(model, x, context) == 0
    direction = torch.randn(x.shape, generator=seeded(7), dtype=x.dtype) * smooth
    step = 1e-6 * direction
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(model.log_prob(x, context).sum(), x)
    with torch.no_grad():
        up, down = model.log_prob(x + step, context), model.log_prob(x - step, context)
    found = (gradient * step).sum(1) * 2
    scale = (gradient * step).abs().sum(1)
    assert ((up - down - found).abs() <= 1e-4 * scale + 1e-12).all()


def every_parameter_gets_a_finite_gradient(model: Density) -> None:
    """And one that is not zero throughout, unless a mask hides the whole matrix."""
    x, context = some_rows(model, 64)
    model.log_prob(x, context).mean().backward()
    for name, parameter in model.named_parameters():
        if parameter.numel() == 0:
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        mask = getattr(model.get_submodule(name.rpartition(".")[0]), "mask", None)
        masked = name.endswith("weight") and mask is not None and not mask.any()
        assert parameter.grad.any() != masked, name


def gradient_of_log_prob_in_the_weights(model: Density) -> None:
    """The derivative along a random direction of all parameters agrees with central differences."""
    model = double(model)
    x, context = some_rows(model, 16)
    _assert_directional(model, lambda: model.log_prob(x, context).sum())


def implicit_gradient_of_rsample(model: Density) -> None:
    """∂x/∂u by gradcheck, ∂x/∂weights along a random direction by central differences."""
    model = double(model)
    context = some_context(model, 2)
    u = (0.05 + 0.9 * uniforms(model, 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: model.from_uniform(v, context), (u,), fast_mode=True)
    weights = torch.randn(2, model.columns, generator=seeded(9), dtype=u.dtype)
    _assert_directional(model, lambda: (model.rsample(2, context, 10) * weights).sum())


def _assert_directional(model: Density, value: Callable[[], Tensor]) -> None:
    """Compares autograd with central differences; masked entries stay where they are."""
    parameters = [p for p in model.parameters() if p.numel()]
    directions = [
        torch.randn(p.shape, generator=seeded(20 + i), dtype=p.dtype) * (p != 0)
        for i, p in enumerate(parameters)
    ]
    gradients = torch.autograd.grad(value(), parameters, allow_unused=True)
    found = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True) if g is not None)
    step = 1e-6
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            for p, d in zip(parameters, directions, strict=True):
                p.add_(sign * step * d)
            ends.append(value())
            for p, d in zip(parameters, directions, strict=True):
                p.sub_(sign * step * d)
    expected = (ends[0] - ends[1]) / (2 * step)
    torch.testing.assert_close(
        torch.as_tensor(found, dtype=expected.dtype), expected, rtol=1e-5, atol=1e-6
    )
