"""NITS-CONV on windows: against loops over pixels, cached evaluation, predictions and scales."""

import math

import pytest
import torch

from nits import NITS, Recipe, fit
from nits.heads import Categorical, Continuous, Quantized
from nits.pnn.plain import log_weights
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from nits.weights import CausalWindow, WindowSize
from nits.weights.local_scale import LocalScale
from registry import randomized, seeded, window

HOLE = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])


def network(
    shape: tuple[int, int, int], present: torch.Tensor | None = None, context: int = 0
) -> CausalWindow:
    model = randomized(lambda: window(shape, Continuous(hidden=(4,)), context, present), 1)
    assert isinstance(model.weights, CausalWindow)
    return model.weights.double()


def features(weights: CausalWindow, n: int = 6) -> torch.Tensor:
    return torch.randn(len(weights.inputs), n, generator=seeded(1), dtype=torch.float64)


@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize(
    ("shape", "present"), [((1, 4, 5), None), ((3, 3, 4), None), ((2, 3, 3), HOLE)]
)
def test_pixel_by_pixel_is_the_whole_network(
    shape: tuple[int, int, int], present: torch.Tensor | None, context: int
) -> None:
    weights = network(shape, present, context)
    given = torch.randn(context, 6, generator=seeded(0), dtype=torch.float64) if context else None
    x = features(weights)
    stepper, parts = weights.stepper(6, given), []
    with torch.no_grad():
        for column in x:
            parts.append(stepper.theta())
            stepper.feed(column.unsqueeze(0))
        torch.testing.assert_close(torch.cat(parts), weights(x, given), rtol=1e-12, atol=1e-12)


def test_some_images_go_on_alone() -> None:
    """`take` in the middle of a row: the images taken are those of a batch of their own."""
    weights = network((2, 3, 4), context=2)
    context = torch.randn(2, 4, generator=seeded(0), dtype=torch.float64)
    x, index = features(weights, 4), torch.tensor([3, 1, 1])
    stepper, parts = weights.stepper(4, context), []
    with torch.no_grad():
        for k, column in enumerate(x):
            if k == 11:
                stepper.take(index)
            parts.append(stepper.theta() if k >= 11 else stepper.theta()[:, index])
            stepper.feed((column if k < 11 else column[index]).unsqueeze(0))
        whole = weights(x[:, index], context[:, index])
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-12, atol=1e-12)


def slow_scales(
    local: LocalScale, x: torch.Tensor, present: torch.Tensor
) -> tuple[list[float], list[float]]:
    """Equation (45) pixel by pixel, for values x of one image with one channel, shape (H, W)."""
    reach = max(j for _, j in local.offsets)
    places = [tuple(p) for p in present.nonzero().tolist()]
    number = {place: k for k, place in enumerate(places)}
    errors: dict[tuple[int, ...], float] = {}
    guesses, scales = [], []
    a, c = local.log_a.exp().tolist(), float(local.log_c.exp())
    for i, j in places:
        around = [(i + di, j + dj) for di, dj in local.offsets]
        assert all(abs(di) <= reach for di, _ in local.offsets)
        there = [place in number for place in around]
        kind = int(local.kind[number[i, j]])
        line = local.lines[kind, 0].tolist()
        known = [float(x[p]) if yes else 0.0 for p, yes in zip(around, there, strict=True)]
        guess = sum(w * v for w, v in zip(line, known, strict=False)) + line[-1]
        sigma = float(local.spread[kind, 0])
        some = [(w, errors[p] ** 2) for w, p, yes in zip(a, around, there, strict=True) if yes]
        square = (c + sum(w * e for w, e in some)) / (c + sum(w for w, _ in some))
        errors[i, j] = (float(x[i, j]) - guess) / sigma
        guesses.append(guess)
        scales.append(sigma * math.sqrt(square))
    return guesses, scales


