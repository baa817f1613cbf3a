"""The optimizers of a recipe: what each builds, its schedule, its average, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import nits
from nits.training.optimizers import Optimizer, Parameters
from nits.training.schedule_free import ScheduleFreeAdamW
from nits.training.schedules import Schedule


def pair() -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters of two models, weights at 3 and averages at 1."""
    return [nn.Parameter(torch.full((2,), 3.0))], [nn.Parameter(torch.ones(2))]


def built(optimizer: Optimizer) -> torch.optim.Optimizer:
    weights, averages = pair()
    return optimizer.build(weights, averages, rate=0.25, weight_decay=0.5)


@pytest.mark.parametrize(
    ("optimizer", "kind"),
    [(nits.AdamW(), torch.optim.AdamW), (nits.ScheduleFree(), ScheduleFreeAdamW)],
)
def test_builds_torchs_optimizer_with_the_recipes_numbers(optimizer: Optimizer, kind: type) -> None:
    found = built(optimizer)
    assert type(found) is kind
    for group in found.param_groups:
        decays = kind is ScheduleFreeAdamW or all(p.dim() > 1 for p in group["params"])
        assert (group["lr"], group["weight_decay"]) == (0.25, 0.5 if decays else 0.0)


def test_adamw_moves_the_average_by_the_decay() -> None:
    weights, averages = pair()
    nits.AdamW().move_average(averages, weights, 0.75)
    assert averages[0].tolist() == [1.5, 1.5]
    assert weights[0].tolist() == [3.0, 3.0]


def test_schedule_free_moves_its_average_in_the_step_alone() -> None:
    weights, averages = pair()
    optimizer = nits.ScheduleFree().build(weights, averages, rate=0.25, weight_decay=0.0)
    nits.ScheduleFree().move_average(averages, weights, 0.75)
    assert averages[0].tolist() == [1.0, 1.0]
    weights[0].grad = torch.ones(2)
    optimizer.step()
    assert averages[0].tolist() != [1.0, 1.0]


def test_a_recipe_without_a_schedule_has_its_optimizers() -> None:
    cosine, constant = nits.Recipe(), nits.Recipe(optimizer=nits.ScheduleFree())
    assert cosine.rate(1000, 0.5, []) == pytest.approx(0.5 * cosine.learning_rate)
    assert constant.rate(1000, 0.5, []) == constant.learning_rate
    named = nits.Recipe(optimizer=nits.ScheduleFree(), schedule=nits.Cosine())
    assert named.rate(1000, 1.0, []) == 0


class Descent(Optimizer):
    """Plain gradient descent, whose average is the weights themselves; counts what it is asked."""

    built = moved = 0

    def schedule(self) -> Schedule:
        return nits.Constant(1)

    def build(
        self, parameters: Parameters, averages: Parameters, *, rate: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        self.built += 1
        return torch.optim.SGD(parameters, lr=rate)

    def move_average(self, averages: Parameters, parameters: Parameters, decay: float) -> None:
        self.moved += 1
        with torch.no_grad():
            for average, parameter in zip(averages, parameters, strict=True):
                average.copy_(parameter)


def test_fit_takes_any_optimizer() -> None:
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    model = nits.NITS.independent([nits.heads.Continuous(hidden=(4,))] * 2)
    descent = Descent()
    recipe = nits.Recipe(optimizer=descent, learning_rate=0.1, start_from_data=False)
    history = nits.fit(model, x, recipe=recipe, max_steps=30, progress=False)
    assert history.validation[-1] > history.validation[0]
    assert (descent.built, descent.moved) == (1, 30)


@pytest.mark.parametrize("wrong", ["adamw", "schedule-free", nits.AdamW, None])
def test_anything_else_is_refused(wrong: Any) -> None:
    message = (
        r"optimizer must be an object, but is .*; pass nits.AdamW\(\) or nits.ScheduleFree\(\)"
    )
    with pytest.raises(TypeError, match=message):
        nits.Recipe(optimizer=wrong)
