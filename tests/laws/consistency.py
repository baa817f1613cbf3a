"""Laws of evaluation: batches, chunks, precision and files do not change what a density says."""

import copy
import tempfile

import torch
from torch import Tensor

import nits
from laws.density import (
    Density,
    cut_small,
    discrete,
    double,
    some_context,
    some_rows,
    uniforms,
)


def a_batch_of_one_equals_a_row_of_a_batch(model: Density) -> None:
    x, context = some_rows(model, 17)
    u = uniforms(model, 17)
    one = slice(5, 6)
    alone = None if context is None else context[one]
    with torch.no_grad():
        pairs = [
            (f(v, context)[one], f(v[one], alone))
            for f, v in (
                (model.log_prob, x),
                (model.log_prob_per_column, x),
                (model.to_uniform, x),
                (model.from_uniform, u),
            )
        ]
    for batch, single in pairs:
        torch.testing.assert_close(single, batch, rtol=1e-5, atol=1e-5)


def float32_is_near_float64(model: Density) -> None:
    fine = double(model)
    x, context = some_rows(model, 200)
    wide = None if context is None else context.double()
    u = uniforms(model, 200)
    with torch.no_grad():
        _near(model.log_prob(x, context), fine.log_prob(x.double(), wide), 1e-4)
        _near(model.to_uniform(x, context), fine.to_uniform(x.double(), wide), 1e-5)
        slope = fine.log_prob_per_column(x.double(), wide).exp().clamp(max=1)
        gap = (model.from_uniform(u, context) - fine.from_uniform(u.double(), wide)).abs()
    # A root is as good as its residual over the slope; a number next to a bin's edge may fall
    # either way.
    real = ~discrete(model)
    if real.any():
        assert (gap * slope.amin(1, keepdim=True))[:, real].quantile(0.95) < 1e-4
    assert gap.median() < 1e-4


def _near(got: Tensor, expected: Tensor, tolerance: float) -> None:
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)


def chunks_change_nothing(model: Density) -> None:
    """In chunks of rows and pieces of columns as in one, for every method that cuts."""
    model = double(model)
    n = 150  # more than the 64 rows that a chunk holds at least
    u, context = uniforms(model, n), some_context(model, n)

    def everything() -> list[Tensor]:
        with torch.no_grad():
            x = model.from_uniform(u, context)
            return [x, model.log_prob_per_column(x, context), model.to_uniform(x, context)]

    whole = everything()
    with cut_small(model):
        pieces = everything()
    for got, expected in zip(pieces, whole, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def saving_and_loading_is_bitwise(model: Density) -> None:
    """A file holds all of a density: after loading it gives the same numbers, in either dtype."""
    for candidate in (model, double(model)):
        x, context = some_rows(candidate, 10)
        with tempfile.TemporaryDirectory() as folder:
            nits.save(candidate, f"{folder}/density.nits")
            again = nits.load(f"{folder}/density.nits")
        assert type(again) is type(candidate)
        with torch.no_grad():
            assert torch.equal(again.log_prob(x, context), candidate.log_prob(x, context))
            assert torch.equal(
                again.sample(5, some_context(again, 5), 1),
                candidate.sample(5, some_context(candidate, 5), 1),
            )


def a_state_dict_is_all_there_is(model: Density) -> None:
    x, context = some_rows(model, 10)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.fill_(0.5)
    assert not torch.equal(other.log_prob(x, context), model.log_prob(x, context))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.log_prob(x, context), model.log_prob(x, context))


def calling_is_scoring(model: Density) -> None:
    """`forward` is `log_prob`, so that hooks and data-parallel training work."""
    x, context = some_rows(model, 5)
    assert torch.equal(model(x, context), model.log_prob(x, context))


def rows_lie_in_the_support_of_their_distribution(model: Density) -> None:
    """`distribution()` scores rows as the model does, and its support holds what it draws."""
    context = some_context(model, 3)
    d = model.distribution(context)
    x = d.sample((4,), 1)
    assert d.support.check(x).all()
    rows = x.flatten(0, -2)
    about = None if context is None else context.repeat(4, 1)
    with torch.no_grad():
        found, expected = d.log_prob(x).flatten(), model.log_prob(rows, about)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
