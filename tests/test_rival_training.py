"""How rivals are trained, shown on a Gaussian that knows neither its mean nor its width."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import models
from models.fitted import Settings, taken
from models.loop import Recipe
from models.training import TorchLoop

STEPS = 400

RECIPE: Settings = {
    "model": "gaussian",
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

    def normal(self) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.mean, self.log_width.exp())


def log_prob(model: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(model, Gaussian)
    value: Tensor = model.normal().log_prob(x).sum(1)
    return value


@pytest.mark.parametrize("optimizer", ["adamw", "schedule-free"])
def test_the_average_learns_with_and_without_a_schedule(optimizer: str) -> None:
    rows = np.random.default_rng(0).normal([3.0, -1.0], [0.5, 2.0], (2000, 2)).astype(np.float32)
    model, recipe = Gaussian(), taken(Recipe, {**RECIPE, "optimizer": optimizer})
    loop = TorchLoop(model, log_prob, rows[:1000], recipe, 0)
    for step in range(STEPS):
        loop.advance(step / STEPS)
    found = loop.average.state_dict()
    torch.testing.assert_close(found["mean"], torch.tensor([3.0, -1.0]), atol=0.2, rtol=0)
    torch.testing.assert_close(found["log_width"].exp(), torch.tensor([0.5, 2.0]), atol=0.2, rtol=0)
    assert loop.mean(rows[1000:]) == pytest.approx(-math.log(2 * math.pi * math.e), abs=0.1)
    assert not torch.equal(found["mean"], model.mean)


def test_rivals_have_another_kind_of_settings_only_if_asked() -> None:
    model = "nflows-rq-autoregressive"
    usual = models.settings("power", model, "hours")
    assert usual == models.settings("power", model)
    assert usual["optimizer"] == "adamw"
    free = models.settings("power", model, models.FREE)
    assert free["optimizer"] == "schedule-free"
    assert {k for k in usual if usual[k] != free[k]} <= {
        "source",
        "optimizer",
        "learning_rate",
        "warmup",
        "average",
    }
    with pytest.raises(ValueError, match=r"power.toml has no table \[schedule-free.zuko-maf\]"):
        models.settings("power", "zuko-maf", models.FREE)
