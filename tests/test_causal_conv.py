"""NITS-CONV's network: cached evaluation against the whole network, missing pixels, exact pmfs."""

import itertools
import re

import pytest
import torch
from torch import Tensor

from nits import NITS, Recipe, fit
from nits.heads import Continuous, Quantized
from nits.images.rows import to_images, to_rows
from nits.pnn.plain import log_weights
from nits.training.likelihood import start_from_data
from nits.training.rows import Rows
from nits.weights import CausalConv, ConvSize
from nits.weights.causal_layers import Across, Down
from nits.weights.causal_stepper import Cache, ConvStepper
from nits.weights.causal_theta import PixelTheta
from registry import conv, randomized, seeded

TINY = ConvSize(filters=5, blocks=3, dilations=(1, 2))
HOLE = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])


@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize(
    ("shape", "present"), [((1, 4, 5), None), ((3, 3, 4), None), ((2, 3, 3), HOLE)]
)
def test_pixel_by_pixel_is_the_whole_network(
    shape: tuple[int, int, int], present: torch.Tensor | None, context: int
) -> None:
    make = lambda: conv(shape, Continuous(hidden=(4,)), context, present)  # noqa: E731
    weights = randomized(make, 1).weights.double()
    given = torch.randn(context, 6, generator=seeded(0), dtype=torch.float64) if context else None
    features = torch.randn(len(weights.inputs), 6, generator=seeded(1), dtype=torch.float64)
    stepper, parts = weights.stepper(6, given), []
    with torch.no_grad():
        for column in features:
            parts.append(stepper.theta())
            stepper.feed(column.unsqueeze(0))
        torch.testing.assert_close(
            torch.cat(parts), weights(features, given), rtol=1e-12, atol=1e-12
        )


def test_a_row_and_a_pixel_are_those_of_the_whole_convolution() -> None:
    x = torch.randn(2, 3, 5, 6, generator=seeded(0))
    for dilation in (1, 2, 4):
        down, across = Down(3, 4, dilation), Across(3, 4, dilation)
        kept, rows = Cache(down, 2, 6), []
        for i in range(5):
            kept.put_row(i, x[:, :, i].transpose(1, 2))
            rows.append(kept.row(i).transpose(1, 2))
        torch.testing.assert_close(torch.stack(rows, 2), down(x))
        kept, pixels = Cache(across, 2, 6), []
        for i, j in itertools.product(range(5), range(6)):
            kept.put(i, j, x[:, :, i, j])
            pixels.append(kept.pixel(i, j))
        torch.testing.assert_close(torch.stack(pixels, 2).unflatten(2, (5, 6)), across(x))


def test_some_images_go_on_alone() -> None:
    """`take` in the middle of a row: the images taken are those of a batch of their own."""
    make = lambda: conv((2, 3, 4), Continuous(hidden=(4,)), 2)  # noqa: E731
    weights = randomized(make, 1).weights.double()
    assert isinstance(weights, CausalConv)
    context = torch.randn(2, 4, generator=seeded(0), dtype=torch.float64)
    features = torch.randn(len(weights.inputs), 4, generator=seeded(1), dtype=torch.float64)
    index = torch.tensor([3, 1, 1])
    stepper, parts = ConvStepper(weights, 4, context), []
    with torch.no_grad():
        for k, column in enumerate(features):
            if k == 11:
                stepper.take(index)
            parts.append(stepper.theta() if k >= 11 else stepper.theta()[:, index])
            stepper.feed((column if k < 11 else column[index]).unsqueeze(0))
        whole = weights(features[:, index], context[:, index])
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-12, atol=1e-12)


def test_a_pixel_that_is_not_there_says_nothing() -> None:
    """The columns are those of the other pixels, and no padding with a known value leaks in."""
    model = randomized(lambda: conv((1, 3, 3), Continuous(hidden=(4,)), present=HOLE), 2)
    assert model.columns == 7
    rows = model.sample(5, generator=0)
    images = to_images(rows, (1, 3, 3), HOLE)
    assert torch.equal(to_rows(images, HOLE), rows)
    assert (images[:, 0, HOLE == 0] == 0).all()
    filled = images.clone()
    filled[:, 0, HOLE == 0] = 9.0
    assert torch.equal(model.log_prob(to_rows(filled, HOLE)), model.log_prob(rows))


def test_all_small_images_have_probability_one() -> None:
    """256 images of 2 × 2 pixels with 4 levels."""
    model = randomized(lambda: conv((1, 2, 2), Quantized(0.0, 1.0, 4, (6, 5))), 3).double()
    images = torch.tensor(list(itertools.product(range(4), repeat=4)), dtype=torch.float64)
    with torch.no_grad():
        assert float(model.log_prob(images).exp().sum()) == pytest.approx(1, abs=1e-12)


