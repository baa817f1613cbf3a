"""`nits.fit`: it reaches the truth, keeps to its budget and says what is wrong."""

from __future__ import annotations

import math
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import nits
from nits.datasets import toy
from nits.kernels import compiled
from nits.training.likelihood import mean_log_likelihood
from nits.training.loop import Loop
from nits.training.rows import Rows
from registry import seeded
from two_columns import QUICK, rows, small, weights


def test_reaches_the_truth_on_a_correlated_gaussian() -> None:
    model, x = small(), rows(8000)
    history = nits.fit(
        model,
        x,
        max_steps=400,
        recipe=nits.Recipe(batch_size=256, learning_rate=5e-3),
        progress=False,
    )
    truth = -math.log(2 * math.pi) - 1 - math.log(0.6)
    assert mean_log_likelihood(model, Rows(rows(20000, seed=1))) == pytest.approx(truth, abs=0.03)
    assert history.stopped == "budget"
    assert history.step[-1] == 400
    assert history.final_validation is not None


def test_same_seed_same_weights_and_another_seed_others() -> None:
    results = []
    for seed in (0, 0, 1):
        model = small(dropout=0.1)
        nits.fit(model, rows(), max_steps=15, recipe=QUICK, seed=seed, progress=False)
        results.append(weights(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_one_step_is_taken_however_late_it_is() -> None:
    history = nits.fit(small(), rows(), max_minutes=1e-6, recipe=QUICK, progress=False)
    assert (history.step, history.stopped) == ([1], "budget")


def test_budget_in_epochs_and_minutes() -> None:
    history = nits.fit(small(), rows(), max_epochs=3, recipe=QUICK, progress=False)
    assert history.epoch == [1.0, 2.0, 3.0]
    begun = time.monotonic()
    history = nits.fit(small(), rows(), max_minutes=0.02, recipe=QUICK, progress=False)
    assert time.monotonic() - begun < 20
    assert history.stopped == "budget"
    assert history.seconds[-1] >= 1.2
    assert history.learning_rate[-1] < 1e-3  # the cosine was planned to end here


def test_early_stopping_returns_the_best_weights() -> None:
    recipe = nits.Recipe(
        batch_size=32, learning_rate=0.05, patience=3, schedule=nits.Plateau(warmup=1, patience=100)
    )
    model = small()
    history = nits.fit(
        model, rows(80), validation=rows(200, 5), max_epochs=200, recipe=recipe, progress=False
    )
    assert history.stopped == "patience"
    assert history.final_validation == pytest.approx(max(history.validation), abs=1e-5)
    assert mean_log_likelihood(model, Rows(rows(200, 5))) == pytest.approx(
        max(history.validation), abs=1e-5
    )


def test_sample_weights_move_the_fit() -> None:
    x = torch.cat([rows(300) - 2, rows(300) + 2])
    weight = torch.cat([torch.full((300,), 1e-6), torch.ones(300)])
    model = small()
    nits.fit(
        model, x, sample_weight=weight, max_steps=150, recipe=QUICK, progress=False, validation=0.0
    )
    assert float(model.sample(500, generator=0).mean()) == pytest.approx(2, abs=0.4)


def test_context_is_learned() -> None:
    context = torch.randn(2000, 1, generator=torch.Generator().manual_seed(2))
    x = rows(2000) * 0.3 + 2 * context
    model = nits.NITS.mlp(
        [nits.heads.Continuous(hidden=(6, 6))] * 2, hidden=16, blocks=1, context=1
    )
    nits.fit(model, x, context=context, max_steps=300, recipe=QUICK, progress=False)
    for given in (-1.0, 1.0):
        sample = model.sample(400, torch.tensor([given]), generator=0)
        assert float(sample.mean()) == pytest.approx(2 * given, abs=0.3)


def test_memory_mapped_rows_give_the_same_weights(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows().numpy())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    results = []
    for data in (rows(), mapped):
        model = small()
        nits.fit(model, data, max_steps=10, recipe=QUICK, progress=False)
        results.append(weights(model))
    assert torch.equal(*results)


def test_views_of_rows_give_the_same_weights_as_copies() -> None:
    """Some rows, in another order, with weights, and features of the context made per batch."""
    about, weight = torch.randn(600, 1, generator=seeded(3)), torch.rand(600, generator=seeded(4))
    whole = Rows(rows(600), about, weight, read=lambda t: torch.cat([t, t.square()], 1))
    index = torch.randperm(600, generator=seeded(5))[:400]
    results = []
    for some in (whole.view(index), whole.subset(index)):
        torch.manual_seed(0)
        model = nits.NITS.mlp(
            [nits.heads.Continuous(hidden=(6, 6))] * 2, hidden=16, blocks=1, context=2
        )
        nits.fit(model, some, max_steps=5, recipe=QUICK, progress=False)
        results.append(weights(model))
    assert torch.equal(*results)


def test_a_view_is_no_copy_and_views_of_views_are_rows() -> None:
    x = rows(10)
    whole = Rows(x, weight=torch.arange(10.0))
    view = whole.view(torch.tensor([7, 3, 5, 1])).view(torch.tensor([3, 0]))
    assert view.x is x
    assert len(view) == 2
    assert torch.equal(view.take(torch.tensor([1, 0]), x).x, x[[7, 1]])
    assert torch.equal(torch.cat(list(view.parts())), x[[1, 7]])
    assert view.weights is not None
    assert view.weights.tolist() == [1.0, 7.0]


def test_rows_have_their_own_weights() -> None:
    with pytest.raises(ValueError, match=r"nits\.Rows must have their context and weights"):
        nits.fit(small(), Rows(rows(10)), sample_weight=torch.ones(10))


def test_rows_outside_the_support_are_counted_and_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = nits.NITS.mlp([nits.heads.Continuous(-2, 2, hidden=(6,))] * 2, hidden=16, blocks=1)
    x = rows()
    outside = int((x.abs() > 2).any(1).sum())
    history = nits.fit(model, x, validation=0.0, max_steps=3, recipe=QUICK)
    assert history.outside == outside > 0
    shown = " ".join(capsys.readouterr().err.split())
    assert f"{outside} of 600 training rows lie outside the support" in shown


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (
            rows()[:, :1],
            {},
            ValueError,
            r"data must be a tensor or array of shape \(N, 2\), but is \(600, 1\)",
        ),
        (rows().long(), {}, TypeError, "data must be float32 or float64, but is int64; convert it"),
        (rows().half(), {}, TypeError, "data must be float32 or float64, but is float16"),
        (
            rows().where(rows() < 2, torch.tensor(math.nan)),
            {},
            ValueError,
            r"data must hold finite values, but \d+ of 600 rows have NaN or infinite ones; drop",
        ),
        (rows(1), {}, ValueError, "data must have at least 2 rows to learn from, but has 1"),
        (
            rows() * torch.tensor([1.0, 0.0]),
            {},
            ValueError,
            "column 1 is constant at 0, where a density",
        ),
        (
            rows(),
            {"validation": 1.5},
            ValueError,
            r"validation must be rows or a share in \[0, 1\), but is 1.5",
        ),
        (rows(), {"max_steps": 0}, ValueError, "max_steps must be positive, but is 0"),
        (rows(), {"context": rows()}, ValueError, "this model takes no context, but data has one"),
        (
            rows(),
            {"sample_weight": torch.ones(3)},
            ValueError,
            "sample_weight must have one row per row of data, 600",
        ),
        (
            rows(),
            {"resume": "nowhere"},
            FileNotFoundError,
            "there is no file nowhere; check the path",
        ),
    ],
)
def test_bad_input(
    data: Tensor, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        nits.fit(small(), data, **{"max_steps": 2, "progress": False, **options})  # type: ignore[arg-type]


def test_all_rows_outside() -> None:
    model = nits.NITS.mlp([nits.heads.Continuous(50, 60, hidden=(6,))] * 2, hidden=16, blocks=1)
    with pytest.raises(
        ValueError, match="all 540 training rows lie outside the support; widen low and high"
    ):
        nits.fit(model, rows(), max_steps=2, progress=False)


def test_fewer_rows_than_a_batch_works() -> None:
    history = nits.fit(small(), rows(5), max_steps=4, progress=False)
    assert history.step[-1] == 4
    assert history.validation == []


def test_no_compiler_goes_on_with_one_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    compiled.available.cache_clear()
    no_compiler = pytest.warns(UserWarning, match="no C\\+\\+ compiler was found")
    with nits.kernels.using(native=False), no_compiler:
        history = nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, compile=True)
    assert "compiled" not in history.kernels
    compiled.available.cache_clear()


