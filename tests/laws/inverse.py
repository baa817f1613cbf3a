"""Laws of the uniform transform: it increases, and from_uniform takes it back."""

import torch

from laws.density import (
    Density,
    discrete,
    double,
    repeated,
    some_context,
    some_rows,
    steps,
    uniforms,
)


def increases(model: Density) -> None:
    model = double(model)
    x, context = some_rows(model, 1)
    for i, distribution in enumerate(model.conditionals(x, context)):
        levels = torch.linspace(1e-3, 1 - 1e-3, 60, dtype=x.dtype)
        grid = distribution.icdf(levels.unsqueeze(1))[:, 0].unique()
        rows = x.repeat(len(grid), 1)
        rows[:, i] = grid
        u = model.to_uniform(rows, repeated(context, len(rows)))[:, i]
        assert len(grid) > 1
        assert (u.diff() > 0).all()


def round_trip_from_uniform(model: Density) -> None:
    """to_uniform(from_uniform(u)) = u; a bin's middle is at most half its probability from u."""
    for candidate, tolerance in ((model, 1e-5), (double(model), 1e-12)):
        u, context = uniforms(candidate, 400), some_context(candidate, 400)
        with torch.no_grad():
            x = candidate.from_uniform(u, context)
            error = (candidate.to_uniform(x, context) - u).abs()
            half_bin = steps(candidate, x, context) / 2
        assert (error <= half_bin + tolerance).all()


def round_trip_to_uniform(model: Density) -> None:
    """from_uniform(to_uniform(x)) = x, with the error measured in u, that is, in units of 1 / ν."""
    for candidate, tolerance in ((model, 1e-5), (double(model), 1e-12)):
        context = some_context(candidate, 400)
        with torch.no_grad():
            # Not from the outer tails: there a rounding of u moves x so far that the next columns
            # notice.
            x = candidate.from_uniform(0.001 + 0.998 * uniforms(candidate, 400), context)
            again = candidate.from_uniform(candidate.to_uniform(x, context), context)
            slope = candidate.log_prob_per_column(x, context).exp()
        smooth = steps(candidate, x, context) == 0
        assert torch.equal(again[~smooth], x[~smooth])
        error = ((again - x).abs() * slope)[smooth]
        assert (error <= tolerance * (1 + (x.abs() * slope)[smooth])).all()


def to_uniform_gives_probabilities(model: Density) -> None:
    """0 ≤ u ≤ 1 however far out x lies, so that from_uniform takes it back."""
    for candidate in (model, double(model)):
        x, context = some_rows(candidate, 300)
        with torch.no_grad():
            for scale in (1, 10, 100):
                u = candidate.to_uniform(torch.where(discrete(model), x, scale * x), context)
                assert u.min() >= 0
                assert u.max() <= 1


def conditionals_are_the_uniform_transform(model: Density) -> None:
    """u_i = the conditional's cdf at x_i; of integers, the middle of its step."""
    model = double(model)
    x, context = some_rows(model, 50)
    u = model.to_uniform(x, context)
    for i, distribution in enumerate(model.conditionals(x, context)):
        at = distribution.cdf(x[:, i])
        at = at - steps(model, x, context)[:, i] / 2
        torch.testing.assert_close(u[:, i], at, rtol=1e-10, atol=1e-12)


def gradients_do_not_change_samples(model: Density) -> None:
    """The quick way, column by column, and the one that autograd can follow give the same rows."""
    model = double(model)
    u, context = uniforms(model, 20), some_context(model, 20)
    slow = model.from_uniform(u.clone().requires_grad_(), context)
    assert slow.requires_grad or bool(discrete(model).all())
    with torch.no_grad():
        quick = model.from_uniform(u, context)
    torch.testing.assert_close(slow, quick, rtol=1e-9, atol=1e-9)
