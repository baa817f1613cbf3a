"""How rivals are trained, shown on a Gaussian that knows neither its mean nor its width."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from models.rival_training import Loop
from torch import Tensor, nn

STEPS = 400
SETTINGS = {
    "batch_size": 100,
    "learning_rate": 0.05,
    "weight_decay": 0.0,
    "warmup": 10,
    "average": 0.9,
    "clip": 5.0,
}


class Gaussian(nn.Module):
    """Independent columns of one mean and one width."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(2))
        self.log_width = nn.Parameter(torch.zeros(2))


def log_prob(model: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(model, Gaussian)
    normal = torch.distributions.Normal(model.mean, model.log_width.exp())
    value: Tensor = normal.log_prob(x).sum(1)
    return value


@pytest.mark.parametrize("optimizer", ["adamw", "schedule-free"])
def test_the_average_learns_with_and_without_a_schedule(optimizer: str) -> None:
    rows = np.random.default_rng(0).normal([3.0, -1.0], [0.5, 2.0], (2000, 2)).astype(np.float32)
    model, settings = Gaussian(), {**SETTINGS, "optimizer": optimizer}
    loop = Loop(model, log_prob, rows[:1000], settings, 0)
    for step in range(STEPS):
        loop.advance(step / STEPS)
    found = loop.average.state_dict()
    torch.testing.assert_close(found["mean"], torch.tensor([3.0, -1.0]), atol=0.2, rtol=0)
    torch.testing.assert_close(found["log_width"].exp(), torch.tensor([0.5, 2.0]), atol=0.2, rtol=0)
    nats = log_prob(loop.average, torch.from_numpy(rows[1000:])).mean().item()
    assert nats == pytest.approx(-math.log(2 * math.pi * math.e), abs=0.1)
    assert not torch.equal(found["mean"], model.mean)