def test_progress_bar_shows_figures_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    nits.fit(small(), rows(), max_minutes=0.02, recipe=QUICK)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "nats" in captured.err
    assert "rows/s" in captured.err


def test_silent_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moons", "checkerboard"])
def test_a_trained_model_makes_unseen_rows_uniform(name: str) -> None:
    """Fails by chance 1 in 10⁴ times per column if the model is the truth, as 1500 rows see it."""
    stats = pytest.importorskip("scipy.stats")
    density = toy.density(name)
    x = density.sample(40_000, torch.Generator().manual_seed(0))
    mean, scale = x.mean(0), x.std(0)
    low, high = ((end - mean) / scale for end in (density.low, density.high))
    heads = [nits.heads.Continuous(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    torch.manual_seed(0)
    model = nits.NITS.mlp(heads, hidden=64, blocks=2)
    nits.fit(model, (x - mean) / scale, max_steps=700, progress=False)
    unseen = density.sample(1500, torch.Generator().manual_seed(1))
    with torch.no_grad():
        z = (unseen - mean) / scale
        gap = density.log_prob(unseen).mean() - (model.log_prob(z) - scale.log().sum()).mean()
        u = model.to_uniform(z)
    assert float(gap) < 0.05
    for column in u.t():
        assert stats.kstest(column.numpy(), "uniform").pvalue > 1e-4


def test_a_model_with_a_context_needs_one() -> None:
    heads = [nits.heads.Continuous(hidden=(6, 6))] * 2
    model = nits.NITS.mlp(heads, hidden=16, blocks=1, context=3)
    message = "this model takes a context of 3 features, but data has none; pass context="
    with pytest.raises(ValueError, match=message):
        nits.fit(model, rows(), max_steps=3, recipe=QUICK, progress=False)


def test_nothing_of_a_run_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither gradients nor the state of the optimizer, each as large as the model or larger."""
    begun = []
    init = Loop.__init__

    def noted(self: Loop, *args: Any) -> None:
        begun.append(weakref.ref(self))
        init(self, *args)

    monkeypatch.setattr(Loop, "__init__", noted)
    model = small()
    nits.fit(model, rows(50), max_steps=3, recipe=QUICK, progress=False)
    assert begun[0]() is None
    assert all(parameter.grad is None for parameter in model.parameters())
