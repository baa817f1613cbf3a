"""Densities averaged over rearrangements: exact, symmetric, drawn as they are scored."""

import itertools
import math
from pathlib import Path

import pytest
import torch

import nits
from nits.heads import Continuous, Quantized
from nits.weights import WindowSize
from registry import randomized


def squares(levels: int = 3) -> nits.Symmetric:
    """A model of images of 2 × 2 pixels, which all symmetries of a square leave as likely."""
    pixel, size = Quantized(0.0, 1.0, levels, (4,)), WindowSize(2, 6, 1)
    inner = randomized(lambda: nits.NITS.conv((1, 2, 2), pixel, size=size), 3, 1.0)
    return nits.Symmetric(inner, nits.images.symmetries(2, 2))


def every_image(levels: int = 3) -> torch.Tensor:
    return torch.tensor(list(itertools.product(range(levels), repeat=4)), dtype=torch.float32)


def balanced() -> nits.Symmetric:
    """A model of two columns, which with a third add up to zero; the third is like them."""
    inner = randomized(lambda: nits.NITS.mlp([Continuous(hidden=(5,))] * 2, hidden=8), 5, 0.3)
    return nits.Symmetric(inner, list(itertools.permutations(range(3))), balanced=True)


STEP = 0.1


def plane() -> torch.Tensor:
    """Points of an even grid, beyond which there is hardly any mass."""
    side = torch.arange(-400, 401) * STEP
    return torch.cartesian_prod(side, side)


def test_the_symmetries_of_images() -> None:
    square, wide = nits.images.symmetries(3, 3), nits.images.symmetries(2, 3)
    assert (len(square), len(wide), square[0]) == (8, 4, list(range(9)))
    assert len({tuple(order) for order in square}) == 8
    x = torch.randn(2, 3, 4)  # two channels of a pixel stay together
    rows = nits.images.to_rows(x[None].permute(0, 1, 2, 3))
    mirrored = nits.images.symmetries(3, 4, channels=2)[1]
    assert torch.equal(rows[:, mirrored], nits.images.to_rows(x[None].flip(3)))


def test_all_images_add_up_to_one_and_symmetric_ones_are_as_likely() -> None:
    model, images = squares(), every_image()
    with torch.no_grad():
        log_p = model.log_prob(images)
        alone = model.density.log_prob(images)
    assert float(log_p.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    for order in model.orders:
        with torch.no_grad():
            torch.testing.assert_close(model.log_prob(images[:, order]), log_p)
    assert float((alone - log_p).abs().max()) > 0.1  # it is not the density inside


def test_images_are_drawn_as_often_as_they_are_likely() -> None:
    """A chi-squared test on 81 images: a false alarm in about 10,000 runs."""
    model, images, n = squares(), every_image(), 20_000
    drawn = model.sample(n, generator=0)
    code = (drawn @ torch.tensor([27.0, 9.0, 3.0, 1.0])).long()
    with torch.no_grad():
        expected = n * model.log_prob(images).exp().double()
    counts = torch.bincount(code, minlength=81).double()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < 80 + 4 * math.sqrt(160)


def test_a_balanced_density_has_mass_one_and_is_symmetric() -> None:
    model = balanced()
    with torch.no_grad():
        mass = float(model.log_prob(plane()).exp().sum()) * STEP**2
        rows = torch.randn(50, 2)
        third = -rows.sum(1)
        others = [torch.stack([third, rows[:, 0]], 1), torch.stack([rows[:, 1], third], 1)]
        log_p = model.log_prob(rows)
        for other in others:
            torch.testing.assert_close(model.log_prob(other), log_p)
    assert mass == pytest.approx(1.0, abs=2e-3)


def test_a_balanced_density_is_drawn_as_it_is_scored() -> None:
    """Mean log-density of drawn rows against −entropy by quadrature: within five errors."""
    model = balanced()
    rows = model.sample(20_000, generator=1)
    with torch.no_grad():
        log_p, own = model.log_prob(plane()), model.log_prob(rows)
    expected = float((log_p.exp() * log_p).sum()) * STEP**2
    assert abs(float(own.mean()) - expected) < 5 * float(own.std()) / 20_000**0.5 + 2e-3


def test_training_rearranges_each_row_at_random() -> None:
    model, images = squares(), every_image()[:40]
    with torch.no_grad():
        each = torch.stack([model.density.log_prob(images[:, o]) for o in model.orders])
        model.reseed(7)
        first = model(images)
        model.reseed(7)
        again = model(images)
        model.reseed(7)
        model.take_part(10, 40)
        part = model(images[10:20])
        model.take_part(0, None)
    torch.testing.assert_close(first, again)
    torch.testing.assert_close(part, first[10:20])
    apart = (each - first).abs()
    assert float(apart.min(0).values.max()) < 1e-5
    assert len(apart.argmin(0).unique()) > 3


def test_it_learns() -> None:
    source = torch.Generator().manual_seed(0)
    rows = (torch.rand(600, 1, generator=source) + 0.1 * torch.rand(600, 9, generator=source)) * 3
    pixel, size = Quantized(0.0, 1.0, 4, (4,)), WindowSize(2, 12, 1)
    inner = nits.NITS.conv((1, 3, 3), pixel, size=size, generator=0)
    model = nits.Symmetric(inner, nits.images.symmetries(3, 3))
    history = nits.fit(model, rows.floor(), max_steps=100, progress=False)
    assert history.start is not None
    assert max(history.validation) > history.start + 0.5


def test_a_file_keeps_it(tmp_path: Path) -> None:
    model = balanced()
    model.save(tmp_path / "m.nits")
    found, x = nits.load(tmp_path / "m.nits"), torch.randn(5, 2)
    assert isinstance(found, nits.Symmetric)
    assert found.balanced
    with torch.no_grad():
        assert torch.equal(found.log_prob(x), model.log_prob(x))


def test_what_it_refuses() -> None:
    model, x = squares(), every_image()[:2]
    for what in (
        lambda: model.order,
        lambda: model.log_prob_per_column(x),
        lambda: model.conditionals(x),
        lambda: model.to_uniform(x),
        lambda: model.steps(2),
        lambda: model.sample(2, given=x),
    ):
        with pytest.raises(ValueError, match="averaged over rearrangements has no order"):
            what()
    inner = nits.NITS.independent([Continuous(), Quantized(0.0, 1.0, 3)])
    with pytest.raises(ValueError, match="must all have one head, but differ"):
        nits.Symmetric(inner, [[0, 1]])
    with pytest.raises(ValueError, match="must have at least one rearrangement"):
        nits.Symmetric(nits.NITS.independent(2), [])
    with pytest.raises(ValueError, match="order must name each of 2 columns once"):
        nits.Symmetric(nits.NITS.independent(2), [[0, 0]])
