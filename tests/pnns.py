"""The PNNs that tests run through: supports, sizes, dtypes, scales of the weights, and weights."""

import math

import pytest
import torch
from torch import Tensor

from nits import pnn_parameters
from nits.pnn import initial

inf = math.inf
SUPPORTS = {
    "[a, b]": (-1.0, 2.0),
    "[a, ∞)": (-1.0, inf),
    "(−∞, b]": (-inf, 2.0),
    "(−∞, ∞)": (-inf, inf),
}
HIDDEN = [(8,), (16, 16), (4, 5, 6)]
every_support = pytest.mark.parametrize(
    ("low", "high"), list(SUPPORTS.values()), ids=list(SUPPORTS)
)
every_dtype = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64], ids=["float32", "float64"]
)
every_scale = pytest.mark.parametrize("scale", [1, 10, 100])
every_hidden = pytest.mark.parametrize("hidden", HIDDEN, ids=str)
# The full figure of 10,000 θ per case is slow; the fast suite takes fewer.
few_and_many = pytest.mark.parametrize("n", [150, pytest.param(10_000, marks=pytest.mark.slow)])


def weights(
    n: int, scale: float = 1.0, hidden: tuple[int, ...] = (16, 16), seed: int = 0
) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, pnn_parameters(hidden), generator=generator, dtype=torch.float64)


def points(low: float, high: float, shape: tuple[int, ...], scale: float, seed: int = 1) -> Tensor:
    """Points of the support: uniform if finite, else at distances scale/1000 to scale × 1000."""
    generator = torch.Generator().manual_seed(seed)
    u, e, z = (
        f(shape, generator=generator, dtype=torch.float64)
        for f in (torch.rand, torch.rand, torch.randn)
    )
    far = z * scale * 10 ** (6 * e - 3)
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) * u
    if math.isfinite(low):
        return low + far.abs()
    return high - far.abs() if math.isfinite(high) else far


def logistic(centre: float, scale: float, dtype: torch.dtype) -> torch.Tensor:
    A = initial.from_log_weights(-torch.log(torch.tensor([scale], dtype=torch.float64)))
    return torch.cat([A, torch.tensor([centre, 0.0])]).to(dtype)


def spikes(width: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Shares 0.01 and 0.99 of logistics about 0.3 and 0, with scales `width` and 1."""
    A = initial.from_log_weights(-torch.log(torch.tensor([width, 1.0]).double()))
    rest = torch.cat([torch.tensor([0.3, 0.0]).double(), torch.tensor([0.01, 0.99]).double().log()])
    return torch.cat([A, rest]).to(dtype)