@pytest.mark.parametrize("present", [torch.ones(4, 5), HOLE])
def test_predictions_and_scales_are_those_of_a_loop(present: torch.Tensor) -> None:
    height, width = present.shape
    local = network((1, height, width), present.bool()).local
    x = torch.randn(height, width, generator=seeded(3), dtype=torch.float64)
    own = x[present.bool()].view(1, -1, 1)
    with torch.no_grad():
        seen = local.seen(own)
        guesses, scales = slow_scales(local, x, present.bool())
        found, log_scale = local.placing(0, seen, local.errors(seen, own)[:0])
    want = torch.tensor([guesses, scales], dtype=torch.float64)
    torch.testing.assert_close(torch.stack([found, log_scale.exp()])[:, :, 0, 0], want)


def test_units_are_placed_by_guess_and_scale() -> None:
    """Equation (45): z = W (x − r) / s − β, where the network returns W and β."""
    weights = network((1, 2, 3))
    x = features(weights)
    with torch.no_grad():
        seen = weights.local.seen(weights.values(x))
        guess, log_scale = weights.local.placing(0, seen, weights.local.errors(seen, x[None])[:0])
        h = weights.trunk(seen, slice(None), None)
        whole = weights.theta(0, h, seen, weights.values(x), slice(None))
        units, weights.units = weights.units, 0
        plain = weights.theta(0, h, seen, weights.values(x), slice(None))
    point = torch.randn(6, 1, 6, generator=seeded(5), dtype=torch.float64)
    slopes, offsets = plain[:, :units], plain[:, units : 2 * units]
    z = log_weights(slopes).exp() * (point - guess) / log_scale.exp() - offsets
    moved = log_weights(whole[:, :units]).exp() * (point - whole[:, units : 2 * units])
    torch.testing.assert_close(moved, z, rtol=0.02, atol=0.02)  # log W is bent to stay within ±20


def smooth_images(n: int, side: int = 6) -> torch.Tensor:
    """Planes of random slopes with noise as strong as the slope: places differ in scale."""
    source = seeded(7)
    scale = torch.rand(n, 1, 1, generator=source) ** 3
    slopes = torch.randn(n, 2, 1, 1, generator=source)
    i, j = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    noise = torch.randn(n, side, side, generator=source)
    return (scale * (slopes[:, 0] * i + slopes[:, 1] * j + 0.3 * noise)).flatten(1)


def test_it_starts_from_predictions_in_units_of_the_local_scale() -> None:
    rows, head = smooth_images(3000), Continuous(hidden=(8,))
    make = {"window": WindowSize(2, 16, 1), "convolution": None}
    start = {}
    for name, size in make.items():
        model = NITS.conv((1, 6, 6), head, size=size, generator=0)
        start_from_data(model, Rows(rows[:2000]))
        with torch.no_grad():
            start[name] = float(model.log_prob(rows[2000:]).mean())
    assert start["window"] > start["convolution"] + 5


def test_it_learns_from_where_it_starts() -> None:
    rows = smooth_images(3000)
    model = NITS.conv((1, 6, 6), Continuous(hidden=(8,)), size=WindowSize(2, 16, 1), generator=0)
    recipe = Recipe(batch_size=64, learning_rate=5e-3)
    history = fit(model, rows, recipe=recipe, max_steps=200, progress=False)
    assert history.start is not None
    assert max(history.validation) > history.start + 2


def test_channels_follow_one_another_from_the_start() -> None:
    source = seeded(2)
    red = torch.randint(0, 12, (2000, 9, 1), generator=source)
    rows = torch.cat([red, red + torch.randint(0, 2, red.shape, generator=source)], 2).flatten(1)
    pixel = Quantized(0.0, 1.0, 16, (8,))
    model = NITS.conv((2, 3, 3), pixel, size=WindowSize(1, 8, 1), generator=0)
    start_from_data(model, Rows(rows.float()))
    with torch.no_grad():
        terms = model.log_prob_per_column(rows[:500].float()).mean(0)
    assert float(terms[1::2].mean()) > float(terms[::2].mean()) + 0.8  # log 12 against log 2


def test_a_pixel_without_a_pnn_starts_from_its_levels() -> None:
    rows = torch.randint(0, 3, (300, 4), generator=seeded(0)).float().clamp(max=1)
    model = NITS.conv((1, 2, 2), Categorical(2), size=WindowSize(1, 4, 1), generator=0)
    start_from_data(model, Rows(rows))
    with torch.no_grad():
        assert float(model.log_prob(rows).mean()) == pytest.approx(4 * -0.6365, abs=0.1)
