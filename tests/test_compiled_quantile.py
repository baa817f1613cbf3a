"""The kernel of the quantiles agrees with the solver, and what it cannot find the solver finds."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nits import kernels
from nits.heads import Continuous, Quantized
from nits.kernels import compiled, compiled_quantile
from nits.pnn import network, roots
from registry import mlp, randomized

SUPPORTS = [(-torch.inf, torch.inf), (-1.0, 2.0), (0.0, torch.inf), (-torch.inf, 0.5)]


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernel as it is before compilation."""
    monkeypatch.setattr(torch, "compile", lambda function, *, dynamic: function)
    monkeypatch.setattr(compiled, "available", lambda: True)
    compiled_quantile._kernel.cache_clear()
    with kernels.using(native=False, compiled=True):
        yield
    compiled_quantile._kernel.cache_clear()


def inverted(theta: Tensor, u: Tensor, support: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Returns the kernel's quantiles, and N there."""
    low, high = (torch.tensor([end], dtype=u.dtype) for end in support)
    with torch.no_grad():
        x = kernels.quantile(theta, u, low, high, (16, 16))
    assert "compiled" in kernels.current().ran
    return x, network.cdf(network.normalized(theta, low, high, (16, 16)), x)[0]


def problems(n: int, scale: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Returns weights, shape (P, n), and probabilities, some of them very small or large."""
    generator = torch.Generator().manual_seed(n)
    theta = scale * torch.randn(320, n, generator=generator, dtype=torch.float64)
    u = torch.rand(n, generator=generator, dtype=torch.float64)
    u[:4] = torch.tensor([1e-6, 1 - 1e-6, 0.5, 1e-3])
    return theta.to(dtype), u.to(dtype)


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("n", [5, 700])
def test_the_quantile_inverts_the_cdf(
    uncompiled: None, support: tuple[float, float], dtype: torch.dtype, error: float, n: int
) -> None:
    theta, u = problems(n, 1.0, dtype)
    _, back = inverted(theta, u, support)
    assert (back - u).abs().max() < error


@pytest.mark.parametrize("support", SUPPORTS)
def test_steep_networks_are_left_to_the_solver(
    uncompiled: None, support: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    theta, u = problems(600, 10.0, torch.float64)
    asked, plain = [], roots.quantile

    def counted(at: network.Normalized, u: Tensor, above: Tensor) -> Tensor:
        asked.append(len(u))
        return plain(at, u, above)

    monkeypatch.setattr(roots, "quantile", counted)
    x, _ = inverted(theta, u, support)
    low, high = (torch.tensor([end], dtype=u.dtype) for end in support)
    expected = plain(network.normalized(theta, low, high, (16, 16)), u, 1 - u)
    torch.testing.assert_close(x, expected, rtol=1e-6, atol=1e-9)
    assert 0 < sum(asked) < 600


def test_the_ends_and_nan(uncompiled: None) -> None:
    theta, _ = problems(4, 1.0, torch.float32)
    x, _ = inverted(theta, torch.tensor([0.0, 1.0, torch.nan, 0.5]), (-1.0, 2.0))
    assert x[:2].tolist() == [-1.0, 2.0]
    assert x[2].isnan()
    assert -1 < x[3] < 2


def test_a_model_samples_the_same_rows(uncompiled: None) -> None:
    model = mlp([Continuous(-4.0, 4.0), Quantized(0.0, 8.0, 8), Continuous()])
    u = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    with kernels.using(compiled=False):
        expected = model.from_uniform(u)
    with kernels.using() as ran:
        torch.testing.assert_close(model.from_uniform(u), expected, rtol=1e-4, atol=1e-4)
    assert ran == {"compiled"}


@pytest.mark.slow
def test_the_compiled_kernel_inverts_the_cdf() -> None:
    compiled_quantile._kernel.cache_clear()
    model = randomized(lambda: mlp([Continuous(-4.0, 4.0, (3, 2)), Continuous(hidden=(3, 2))]), 0)
    u = torch.rand(600, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), kernels.using(native=False, compiled=True) as ran:
        back = model.to_uniform(model.from_uniform(u))
    assert (back - u).abs().max() < 2e-6
    assert "compiled" in ran
