"""The PNNs that tests run through: supports, sizes, dtypes, scales of the weights, and weights."""

import math

import pytest
import torch
from torch import Tensor

from nits import pnn_parameters

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