def test_it_learns_stripes() -> None:
    """Each row of pixels is all dark or all light, which no pixel alone can tell."""
    torch.manual_seed(0)
    stripes = torch.randint(2, (600, 1, 4, 1), generator=seeded(0)).expand(-1, -1, -1, 4)
    rows = to_rows(stripes)
    model = NITS.conv((1, 4, 4), Quantized(0.0, 1.0, 2, (4,)), size=TINY)
    recipe = Recipe(batch_size=64, learning_rate=1e-2, average=0.9)
    history = fit(model, rows, max_steps=140, recipe=recipe, progress=False)
    nats = torch.log(torch.tensor(2.0)).item()
    with torch.no_grad():
        assert float(model.log_prob(rows).mean()) > -5 * nats  # four free rows: −2.8
    assert history.train[0] < -5 * nats  # which it did not start with
    drawn = to_images(model.sample(50, generator=0), (1, 4, 4))
    assert float((drawn == drawn[..., :1]).float().mean()) > 0.9


def slope_images(n: int) -> Tensor:
    """Images of two channels; row and channel two follow from those before, except for noise."""
    first = torch.randn(n, 1, 1, 4, generator=seeded(1))
    noise = 0.01 * torch.randn(n, 2, 3, 4, generator=seeded(2))
    return noise + torch.cat([first, 0.5 * first + 0.25], 1)


@pytest.mark.parametrize("start", [(8, 8), (5,)])
def test_it_starts_at_a_straight_line_through_the_neighbours(start: tuple[int, ...]) -> None:
    """The image above predicts a pixel to 1 %: many nats per pixel more than its marginal."""
    rows = to_rows(slope_images(2000))
    model = NITS.conv((2, 3, 4), Continuous(hidden=start), size=TINY)
    alone = NITS.independent([Continuous(hidden=start)] * 24)
    start_from_data(model, Rows(rows))
    start_from_data(alone, Rows(rows))
    with torch.no_grad():
        gain = (
            (model.log_prob_per_column(rows) - alone.log_prob_per_column(rows))
            .mean(0)
            .view(3, 4, 2)
        )
    assert float(gain[1:].min()) > 2
    assert float(gain[0, :, 1].min()) > 2


def test_centres_are_offsets_from_the_guess_in_widths() -> None:
    """Equation (20), z = W (x − r) − β: raw offsets β, against the centres made of them."""
    torch.manual_seed(0)
    plain, placed = (PixelTheta(2, 1, 11, 6, 1, units).double() for units in (0, 3))
    placed.load_state_dict(plain.state_dict(), strict=False)
    placed.guess.copy_(torch.randn(placed.guess.shape, generator=seeded(1)))
    h, near = (torch.randn(n, 7, generator=seeded(n), dtype=torch.float64) for n in (6, 14))
    x, bias = (
        torch.randn(7, generator=seeded(3)).double(),
        torch.randn(11, generator=seeded(4)).double(),
    )
    with torch.no_grad():
        raw, theta = (module(1, h, near, bias) for module in (plain, placed))
    guess = placed.guess[1, :13] @ near[:13] + placed.guess[1, 13]
    slopes = torch.exp(log_weights(raw[:3]))
    torch.testing.assert_close(slopes * (x - theta[3:6]), slopes * (x - guess) - raw[3:6])
    assert torch.equal(theta[:3], raw[:3])
    assert torch.equal(theta[6:], raw[6:])


def test_a_start_that_follows_no_image_is_constant() -> None:
    """`start_at` undoes the guess: θ is the same whatever the pixels are."""
    model = NITS.conv((1, 2, 2), Continuous(hidden=(3,)), size=TINY)
    start_from_data(model, Rows(torch.randn(50, 4, generator=seeded(3))))
    theta = torch.randn(4 * 9, generator=seeded(4))
    model.weights.start_at(theta)
    put_out = model.weights(torch.randn(4, 5, generator=seeded(5)))
    torch.testing.assert_close(put_out, theta.unsqueeze(1).expand(-1, 5))


def test_rows_are_channels_of_pixels_in_reading_order() -> None:
    images = torch.arange(2 * 2 * 2 * 3).view(2, 2, 2, 3)
    rows = to_rows(images)
    assert rows[0].tolist() == [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]
    assert torch.equal(to_images(rows, (2, 2, 3)), images.float())


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(
        ValueError, match=re.escape("images must have shape (N, C, H, W), but have (2, 3, 3)")
    ):
        to_rows(torch.zeros(2, 3, 3))
    message = (
        "rows must have shape (N, 9) for images of 1 × 3 × 3, but have (2, 8); "
        "pass the shape of their images."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        to_images(torch.zeros(2, 8), (1, 3, 3))
