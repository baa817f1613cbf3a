"""The speed suite: the plain way is the same density, rivals are as large, all programs run."""

from __future__ import annotations

import math

import contenders
import costs
import plain
import pytest
import scaling
import speed
import torch
from contenders import Size

from nits import NITS
from nits.heads import Continuous

TINY = Size(columns=3, hidden=16, blocks=1)
ENDS = [(-math.inf, math.inf), (-4.0, math.inf), (-math.inf, 4.0), (-4.0, 4.0)]
PACKAGE = {name: name.partition("-")[0] for name in contenders.RIVALS}


@pytest.mark.parametrize("ends", ENDS)
def test_the_plain_way_is_the_same_density_with_the_same_gradients(
    ends: tuple[float, float],
) -> None:
    torch.manual_seed(0)
    heads = [Continuous(*ends, (5, 4)), Continuous(hidden=(5, 4)), Continuous(*ends, (5, 4))]
    model = NITS.mlp(heads, hidden=12, blocks=2, order=[2, 0, 1]).double()
    dense, x = contenders.made_dense(model), torch.randn(20, 3).double().clamp(-3, 3)
    torch.testing.assert_close(plain.log_prob(dense, x), model.log_prob(x), rtol=0, atol=1e-8)
    model.log_prob(x).mean().backward()
    plain.log_prob(dense, x).mean().backward()
    for ours, theirs in zip(model.parameters(), dense.parameters(), strict=True):
        if ours.numel():
            assert ours.grad is not None
            assert ours.grad.any()
            torch.testing.assert_close(theirs.grad, ours.grad, rtol=1e-8, atol=1e-10)


def test_the_plain_way_multiplies_whole_matrices_and_scores_a_few_rows_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = (contenders.make(name, TINY) for name in (contenders.OURS, contenders.PLAIN))
    assert isinstance(theirs.module, NITS)
    assert all(layer.forward == layer.dense for layer in contenders.layers(theirs.module))
    x = torch.randn(7, 3)
    torch.testing.assert_close(theirs.log_prob(x), ours.log_prob(x), rtol=0, atol=1e-4)
    monkeypatch.setattr(contenders, "SCORED_AT_ONCE", 3)
    with torch.no_grad():
        torch.testing.assert_close(theirs.log_prob(x), ours.log_prob(x), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", contenders.RIVALS)
def test_a_rival_has_as_many_weights_as_we(name: str) -> None:
    pytest.importorskip(PACKAGE[name])
    ours, theirs = (contenders.field(6)[key] for key in (contenders.OURS, name))
    parameters = contenders.make(contenders.OURS, ours).parameters
    widths = [theirs._replace(hidden=theirs.hidden + step) for step in (0, -1, 1)]
    apart = [abs(contenders.make(name, size).parameters - parameters) for size in widths]
    assert apart[0] <= 0.02 * parameters
    assert apart[0] == min(apart)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated:UserWarning")  # nflows'
@pytest.mark.parametrize("name", contenders.field(6))
def test_a_contender_trains_scores_and_samples(name: str) -> None:
    if name in PACKAGE:
        pytest.importorskip(PACKAGE[name])
    contender, x = contenders.make(name, TINY), torch.randn(32, 3)
    step = contenders.training_step(contender, x)
    losses = [float(step()) for _ in range(20)]
    assert losses[-1] < losses[0]
    found: list[tuple[object, tuple[int, ...]]] = [(contenders.scoring(contender, x)(), (32,))]
    if contender.sample is not None:
        found.append((contenders.sampling(contender.sample, 5)(), (5, 3)))
    for values, shape in found:
        assert isinstance(values, torch.Tensor)
        assert values.shape == shape
        assert values.isfinite().all()
        assert not values.requires_grad


def test_races_report_ratios_to_the_first() -> None:
    entered = {"ours": contenders.nits_mlp(TINY), "plain": contenders.plain_way(TINY)}
    found = speed.races({**entered, "ours again": entered["ours"]}, torch.randn(64, 3), rounds=2)
    assert list(found["scoring"]["ours_over"]) == ["plain", "ours again"]
    assert list(found["sampling"]["rows_per_s"]) == ["ours", "ours again"]
    for race in found.values():
        for spread in (*race["rows_per_s"].values(), *race["ours_over"].values()):
            assert 0 < spread["quartile_low"] <= spread["median"] <= spread["quartile_high"]


def test_a_race_knows_who_is_faster() -> None:
    found = speed.race({"ours": lambda: None, "slow": lambda: torch.randn(300_000)}, 10, rounds=5)
    assert found["ours_over"]["slow"]["median"] > 10
    assert found["rows_per_s"]["ours"]["median"] > found["rows_per_s"]["slow"]["median"]


def test_the_exponent_of_a_power_law_is_recovered() -> None:
    sizes = [8, 16, 64, 256]
    assert scaling.exponent(sizes, [3e-4 * s**1.7 for s in sizes]) == pytest.approx(1.7, abs=1e-12)


@pytest.mark.parametrize("work", [scaling.scoring, scaling.sampling])
def test_a_sweep_is_timed_and_fitted(work: scaling.Work) -> None:
    threads = torch.get_num_threads()
    sweep = scaling.Sweep(work, "columns D", {d: scaling.Case(d, 8, 16) for d in (2, 4)})
    found = scaling.measured(sweep, 2, (threads + 1,))
    (line,) = found["threads"].values()
    assert len(line["seconds"]) == 2
    assert math.isfinite(line["exponent"])
    assert (found["work"], found["sizes"]) == (work.__name__, [2, 4])
    assert torch.get_num_threads() == threads


def test_sweeps_vary_one_size_at_a_time() -> None:
    for sweep in scaling.SWEEPS.values():
        columns, hidden, rows = (set(v) for v in zip(*sweep.cases.values(), strict=True))
        varied = [values for values in (columns, hidden, rows) if len(values) > 1]
        assert varied == [set(sweep.cases)]
        assert min(hidden) >= max(columns) - 1


def test_images_cost_less_than_a_pass_for_every_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "SHAPES", {"small": (3, 6, 6)})
    found = costs.cost_of_image_sampling(rounds=2)
    assert found["small"]["passes_over_sampling"]["median"] > 1
