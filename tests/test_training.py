"""`nits.fit`: it reaches the truth, keeps to its budget, resumes bit for bit, and says what is wrong."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import nits
from nits.datasets import toy
from nits.kernels import compiled
from nits.training.history import History
from nits.training.likelihood import mean_log_likelihood, start_from_data
from nits.training.rows import Rows

QUICK = nits.Recipe(batch_size=64, learning_rate=1e-2, schedule=nits.Cosine(warmup=5))


def rows(n: int = 600, seed: int = 0) -> Tensor:
    """Two correlated columns."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))
    return torch.stack([x[:, 0], 0.8 * x[:, 0] + 0.6 * x[:, 1]], 1)


def small(**options: float) -> nits.NITS:
    torch.manual_seed(0)
    return nits.NITS.mlp([nits.heads.Continuous(hidden=(6, 6))] * 2, hidden=16, blocks=1, **options)  # type: ignore[arg-type]


def weights(model: nits.NITS) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


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


def test_starts_from_the_independent_marginals() -> None:
    model, x = small(), rows(5000)
    start_from_data(model, Rows(x))
    alone = [mean_log_likelihood(_one(x[:, i : i + 1]), Rows(x[:, i : i + 1])) for i in range(2)]
    assert mean_log_likelihood(model, Rows(x)) == pytest.approx(sum(alone), abs=1e-5)
    marginal = -0.5 * math.log(2 * math.pi) - 0.5
    assert sum(alone) == pytest.approx(2 * marginal, abs=0.1)


def _one(column: Tensor) -> nits.NITS:
    model = nits.NITS.independent([nits.heads.Continuous(hidden=(6, 6))])
    start_from_data(model, Rows(column))
    return model


def test_returns_the_average_and_leaves_no_trace() -> None:
    state = torch.random.get_rng_state()
    model = small(dropout=0.2)
    after_construction = torch.random.get_rng_state()
    nits.fit(model, rows(), max_steps=20, recipe=QUICK, progress=False)
    assert not model.training
    assert not model.compiled
    assert torch.equal(torch.random.get_rng_state(), after_construction)
    torch.random.set_rng_state(state)


def test_same_seed_same_weights_and_another_seed_others() -> None:
    results = []
    for seed in (0, 0, 1):
        model = small(dropout=0.1)
        nits.fit(model, rows(), max_steps=15, recipe=QUICK, seed=seed, progress=False)
        results.append(weights(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_budget_in_epochs_and_minutes() -> None:
    history = nits.fit(small(), rows(), max_epochs=3, recipe=QUICK, progress=False)
    assert history.epoch == [1.0, 2.0, 3.0]
    begun = time.monotonic()
    history = nits.fit(small(), rows(), max_minutes=0.05, recipe=QUICK, progress=False)
    assert time.monotonic() - begun < 20
    assert history.stopped == "budget"
    assert history.seconds[-1] >= 3
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


def test_resume_continues_bit_for_bit(tmp_path: Path) -> None:
    whole, half = small(dropout=0.1), small(dropout=0.1)
    place = tmp_path / "run.safetensors"
    expected = nits.fit(whole, rows(), max_steps=40, recipe=QUICK, progress=False)
    nits.fit(
        half,
        rows(),
        max_steps=17,
        recipe=Stopped(QUICK, 40).recipe,
        progress=False,
        checkpoint=place,
    )
    half = small(dropout=0.1)
    history = nits.fit(half, rows(), max_steps=40, recipe=QUICK, progress=False, resume=place)
    assert torch.equal(weights(whole), weights(half))
    assert history.validation[-1] == expected.validation[-1]


class Stopped:
    """A recipe that trains as if the budget were longer, so that it can be stopped half-way."""

    def __init__(self, recipe: nits.Recipe, steps: int) -> None:
        outer = cast(nits.Cosine, recipe.schedule)

        class Longer(nits.Cosine):
            def factor(self, step: int, progress: float, validation: list[float]) -> float:
                return outer.factor(step, step / steps, validation)

            def __repr__(self) -> str:
                return repr(outer)

        self.recipe = nits.Recipe(recipe.batch_size, recipe.learning_rate, schedule=Longer())


def test_ctrl_c_writes_a_checkpoint_and_keeps_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training.loop import Loop

    advance = Loop.advance

    def interrupted(self: Loop, progress: float) -> None:
        advance(self, progress)
        if self.step == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "advance", interrupted)
    place = tmp_path / "run.safetensors"
    history = nits.fit(
        small(), rows(), max_steps=40, recipe=QUICK, progress=False, checkpoint=place
    )
    assert history.stopped == "interrupted"
    monkeypatch.undo()
    resumed, whole = small(), small()
    nits.fit(resumed, rows(), max_steps=40, recipe=QUICK, progress=False, resume=place)
    nits.fit(whole, rows(), max_steps=40, recipe=QUICK, progress=False)
    assert torch.equal(weights(resumed), weights(whole))


SCRIPT = """
import sys
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[3])
from test_training import QUICK, rows, small, weights
import nits
place = Path(sys.argv[1])
model = small(dropout=0.1)
nits.fit(model, rows(), max_steps=1500, recipe=QUICK, progress=False, checkpoint=place,
         checkpoint_minutes=0.0002, resume=place if place.exists() else None)
torch.save(weights(model), sys.argv[2])
"""


@pytest.mark.slow
def test_kill_9_at_three_moments_then_resume(tmp_path: Path) -> None:
    place, out = tmp_path / "run.safetensors", tmp_path / "weights.pt"
    command = [sys.executable, "-c", SCRIPT, str(place), str(out), str(Path(__file__).parent)]
    chance = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(command)
        before = place.stat().st_mtime if place.exists() else 0.0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (
            place.exists() and place.stat().st_mtime > before
        ):
            time.sleep(0.01)
        time.sleep(chance.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not out.exists(), "the run ended before it could be killed"
    subprocess.run(command, check=True)
    whole = small(dropout=0.1)
    nits.fit(whole, rows(), max_steps=1500, recipe=QUICK, progress=False)
    assert torch.equal(torch.load(out, weights_only=True), weights(whole))


def test_a_budget_in_minutes_resumes_with_the_minutes_left(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    nits.fit(small(), rows(), max_minutes=0.05, recipe=QUICK, progress=False, checkpoint=place)
    history = nits.fit(
        small(), rows(), max_minutes=0.08, recipe=QUICK, progress=False, resume=place
    )
    assert 4.8 <= history.seconds[-1] < 12


def test_non_finite_steps_are_skipped_and_many_stop_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from nits.training import loop

    calls = []

    def broken(model: nits.NITS, batch: object, hide: float) -> Tensor:
        calls.append(1)
        value = weights_sum(model)
        return value * (math.nan if len(calls) % 3 == 0 or len(calls) > 30 else 1.0)

    def weights_sum(model: nits.NITS) -> Tensor:
        return torch.stack([p.square().sum() for p in model.parameters()]).sum() * 1e-6

    monkeypatch.setattr(loop, "log_likelihood", broken)
    model = small()
    history = nits.fit(model, rows(), max_steps=30, recipe=QUICK, progress=False, validation=0.0)
    assert history.skipped == 10
    assert bool(torch.isfinite(weights(model)).all())
    with pytest.raises(
        RuntimeError,
        match=r"50 steps in a row had a loss or gradient that is not finite; try a lower",
    ):
        nits.fit(small(), rows(), max_steps=300, recipe=QUICK, progress=False, validation=0.0)


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


def test_resume_refuses_another_run(tmp_path: Path) -> None:
    place = tmp_path / "run.safetensors"
    nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, checkpoint=place)
    with pytest.raises(
        ValueError, match="the checkpoint was made with seed=0, but this run has 1; resume with the"
    ):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place, seed=1)
    place.write_bytes(place.read_bytes()[:200])
    with pytest.raises(ValueError, match="must be a whole safetensors file, but is not"):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place)


