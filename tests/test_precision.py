"""Training in bfloat16: the inner layers of image networks only, and never a score."""

from collections.abc import Callable

import pytest
import torch

import nits
from nits import NITS
from nits.heads import Quantized
from nits.training import gradients
from nits.training.loop import Loop
from nits.training.recipe import Budget
from nits.training.rows import Rows
from nits.weights import ConvSize, WindowSize
from registry import seeded

SHAPE, GREY = (1, 4, 4), Quantized(0.0, 1.0, 4, (4,))

NETWORKS: dict[str, Callable[[], NITS]] = {
    "conv": lambda: NITS.conv(SHAPE, GREY, size=ConvSize(6, 2, (1,)), generator=0),
    "window": lambda: NITS.conv(SHAPE, GREY, size=WindowSize(2, 16, 1), generator=0),
}


def images(n: int) -> torch.Tensor:
    return torch.randint(4, (n, 16), generator=seeded(1)).float()


def gradient(model: NITS, precision: torch.dtype | None) -> list[torch.Tensor]:
    recipe = nits.Recipe(batch_size=50, precision=precision)
    loop = Loop(model, Rows(images(50)), None, recipe, Budget(None, 9), 0)
    loop.prepare(None)
    model.train()
    gradients.taken(loop)
    return [p.grad for p in loop.parameters if p.grad is not None]


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_lower_precision_are_near(name: str) -> None:
    whole, lower = (gradient(NETWORKS[name](), p) for p in (None, torch.bfloat16))
    apart = sum(float((a - b).square().sum()) for a, b in zip(whole, lower, strict=True))
    size = sum(float(a.square().sum()) for a in whole)
    assert 0 < apart < 0.05**2 * size
    assert all(g.dtype == torch.float32 for g in lower)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_chooses_weights_has_full_precision(name: str) -> None:
    model = NETWORKS[name]()
    recipe = nits.Recipe(batch_size=50, average=0.0, precision=torch.bfloat16)
    noise = torch.rand(240, 16, generator=seeded(2)) < 0.3
    alike = torch.where(noise, images(240), images(240)[:, :1])  # soon learned
    train, held_out = alike[:200], alike[200:]
    history = nits.fit(
        model, train, validation=held_out, recipe=recipe, max_steps=40, progress=False
    )
    assert history.start is not None
    assert history.final_validation is not None
    assert history.final_validation > history.start + 0.1
    with torch.no_grad():
        found = model.log_prob(held_out).double().mean()
        with torch.autocast("cpu", torch.bfloat16):
            lower = model.log_prob(held_out).double().mean()
    assert history.final_validation == pytest.approx(float(found), abs=1e-6)
    assert abs(float(lower - found)) > 1e-5


def test_networks_of_tables_are_refused() -> None:
    recipe = nits.Recipe(precision=torch.bfloat16)
    with pytest.raises(ValueError, match="precision is for the networks of images"):
        nits.fit(NITS.mlp(2, hidden=8, blocks=1), torch.randn(50, 2), recipe=recipe, max_steps=1)


def test_precision_is_that_of_a_type_of_half_the_digits() -> None:
    with pytest.raises(
        ValueError, match=r"precision must be None or torch\.bfloat16, but is torch\.float16"
    ):
        nits.Recipe(precision=torch.float16)
