"""Initial weights: close to the data's distribution, whatever the data."""

import math

import pytest
import torch
from torch import Tensor

from nits import PNN, pnn_parameters
from nits.pnn import initial
from pnns import every_dtype, every_hidden

inf = math.inf


def draws(n: int = 4000) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(n, generator=generator, dtype=torch.float64)
    return {
        "normal": normal,
        "far and narrow": 1e4 + 1e-2 * normal,
        "wide": 1e6 * normal,
        "skewed": normal.exp(),
        "two heaps": normal + 20 * (normal > 0),
        "uniform": torch.rand(n, generator=generator, dtype=torch.float64),
    }


DATA = draws()


@every_hidden
@pytest.mark.parametrize("name", list(DATA))
def test_the_cdf_follows_the_quantiles(name: str, hidden: tuple[int, ...]) -> None:
    x = DATA[name]
    theta = initial.from_quantiles(x, hidden)
    assert theta.shape == (pnn_parameters(hidden),)
    levels = torch.linspace(0.05, 0.95, 19).double()
    cdf = PNN(theta, -inf, inf, hidden).cdf(torch.quantile(x, levels))
    # Units are as wide as the gaps between them; the narrowest layer here has four.
    assert (cdf - levels).abs().max() < 0.5 / min(hidden) + 0.03


def test_wider_layers_follow_more_closely() -> None:
    x, levels = DATA["normal"], torch.linspace(0.05, 0.95, 19).double()

    def error(h: int) -> float:
        cdf = PNN(initial.from_quantiles(x, (h,)), -inf, inf, (h,)).cdf(torch.quantile(x, levels))
        return float((cdf - levels).abs().max())

    assert error(4) > error(16) > error(64)


@every_dtype
@every_hidden
@pytest.mark.parametrize(
    "x", [torch.zeros(100), torch.arange(100) % 2, torch.ones(1), torch.tensor([1.0, 2.0])], ids=str
)
def test_ties_and_single_values_give_finite_weights(
    x: Tensor, hidden: tuple[int, ...], dtype: torch.dtype
) -> None:
    x = x.to(dtype)
    theta = initial.from_quantiles(x, hidden)
    assert theta.dtype == dtype
    assert torch.isfinite(theta).all()
    assert torch.isfinite(PNN(theta, -inf, inf, hidden).log_prob(x)).all()


def test_two_values_get_slivers_and_not_spikes() -> None:
    x = (torch.arange(100) % 2).double()
    log_prob = PNN(initial.from_quantiles(x, (16,)), -inf, inf, hidden=(16,)).log_prob(x)
    assert log_prob.max() < 10


def test_one_unit_is_as_wide_as_the_data() -> None:
    x = DATA["wide"]
    d = PNN(initial.from_quantiles(x, (1,)), -inf, inf, hidden=(1,))
    ratio = d.variance.sqrt() / x.std()
    assert 0.5 < ratio < 2


def test_initial_weights_do_not_depend_on_the_order_of_the_data() -> None:
    x = DATA["skewed"]
    assert torch.equal(
        initial.from_quantiles(x, (16, 16)), initial.from_quantiles(x.flip(0), (16, 16))
    )
