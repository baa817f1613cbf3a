"""What holds of every joint model: each law is a function that takes the model and raises if it is broken."""

import copy
import io
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.distributions import Distribution

from nits import NITS, PNN
from nits.heads import Atoms, Categorical, Head, Integer, Quantized
from nits.heads.distribution import AtomsColumn
from nits.model import blocks
from nits.pnn.affine import Affine
from nits.weights import Independent
from registry import seeded

Law = Callable[[NITS], None]


def double(model: NITS) -> NITS:
    """The same model, computed in float64."""
    return copy.deepcopy(model).double()


def some_context(model: NITS, n: int, seed: int = 100) -> Tensor | None:
    """Random context rows, if the model reads any."""
    width = model.weights.context
    return torch.randn(n, width, generator=seeded(seed)).to(model.low) if width else None


def some_rows(model: NITS, n: int, seed: int = 200) -> tuple[Tensor, Tensor | None]:
    """Rows drawn from the model, and their context."""
    context = some_context(model, n)
    return model.sample(n, context, seed), context


def uniforms(model: NITS, n: int, seed: int = 300) -> Tensor:
    return torch.rand(n, model.columns, generator=seeded(seed), dtype=torch.float64).to(model.low)


def discrete(model: NITS) -> Tensor:
    """Which columns are discrete, shape (D,)."""
    return torch.tensor(
        [isinstance(head, Quantized | Integer | Categorical) for head in model.heads]
    )


def greatest(head: Head) -> float:
    """The greatest value of a discrete column."""
    if isinstance(head, Integer):
        return head.greatest
    return (head.bins if isinstance(head, Quantized) else head.levels) - 1  # type: ignore[attr-defined]


def steps(model: NITS, x: Tensor, context: Tensor | None) -> Tensor:
    """How far each conditional's distribution function jumps at x, shape (N, D)."""
    with torch.no_grad():
        mass = model.log_prob_per_column(x, context).exp()
    jumps = discrete(model).expand_as(x).clone()
    for i, head in enumerate(model.heads):
        if isinstance(head, Atoms):
            jumps[:, i] = torch.isin(x[:, i], torch.tensor(head.values).to(x))
    return mass * jumps


def quadrature(distribution: Distribution, nodes: int = 300) -> tuple[Tensor, Tensor]:
    """Nodes x and weights w with Σ w ν(x) = ∫ ν, to an error that falls exponentially in their number.

    Gauss–Legendre between finite ends; otherwise the trapezoid rule in t, where x(t) makes ν die
    off quickly.
    """
    support: Any = distribution.support
    ends = (support.lower_bound, support.upper_bound)
    low, high = (torch.as_tensor(end).double().flatten()[0] for end in ends)
    if support.is_discrete:
        k = torch.arange(max(low.item(), -4000), min(high.item(), 4000) + 1).double()
        return k, torch.ones_like(k)
    if isinstance(distribution, Affine):
        x, w = quadrature_of_an_interval(low, high, 4 * nodes)
        scale = distribution.scale.mean()
        return distribution.loc.mean() + scale * x, scale * w
    x, w = quadrature_of_an_interval(low, high, nodes)
    if isinstance(distribution, AtomsColumn):
        atoms = distribution.values
        return torch.cat([atoms, x]), torch.cat([torch.ones_like(atoms), w])
    return x, w


def quadrature_of_an_interval(low: Tensor, high: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """See `quadrature`."""
    if low.isfinite() and high.isfinite():
        x, w = map(torch.from_numpy, np.polynomial.legendre.leggauss(nodes))
        return (low + high + (high - low) * x) / 2, (high - low) / 2 * w
    t = torch.linspace(-6, 6, nodes, dtype=torch.float64)
    step = t[1] - t[0]
    if low.isinf() and high.isinf():
        return t.sinh(), step * t.cosh()
    away = torch.exp(t - torch.exp(-t))
    weights = step * away * (1 + torch.exp(-t))
    return (low + away, weights) if low.isfinite() else (high - away, weights)


def each_conditional_has_mass_one(model: NITS) -> None:
    model = double(model)
    x, context = some_rows(model, 8)
    for distribution in model.conditionals(x, context):
        nodes, weights = quadrature(distribution)
        mass = (distribution.log_prob(nodes.unsqueeze(1)).exp() * weights.unsqueeze(1)).sum(0)
        torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0, atol=1e-9)
        if isinstance(distribution, PNN):
            whole = distribution.log_mass(distribution.low, distribution.high)
            torch.testing.assert_close(whole, torch.zeros_like(whole), rtol=0, atol=1e-13)