def test_resume_refuses_files_of_other_programs(tmp_path: Path) -> None:
    place = tmp_path / "other.safetensors"
    save_file({"a": torch.ones(3)}, place)
    message = "must be a nits checkpoint 1, but is a safetensors file of another program; pass"
    with pytest.raises(ValueError, match=message):
        nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, resume=place)


def test_a_model_with_a_context_needs_one() -> None:
    heads = [nits.heads.Continuous(hidden=(6, 6))] * 2
    model = nits.NITS.mlp(heads, hidden=16, blocks=1, context=3)
    message = "this model takes a context of 3 features, but data has none; pass context="
    with pytest.raises(ValueError, match=message):
        nits.fit(model, rows(), max_steps=3, recipe=QUICK, progress=False)


def test_no_compiler_goes_on_with_one_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    compiled.available.cache_clear()
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler was found"):
        history = nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False, compile=True)
    assert not history.compiled
    compiled.available.cache_clear()


def test_progress_bar_shows_figures_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    nits.fit(small(), rows(), max_minutes=0.06, recipe=QUICK)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "nats" in captured.err
    assert "rows/s" in captured.err


def test_silent_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    nits.fit(small(), rows(), max_steps=3, recipe=QUICK, progress=False)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_history_keeps_and_plots_every_figure() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    history = nits.fit(small(), rows(), max_steps=30, recipe=QUICK, progress=False)
    figures = history.to_dict()
    assert History.from_dict(figures) == history
    lengths = {
        len(getattr(history, name)) for name in ("step", "epoch", "seconds", "train", "validation")
    }
    assert lengths == {len(history.learning_rate)} == {len(history.rows_per_second)}
    ax = history.plot()
    assert [line.get_label() for line in ax.lines][:2] == [
        "training",
        "validation, averaged weights",
    ]


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


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
def test_checkpoint_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training import checkpoint as files

    place = tmp_path / "run.safetensors"
    files.write(place, {"model": {"a": torch.ones(3)}}, {"step": 1})
    kept = place.read_bytes()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write(place, {"model": {"a": torch.zeros(3)}}, {"step": 2})
    assert place.read_bytes() == kept
    assert [p.name for p in tmp_path.iterdir()] == [place.name]
