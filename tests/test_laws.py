"""Every law on every model of the registry, and the one round trip promised at full size."""

import pytest
import torch

from laws import LAWS, Law
from nits import NITS
from registry import MODELS, randomized, seeded

SLOW = {"mixture-cells", "mixture-whitened"}
"""Models whose laws take long, and whose parts other models have."""

EVERY = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MODELS]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law: Law, name: str) -> None:
    law(MODELS[name]())


def test_round_trip_of_63_columns_in_float32() -> None:
    model = randomized(lambda: NITS.mlp(63, hidden=128, blocks=2), 63, scale=0.1)
    u = torch.rand(200, 63, generator=seeded(0))
    with torch.no_grad():
        x = model.from_uniform(u)
        error = (model.to_uniform(x) - u).abs().max().item()
    assert x.std() > 1
    assert error <= 1e-5
