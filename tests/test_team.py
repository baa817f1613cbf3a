"""Networks that take their steps together: as good as alone, to the bit, whoever is beside them."""

from __future__ import annotations

import copy
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import nits
from nits.model import side_by_side
from nits.model.side_by_side import SideBySide
from nits.training import team as teams
from nits.training.fit import opened
from nits.training.flat import ALIGNED, Flat
from nits.training.loop import Loop
from nits.training.progress import Silent
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows
from nits.training.team import Team
from nits.training.together import Run, fit_together
from nits.weights.block_linear import BlockLinear

RECIPE = Recipe(batch_size=16, learning_rate=0.01, weight_decay=0.1)
HEADS = (
    nits.heads.Continuous(hidden=(5,), knots=4),
    nits.heads.Integer(0, 9, hidden=(5,), knots=4, optional=True),
    nits.heads.Categorical(3),
)


def table(context: int = 0, weights: bool = False) -> Rows:
    source = torch.Generator().manual_seed(5)
    real = torch.randn(120, 1, generator=source)
    whole = (4 + 2 * real + torch.randn(120, 1, generator=source)).round().clamp(0, 9)
    whole[::7] = torch.nan
    level = torch.randint(3, (120, 1), generator=source).float()
    given = torch.randn(120, context, generator=source) if context else None
    weight = torch.rand(120, generator=source) + 0.5 if weights else None
    return Rows(torch.cat([real, whole, level], 1), given, weight)


def network(seed: int, *, guess: bool, context: int = 0, dropout: float = 0.2) -> nits.NITS:
    return nits.NITS.mlp(
        list(HEADS),
        hidden=16,
        blocks=2,
        dropout=dropout,
        context=context,
        order=[1, 0, 2],
        guess=guess,
        activation=torch.nn.functional.silu,
        generator=seed,
    )


def run(seed: int, rows: Rows, *, guess: bool = False, steps: int = 30, **options: Any) -> Run:
    """A network that holds out rows of its own."""
    context = 0 if rows.context is None else rows.context.shape[1]
    index = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    parts = rows.view(index[20:]), rows.view(index[:20])
    model = network(seed, guess=guess, context=context)
    return Run(model, *parts, RECIPE, Budget(None, steps, None), seed, **options)


def several(rows: Rows, batch: int = 16, **options: Any) -> list[Run]:
    runs = [run(seed, rows, guess=seed % 2 == 0, **options) for seed in range(5)]
    return [one._replace(recipe=replace(RECIPE, batch_size=batch)) for one in runs]