def last_two_columns_have_mass_one(model: NITS) -> None:
    """∫∫ ν(x_{D−1}, x_D | the others) = 1, through log_prob_per_column of whole rows."""
    model = double(model)
    x, context = some_rows(model, 1)
    last = model.order[-2:].tolist()
    conditionals = model.conditionals(x, context)
    rules = [quadrature(conditionals[i], 100) for i in last]
    nodes, weights = (
        torch.cartesian_prod(*part).reshape(-1, len(last)) for part in zip(*rules, strict=True)
    )
    rows = x.repeat(len(nodes), 1)
    rows[:, last] = nodes
    with torch.no_grad():
        log_prob = model.log_prob_per_column(
            rows, None if context is None else context.expand(len(rows), -1)
        )
    mass = (log_prob[:, last].sum(1).exp() * weights.prod(1)).sum()
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0, atol=1e-6)


def samples_follow_the_density(model: NITS) -> None:
    """E_{x ~ p}[q(x) / p(x)] = 1 for a neighbour q of p, within six standard errors (false alarm 2e−9)."""
    n, other = 4000, copy.deepcopy(model)
    with torch.no_grad():
        for i, parameter in enumerate(other.parameters()):
            noise = torch.randn(parameter.shape, generator=seeded(i)) * (parameter != 0)
            parameter.add_(0.02 * noise)
        x, context = some_rows(model, n)
        ratio = (other.log_prob(x, context) - model.log_prob(x, context)).double().exp()
    error = ratio.std() / n**0.5
    assert 1e-4 < error < 0.02, f"the neighbour is too near or too far for a test: {error:.5f}"
    assert (ratio.mean() - 1).abs() < 6 * error


def slope_is_the_derivative_of_to_uniform(model: NITS) -> None:
    """∂u_i/∂x_i = exp log ν_i; of integers k, u(k + 1) − u(k) = (P(k) + P(k + 1)) / 2."""
    model = double(model)
    x, context = some_rows(model, 32)
    x.requires_grad_()
    u, prob = model.to_uniform(x, context), model.log_prob_per_column(x, context).exp()
    jump = steps(model, x.detach(), context)
    for i, head in enumerate(model.heads):
        if discrete(model)[i]:
            up = x.detach().clone()
            up[:, i] = (up[:, i] + 1).clamp(max=greatest(head))
            rise = model.to_uniform(up, context)[:, i] - u[:, i]
            expected = (prob[:, i] + model.log_prob_per_column(up, context).exp()[:, i]) / 2
            expected = torch.where(up[:, i] == x[:, i], 0, expected)
        else:
            (gradient,) = torch.autograd.grad(u[:, i].sum(), x, retain_graph=True)
            smooth = jump[:, i] == 0
            rise, expected = gradient[smooth, i], prob[smooth, i]
        torch.testing.assert_close(rise, expected, rtol=1e-9, atol=1e-12)


def log_prob_has_the_right_slope_in_x(model: NITS) -> None:
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


def increases(model: NITS) -> None:
    model = double(model)
    x, context = some_rows(model, 1)
    for i, distribution in enumerate(model.conditionals(x, context)):
        levels = torch.linspace(1e-3, 1 - 1e-3, 60, dtype=x.dtype)
        grid = distribution.icdf(levels.unsqueeze(1))[:, 0].unique()
        rows = x.repeat(len(grid), 1)
        rows[:, i] = grid
        u = model.to_uniform(rows, None if context is None else context.expand(len(rows), -1))[:, i]
        assert len(grid) > 1
        assert (u.diff() > 0).all()


def round_trip_from_uniform(model: NITS) -> None:
    """to_uniform(from_uniform(u)) = u; a bin's middle is at most half its probability from u."""
    for candidate, tolerance in ((model, 1e-5), (double(model), 1e-12)):
        u, context = uniforms(candidate, 400), some_context(candidate, 400)
        with torch.no_grad():
            x = candidate.from_uniform(u, context)
            error = (candidate.to_uniform(x, context) - u).abs()
            half_bin = steps(candidate, x, context) / 2
        assert (error <= half_bin + tolerance).all()


def round_trip_to_uniform(model: NITS) -> None:
    """from_uniform(to_uniform(x)) = x, with the error measured where it arises: in units of 1 / ν."""
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


def to_uniform_gives_probabilities(model: NITS) -> None:
    """0 ≤ u ≤ 1 however far out x lies, so that from_uniform takes it back."""
    for candidate in (model, double(model)):
        x, context = some_rows(candidate, 300)
        with torch.no_grad():
            for scale in (1, 10, 100):
                u = candidate.to_uniform(torch.where(discrete(model), x, scale * x), context)
                assert u.min() >= 0
                assert u.max() <= 1


