"""What the tests of both kinds of kernels compare: values and gradients with and without them."""

import torch
from torch import Tensor

from laws import some_rows
from nits import kernels
from nits.model.density import Density


def value_and_gradients(model: Density, n: int) -> tuple[Tensor, list[Tensor]]:
    x, context = some_rows(model, n)
    x[0] = x[0].abs() + 1e6  # outside some supports, and far out in the others
    value = model.log_prob_per_column(x, context)
    outer = torch.linspace(0.5, 2, value.numel()).view_as(value)
    parameters = [p for p in model.parameters() if p.numel()]
    return value.detach(), list(torch.autograd.grad((value * outer)[1:].sum(), parameters))


def assert_same(model: Density, n: int, ran: set[str]) -> None:
    """The kernels compute what plain operations compute; `ran` names the kernels that have run."""
    (value, gradients) = value_and_gradients(model, n)
    with kernels.using(native=False, compiled=False):
        eager, expected = value_and_gradients(model, n)
        x, context = some_rows(model, n)
        with torch.no_grad():
            scores = model.log_prob(x, context)
    assert kernels.current().ran >= ran
    torch.testing.assert_close(value, eager, rtol=1e-4, atol=1e-4)
    for got, wanted in zip(gradients, expected, strict=True):
        scale = wanted.abs().max().item()
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4 * scale + 1e-7)
    with torch.no_grad():
        torch.testing.assert_close(model.log_prob(x, context), scores, rtol=1e-4, atol=1e-4)