def state(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("context", [0, 2])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("batch", [16, 13])
def test_a_network_has_the_same_bits_whoever_is_beside_it(
    context: int, weights: bool, batch: int
) -> None:
    rows = table(context, weights)
    whole, pair, alone = (several(rows, batch)[some:] for some in (0, 3, 4))
    figures = fit_together(whole, Silent())
    for some in (pair, alone):
        again = fit_together(some, Silent())
        assert torch.equal(state(some[-1].model), state(whole[-1].model))
        assert again[-1].validation == figures[-1].validation
        assert again[-1].train == figures[-1].train
    assert not torch.equal(state(whole[-1].model), state(whole[-3].model))


@pytest.mark.parametrize("guess", [False, True])
@pytest.mark.parametrize("context", [0, 2])
def test_the_gradient_is_that_of_each_network(guess: bool, context: int) -> None:
    """Against the loop of a lone network, whose dropout has the same draws."""
    rows = table(context, weights=True)
    runs = [run(seed, rows, guess=guess) for seed in range(3)]
    loops = [ready(one) for one in runs]
    expected = []
    for one in runs:
        alone = ready(one._replace(model=copy.deepcopy(one.model)))
        alone.model.train().reseed(alone.step_seed())
        value = alone.gradient()
        expected.append((value, torch.cat([_grad(p).flatten() for p in alone.parameters])))
    together = Team(loops)
    together.reseed()
    values = together._gradient()
    for k, (value, grads) in enumerate(expected):
        own = torch.cat([grad[k].flatten() for grad in together.flat.gradients])
        assert values[k] == pytest.approx(value, rel=1e-5)
        torch.testing.assert_close(own, grads, rtol=1e-3, atol=1e-5)


def _grad(p: torch.nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(p) if p.grad is None else p.grad


def ready(one: Run) -> Loop:
    """A loop whose model has left its start."""
    plan = one.recipe, one.budget, one.seed
    loop = opened(one.model, one.rows, one.validation or 0.0, plan, Silent())
    loop.prepare(None)
    source = torch.Generator().manual_seed(one.seed)
    net = side_by_side.network(loop.model)
    assert net is not None
    assert isinstance(net.last, BlockLinear)
    with torch.no_grad():
        weight = net.last.weight
        weight.add_(0.1 * torch.randn(weight.shape, generator=source) * net.last.mask)
    return loop


def test_scores_are_those_of_each_density() -> None:
    rows = table(2)
    loops = [ready(run(seed, rows, guess=seed > 0)) for seed in range(3)]
    models = [loop.model.eval() for loop in loops]
    whole = SideBySide(models, Flat(loops).learned())  # type: ignore[arg-type]
    whole.net.eval()
    batch = rows.take(torch.arange(30), models[0].like)
    lines = [side_by_side.lines(model, batch.x, batch.context) for model in models]  # type: ignore[arg-type]
    with torch.no_grad():
        found = whole.log_prob(torch.stack(lines))
        for own, model in zip(found, models, strict=True):
            expected = model.log_prob(batch.x, batch.context)
            torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-5)


def test_masked_weights_stay_zero() -> None:
    runs = several(table())
    fit_together(runs, Silent())
    net = side_by_side.network(runs[0].model)
    assert net is not None
    for layer in (net.first, *net.inner, net.last):
        assert not layer.weight[~layer.mask].any()


def test_each_stops_when_its_own_validation_has_stalled() -> None:
    """One overfits at once, since it has a few rows; alone it stops at the same step."""
    rows = table()
    runs = [one._replace(budget=Budget(None, 1500, None)) for one in several(rows)]
    together = fit_together(runs, Silent())
    assert len({history.step[-1] for history in together}) > 1
    alone = several(rows)[1]._replace(budget=Budget(None, 1500, None))
    (history,) = fit_together([alone], Silent())
    assert history.step == together[1].step
    assert history.stopped == together[1].stopped
    assert torch.equal(state(alone.model), state(runs[1].model))


def test_a_step_that_is_not_finite_is_one_networks_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Loop.counts

    def spoiled(self: Loop, value: float, norm: float) -> bool:
        bad = self.seed == 1 and self.step in (3, 4)
        return counts(self, float("nan") if bad else value, norm)

    clean = several(table(), steps=12)
    fit_together(clean, Silent())
    monkeypatch.setattr(Loop, "counts", spoiled)
    runs = several(table(), steps=12)
    figures = fit_together(runs, Silent())
    assert [history.skipped for history in figures] == [0, 2, 0, 0, 0]
    same = [torch.equal(state(a.model), state(b.model)) for a, b in zip(runs, clean, strict=True)]
    assert same == [True, False, True, True, True]


def test_those_that_a_checkpoint_left_behind_catch_up(tmp_path: Path) -> None:
    """As after a kill between the writing of two files."""
    rows, whole = table(), several(table())
    fit_together(whole, Silent())
    places = [tmp_path / f"{k}.safetensors" for k in range(5)]
    for count, some in ((12, slice(0, 5)), (21, slice(2, 4))):
        begun = [
            one._replace(
                budget=Budget(None, count, None),
                checkpoint=place,
                resume=place if place.exists() else None,
            )
            for one, place in list(zip(several(rows), places, strict=True))[some]
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recipe, "rate", lambda self, step, *_: _rate(self, step, 30))
            fit_together(begun, Silent())
    runs = [one._replace(resume=place) for one, place in zip(several(rows), places, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recipe, "rate", lambda self, step, *_: _rate(self, step, 30))
        fit_together(runs, Silent())
        again = several(rows)
        fit_together(again, Silent())
    for one, other in zip(runs, again, strict=True):
        assert torch.equal(state(one.model), state(other.model))


def test_one_that_was_at_its_end_is_not_trained_again(tmp_path: Path) -> None:
    """A checkpoint of a run that had stalled, beside one that had not."""
    rows, place = table(), tmp_path / "run.safetensors"
    long = Budget(None, 1500, None)
    first = several(rows)[1]._replace(budget=long, checkpoint=place)
    (before,) = fit_together([first], Silent())
    assert before.stopped == "patience"
    again = [several(rows)[1]._replace(budget=long, resume=place), several(rows)[2]]
    again[1] = again[1]._replace(budget=long)
    after = fit_together(again, Silent())
    assert after[0].step == before.step
    assert torch.equal(state(again[0].model), state(first.model))
    assert after[1].step[-1] > 0


def test_an_interrupt_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that wait until others have caught up; what was best is what they have."""
    rows, place = table(), tmp_path / "run.safetensors"
    fit_together([several(rows)[0]._replace(checkpoint=place)], Silent())
    counts, keys = Loop.counts, [signal.SIGINT]  # a second one would not wait

    def pressed(self: Loop, value: float, norm: float) -> bool:
        if keys:
            os.kill(os.getpid(), keys.pop())
        return counts(self, value, norm)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(Loop, "counts", pressed)
    runs = [one._replace(budget=Budget(None, 60, None)) for one in several(rows)]
    runs[0] = runs[0]._replace(resume=place)
    try:
        figures = fit_together(runs, Silent())
    finally:
        signal.signal(signal.SIGINT, before)
    assert {history.stopped for history in figures} == {"interrupted"}
    assert [history.step for history in figures[1:]] == [[]] * 4
    assert not any(one.model.training for one in runs)
    every = [p for one in runs for p in one.model.parameters() if p.numel()]
    assert len({p.untyped_storage().data_ptr() for p in every}) == len(every)


def _rate(recipe: Recipe, step: int, steps: int) -> float:
    """The rate of a budget of so many steps, whatever the budget of this part is."""
    return recipe.learning_rate * (1 - step / steps)


def test_what_a_network_has_learned_shares_no_memory() -> None:
    runs = several(table())
    fit_together(runs, Silent())
    every = [p for one in runs for p in one.model.parameters() if p.numel()]
    assert len({p.untyped_storage().data_ptr() for p in every}) == len(every)


def test_numbers_lie_at_the_same_places_in_any_company() -> None:
    rows = table()
    for count in (1, 3):
        flat = Flat([ready(run(seed, rows)) for seed in range(count)])
        assert all(side.rows.shape[1] % ALIGNED == 0 for side in flat.sides)


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": Recipe(optimizer=nits.ScheduleFree())},
        {"recipe": Recipe(hide=0.1)},
        {"recipe": Recipe(schedule=nits.Plateau())},
        {"model": nits.NITS.independent(list(HEADS))},
    ],
)
def test_what_cannot_be_stacked_is_trained_one_by_one(change: dict[str, Any]) -> None:
    runs = [one._replace(**copy.deepcopy(change)) for one in several(table(), steps=3)[:2]]
    plan = runs[0].recipe, runs[0].budget, 0
    loop = opened(runs[0].model, runs[0].rows, 0.0, plan, Silent())
    assert teams.key(loop) is None
    figures = fit_together(runs, Silent())
    assert [history.step[-1] for history in figures] == [3, 3]


def test_validation_in_parts_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts do not depend on how many networks there are, and begin at the same lanes."""
    runs = several(table())
    whole = fit_together(runs, Silent())
    monkeypatch.setattr(teams, "EVALUATED_AT_ONCE", 1)
    for count in (5, 2):
        parts = fit_together(several(table())[:count], Silent())
        assert [history.validation for history in parts] == [
            history.validation for history in whole[:count]
        ]


def test_there_is_a_limit_to_the_lines_of_a_team() -> None:
    net = network(0, guess=False)
    wide = side_by_side.width(net)
    assert teams.fits(net, teams.MOST_NUMBERS // wide)
    assert not teams.fits(net, teams.MOST_NUMBERS // wide + 1)