def looks_only_at_the_columns_before(model: NITS) -> None:
    """∂θ_i/∂x_j is exactly zero for j ≥ i, not zero for each j < i, in modelling order; no output is dead."""
    n = 64
    rows, context = some_rows(model, n, seed=1)
    x = model.described(rows).detach().requires_grad_()
    # A category is read through which one it is, which has no slope.
    sloped = torch.tensor([not isinstance(head, Categorical) for head in model.ordered])
    theta = model.weights(model.reading(x), None if context is None else context.t()).expand(-1, n)
    for i, part in enumerate(theta.split(model.weights.outputs)):
        cotangent = torch.randn(part.shape, generator=seeded(2 + i))
        (jacobian,) = torch.autograd.grad(
            (part * cotangent).sum() + 0 * x.sum(), x, retain_graph=True
        )
        depends = i if not isinstance(model.weights, Independent) else 0
        assert (jacobian[depends:] == 0).all()
        assert torch.equal((jacobian[:depends] != 0).any(1), sloped[:depends])
        varies = depends > 0 or context is not None
        assert ((part.std(1) > 1e-6) == varies).all()


def later_columns_change_nothing(model: NITS) -> None:
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


def chain_rule(model: NITS) -> None:
    """log ν(x) is the sum of the columns' shares, which are the conditionals' log-probabilities."""
    for candidate, tolerance in ((model, 2e-5), (double(model), 1e-11)):
        x, context = some_rows(candidate, 50)
        parts = candidate.log_prob_per_column(x, context)
        conditionals = candidate.conditionals(x, context)
        for i, distribution in enumerate(conditionals):
            expected = distribution.log_prob(x[:, i])
            torch.testing.assert_close(parts[:, i], expected, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(
            candidate.log_prob(x, context), parts.sum(1), rtol=tolerance, atol=tolerance
        )


def conditionals_are_the_uniform_transform(model: NITS) -> None:
    """u_i = the conditional's cdf at x_i; of integers, the middle of its step."""
    model = double(model)
    x, context = some_rows(model, 50)
    u = model.to_uniform(x, context)
    for i, distribution in enumerate(model.conditionals(x, context)):
        at = distribution.cdf(x[:, i])
        at = at - steps(model, x, context)[:, i] / 2
        torch.testing.assert_close(u[:, i], at, rtol=1e-10, atol=1e-12)


def samples_are_uniform_after_the_transform(model: NITS) -> None:
    """F(samples), by the conditionals' own cdf, is uniform and independent of the columns before.

    Kolmogorov–Smirnov per column and a correlation per pair, 28 tests at most of 1e−7 each.
    Inside a step of a discrete cdf the point is drawn at random.
    """
    n = 3000
    x, context = some_rows(model, n, seed=4)
    jitter = torch.rand(x.shape, generator=seeded(5))
    u, jump = torch.empty_like(x), steps(model, x, context)
    with torch.no_grad():
        for i, distribution in enumerate(model.conditionals(x, context)):
            u[:, i] = distribution.cdf(x[:, i]) - jitter[:, i] * jump[:, i]
    for column in u.t():
        assert stats.kstest(column.double().numpy(), "uniform").pvalue > 1e-7
    if model.columns > 1:
        correlation = torch.corrcoef(u.t()) - torch.eye(model.columns)
        assert correlation.abs().max() < 5.33 / n**0.5


def every_parameter_gets_a_finite_gradient(model: NITS) -> None:
    """And one that is not zero throughout, unless a mask hides the whole matrix."""
    x, context = some_rows(model, 64)
    model.log_prob(x, context).mean().backward()
    for name, parameter in model.named_parameters():
        if parameter.numel() == 0:
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        mask = model.get_submodule(name.rpartition(".")[0])._buffers.get("mask")
        hidden = name.endswith("weight") and mask is not None and not mask.any()
        assert parameter.grad.any() != hidden, name


def gradient_of_log_prob_in_the_weights(model: NITS) -> None:
    """The derivative along a random direction of all parameters agrees with central differences."""
    model = double(model)
    x, context = some_rows(model, 16)
    _assert_directional(model, lambda: model.log_prob(x, context).sum())


def implicit_gradient_of_rsample(model: NITS) -> None:
    """∂x/∂u by gradcheck, ∂x/∂weights along a random direction by central differences."""
    model = double(model)
    context = some_context(model, 2)
    u = (0.05 + 0.9 * uniforms(model, 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: model.from_uniform(v, context), (u,), fast_mode=True)
    weights = torch.randn(2, model.columns, generator=seeded(9), dtype=u.dtype)
    _assert_directional(model, lambda: (model.rsample(2, context, 10) * weights).sum())


def _assert_directional(model: NITS, value: Callable[[], Tensor]) -> None:
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


def gradients_do_not_change_samples(model: NITS) -> None:
    """The quick way, column by column, and the one that autograd can follow give the same rows."""
    model = double(model)
    u, context = uniforms(model, 20), some_context(model, 20)
    slow = model.from_uniform(u.clone().requires_grad_(), context)
    assert slow.requires_grad or bool(discrete(model).all())
    with torch.no_grad():
        quick = model.from_uniform(u, context)
    torch.testing.assert_close(slow, quick, rtol=1e-9, atol=1e-9)


def a_batch_of_one_equals_a_row_of_a_batch(model: NITS) -> None:
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


def float32_is_near_float64(model: NITS) -> None:
    fine = double(model)
    x, context = some_rows(model, 200)
    wide = None if context is None else context.double()
    u = uniforms(model, 200)
    with torch.no_grad():
        near(model.log_prob(x, context), fine.log_prob(x.double(), wide), 1e-4)
        near(model.to_uniform(x, context), fine.to_uniform(x.double(), wide), 1e-5)
        slope = fine.log_prob_per_column(x.double(), wide).exp().clamp(max=1)
        gap = (model.from_uniform(u, context) - fine.from_uniform(u.double(), wide)).abs()
    # A root is as good as its residual over the slope; a number next to a bin's edge may fall
    # either way.
    real = ~discrete(model)
    if real.any():
        assert (gap * slope.amin(1, keepdim=True))[:, real].quantile(0.95) < 1e-4
    assert gap.median() < 1e-4


def near(got: Tensor, expected: Tensor, tolerance: float) -> None:
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)


def the_seed_decides_the_samples(model: NITS) -> None:
    """The same seed gives the same rows, another seed others, and the global generator is left alone."""
    context = some_context(model, 8)
    state = torch.get_rng_state()
    for quasi in (False, True):
        generator = seeded(1)
        first = model.sample(8, context, 1, quasi=quasi)
        assert torch.equal(model.sample(8, context, generator, quasi=quasi), first)
        assert not torch.equal(model.sample(8, context, generator, quasi=quasi), first)
        assert not torch.equal(model.sample(8, context, quasi=quasi), first)
    assert torch.equal(torch.get_rng_state(), state)


def chunks_change_nothing(model: NITS) -> None:
    """In chunks of rows and pieces of columns as in one, for every method that cuts."""
    model = double(model)
    n = 150  # more than the 64 rows that a chunk holds at least
    u, context = uniforms(model, n), some_context(model, n)

    def everything() -> list[Tensor]:
        with torch.no_grad():
            x = model.from_uniform(u, context)
            return [x, model.log_prob_per_column(x, context), model.to_uniform(x, context)]

    whole = everything()
    with (
        mock.patch.object(blocks, "CHUNK_BYTES", 1),
        mock.patch.object(blocks, "PIECE_BYTES", 1),
        mock.patch.object(model.weights, "sampled_at_once", 70),
    ):
        pieces = everything()
    for got, expected in zip(pieces, whole, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def saving_and_loading_is_bitwise(model: NITS) -> None:
    x, context = some_rows(model, 10)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.fill_(0.5)
    assert not torch.equal(other.log_prob(x, context), model.log_prob(x, context))
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.log_prob(x, context), model.log_prob(x, context))


def nothing_outside_the_support(model: NITS) -> None:
    """A column outside its support, or infinite, costs −inf; a NaN gives NaN, if it is not optional."""
    x, context = some_rows(model, 6)
    for i, head in enumerate(model.heads):
        ends = (head.low - 1, head.high + 1)
        if discrete(model)[i]:
            ends = (0.5, torch.inf if isinstance(head, Integer) else 1e6)
        for end in ends:
            assert (model.log_prob(_with(x, i, end), context) == -torch.inf).all()
        assert (model.log_prob(_with(x, i, torch.nan), context).isnan() != head.optional).all()


def _with(x: Tensor, column: int, value: float) -> Tensor:
    x = x.clone()
    x[:, column] = value
    return x


LAWS: tuple[Law, ...] = (
    each_conditional_has_mass_one,
    last_two_columns_have_mass_one,
    samples_follow_the_density,
    slope_is_the_derivative_of_to_uniform,
    log_prob_has_the_right_slope_in_x,
    increases,
    round_trip_from_uniform,
    round_trip_to_uniform,
    to_uniform_gives_probabilities,
    looks_only_at_the_columns_before,
    later_columns_change_nothing,
    chain_rule,
    conditionals_are_the_uniform_transform,
    samples_are_uniform_after_the_transform,
    every_parameter_gets_a_finite_gradient,
    gradient_of_log_prob_in_the_weights,
    implicit_gradient_of_rsample,
    gradients_do_not_change_samples,
    a_batch_of_one_equals_a_row_of_a_batch,
    float32_is_near_float64,
    the_seed_decides_the_samples,
    chunks_change_nothing,
    saving_and_loading_is_bitwise,
    nothing_outside_the_support,
)
