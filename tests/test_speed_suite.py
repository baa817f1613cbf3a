"""The speed suite: the plain version is the same density, rivals match our size, programs run."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.patches import Rectangle

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import mlp_speed
import plain
import scaling
import speed
import speed_plot
import speed_programs
import speed_table
from speed_programs import Size

import nits
from nits import NITS
from nits.heads import Continuous, Quantized

TINY = Size(columns=3, hidden=16, blocks=1)
ENDS = {
    "line": (-math.inf, math.inf),
    "half line": (-4.0, math.inf),
    "other half": (-math.inf, 4.0),
    "interval": (-4.0, 4.0),
}
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
PACKAGE = {name: name.partition("-")[0] for name in speed_programs.RIVALS}


def doubled(heads: list[Continuous]) -> NITS:
    torch.manual_seed(0)
    return NITS.mlp(heads, hidden=12, blocks=2, order=[2, 0, 1]).double()


def inside(rows: int = 20) -> torch.Tensor:
    return torch.randn(
        rows, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    ).clamp(-3, 3)


@pytest.mark.parametrize("hidden", [(5, 4), (6,), (4, 3, 5)])
@pytest.mark.parametrize("ends", list(ENDS.values()), ids=list(ENDS))
def test_the_plain_way_is_the_same_density(
    ends: tuple[float, float], hidden: tuple[int, ...]
) -> None:
    model = doubled(
        [Continuous(*ends, hidden), Continuous(hidden=hidden), Continuous(*ends, hidden)]
    )
    dense, x = mlp_speed.made_dense(model), inside()
    torch.testing.assert_close(plain.log_prob(dense, x), model.log_prob(x), rtol=0, atol=1e-8)
    with torch.no_grad():
        torch.testing.assert_close(plain.log_prob(dense, x), model.log_prob(x), rtol=0, atol=1e-8)


def test_the_plain_way_has_the_same_gradients() -> None:
    model = doubled([Continuous(-4.0, 4.0), Continuous(), Continuous(low=-4.0)])
    dense, x = mlp_speed.made_dense(model), inside()
    model.log_prob(x).mean().backward()
    plain.log_prob(dense, x).mean().backward()
    pairs = list(zip(model.named_parameters(), dense.parameters(), strict=True))
    for (name, ours), theirs in pairs:
        if ours.numel():
            assert ours.grad is not None, name
            assert ours.grad.any(), name
            torch.testing.assert_close(theirs.grad, ours.grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "second", [Quantized(0.0, 1.0, 4), Continuous(hidden=(4,))], ids=["integers", "other layers"]
)
def test_the_plain_way_refuses_what_it_does_not_know(second: nits.heads.Head) -> None:
    model = NITS.mlp([Continuous(), second], hidden=4, blocks=1)
    with pytest.raises(
        ValueError, match="heads must be continuous, with one choice of hidden layers"
    ):
        plain.log_prob(model, torch.zeros(2, 2))


def test_the_plain_contender_multiplies_whole_matrices_and_has_our_weights() -> None:
    ours = speed_programs.MAKE[speed_programs.UNCOMPILED](TINY)
    theirs = speed_programs.MAKE[speed_programs.PLAIN](TINY)
    assert isinstance(theirs.module, NITS)
    assert all(layer.forward == layer.dense for layer in mlp_speed.layers(theirs.module))
    x = torch.randn(7, 3)
    torch.testing.assert_close(theirs.log_prob(x), ours.log_prob(x), rtol=0, atol=1e-4)


def test_plain_scores_do_not_depend_on_how_many_are_scored_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, x = speed_programs.plain_way(TINY), torch.randn(7, 3)
    whole = theirs.log_prob(x)
    monkeypatch.setattr(speed_programs, "SCORED_AT_ONCE", 3)
    with torch.no_grad():
        torch.testing.assert_close(theirs.log_prob(x), whole.detach())


@pytest.mark.parametrize("name", list(speed_programs.RIVALS))
def test_a_rival_has_as_many_weights_as_we(name: str) -> None:
    pytest.importorskip(PACKAGE[name])
    ours = speed.SIZES[-1]
    parameters = speed_programs.nits_mlp(ours, compiled=False).parameters
    size = speed_programs.matched(name, ours.columns, parameters)
    counts = [
        speed_programs.RIVALS[name](size._replace(hidden=size.hidden + step)).parameters
        for step in (0, -1, 1)
    ]
    apart = [abs(count - parameters) for count in counts]
    assert apart[0] <= 0.02 * parameters
    assert apart[0] == min(apart)


@pytest.mark.filterwarnings(
    "ignore:torch.triangular_solve is deprecated:UserWarning"
)  # nflows calls it
@pytest.mark.parametrize("name", [n for n in speed_programs.MAKE if n != speed_programs.OURS])
def test_a_contender_trains_scores_and_samples(name: str) -> None:
    if name in PACKAGE:
        pytest.importorskip(PACKAGE[name])
    contender, x = speed_programs.MAKE[name](TINY), torch.randn(32, 3)
    step = speed_programs.training_step(contender, x)
    losses = [float(torch.as_tensor(step())) for _ in range(20)]
    assert losses[-1] < losses[0]
    scores = speed_programs.scoring(contender, x)()
    assert isinstance(scores, torch.Tensor)
    assert scores.shape == (32,)
    assert not scores.requires_grad
    if contender.sample is None:
        with pytest.raises(ValueError, match="the plain way has no sampler"):
            speed_programs.sampling(contender, 5)
        return
    drawn = speed_programs.sampling(contender, 5)()
    assert isinstance(drawn, torch.Tensor)
    assert drawn.shape == (5, 3)
    assert drawn.isfinite().all()
    assert not drawn.requires_grad


def test_races_report_ratios_to_the_first() -> None:
    pytest.importorskip("zuko")
    names = [speed_programs.UNCOMPILED, speed_programs.PLAIN, "zuko-maf"]
    field = {name: speed_programs.MAKE[name](TINY) for name in names}
    found = speed.races(field, torch.randn(64, 3), rounds=2)
    assert set(found) == set(speed.WHAT)
    assert list(found["scoring"]["ours_over"]) == names[1:]
    assert list(found["sampling"]["rows_per_s"]) == [names[0], "zuko-maf"]
    for race in found.values():
        for spread in (*race["rows_per_s"].values(), *race["ours_over"].values()):
            assert 0 < spread["quartile_low"] <= spread["median"] <= spread["quartile_high"]


def test_a_race_knows_who_is_faster() -> None:
    found = speed.race({"ours": lambda: None, "slow": lambda: torch.randn(300_000)}, 10, rounds=5)
    assert found["ours_over"]["slow"]["median"] > 10
    assert found["rows_per_s"]["ours"]["median"] > found["rows_per_s"]["slow"]["median"]


@linux
def test_peak_memory_is_that_of_the_child() -> None:
    taken = torch.ones(2**26)  # 256 MiB here, none of it in the children
    line = "open('/proc/self/status').read()"
    small = speed.peak_mib(["-c", f"print({line})"])
    large = speed.peak_mib(["-c", f"a = bytearray(64 * 2**20); print({line})"])
    assert small < 100 < taken.nbytes / 2**20
    assert large - small == pytest.approx(64, abs=4)
    with pytest.raises(RuntimeError, match="did not end well"):
        speed.peak_mib(["-c", "raise SystemExit(3)"])


@linux
def test_the_measured_process_prints_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--memory-of", speed_programs.UNCOMPILED, "--size", "3", "16", "1", "--rows", "8"]
    assert speed.main(flags) == 0
    assert "VmHWM:" in capsys.readouterr().out


def test_the_exponent_of_a_power_law_is_recovered() -> None:
    sizes = [8, 16, 64, 256]
    assert scaling.exponent(sizes, [3e-4 * s**1.7 for s in sizes]) == pytest.approx(1.7, abs=1e-12)


def test_a_sweep_is_timed_and_fitted() -> None:
    threads, cases = torch.get_num_threads(), tuple(scaling.Case(d, 8, 16) for d in (2, 4))
    for work in (scaling.scoring, scaling.sampling):
        sweep = scaling.Sweep(work, "columns D", (2, 4), cases)
        found = scaling.measured(sweep, 2, (1,), compiled=False)
        assert [len(line["seconds"]) for line in found["threads"].values()] == [2]
        assert math.isfinite(found["threads"]["1"]["exponent"])
        assert found["work"] == work.__name__
    assert torch.get_num_threads() == threads


def test_sweeps_vary_one_size_at_a_time() -> None:
    for sweep in scaling.SWEEPS.values():
        columns, hidden, rows = (set(values) for values in zip(*sweep.cases, strict=True))
        varied = [values for values in (columns, hidden, rows) if len(values) > 1]
        assert varied == [set(sweep.sizes)]
        assert min(hidden) >= max(columns) - 1


def spread(middle: float) -> dict[str, float]:
    return {"median": middle, "quartile_low": 0.9 * middle, "quartile_high": 1.2 * middle}


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    over = {"plain": spread(12.0), "zuko-nsf": spread(0.7)}
    speeds = {"nits-mlp": spread(4321.0), "zuko-nsf": spread(6000.0)}
    races: dict[str, Any] = {
        name: {"columns": {key: {"ours_over": over, "rows_per_s": speeds} for key in ("63", "6")}}
        for name in speed_plot.RACES
    }
    memory = {"nits-mlp": 512.4, "zuko-nsf": 90.0}
    races["training_memory"] = {"columns": {"63": memory, "6": memory}}
    line = {"seconds": [spread(0.1), spread(0.2), spread(0.4)], "exponent": 1.0}
    sweep = {
        "work": "scoring",
        "against": "rows N",
        "sizes": [1, 2, 4],
        "threads": {"1": line, "2": line},
    }
    (tmp_path / "speed.json").write_text(json.dumps({"results": races}))
    (tmp_path / "scaling.json").write_text(
        json.dumps({"results": {"sweeps": dict.fromkeys("abcd", sweep)}})
    )
    return tmp_path


def test_plots_are_drawn_from_the_results(made_up: Path) -> None:
    drawn = speed_plot.draw(made_up, made_up / "plots")
    assert [path.name for path in drawn] == ["speed.png", "speed.svg", "scaling.png", "scaling.svg"]
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_plots_show_what_the_results_say(made_up: Path) -> None:
    results = json.loads((made_up / "speed.json").read_text())["results"]
    figure = speed_plot.speed_figure(results)
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert ends == pytest.approx([12.0, 0.7, 12.0, 0.7])
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(speed_plot.RACES)
    results = json.loads((made_up / "scaling.json").read_text())["results"]
    titles = {axes.get_title() for axes in speed_plot.scaling_figure(results).axes}
    assert titles == {"scoring: exponent 1.00 (1 thread), 1.00 (2 threads)"}


def test_tables_say_what_the_results_say(made_up: Path) -> None:
    races, costs, powers = speed_table.speed_tables(made_up).split("\n\n")
    assert races.splitlines()[2] == "| plain |" + " **12** (10.8 … 14.4) |" * 8
    assert costs.splitlines()[2] == "| nits-mlp |" + " 4,321 |" * 8 + " 512 | 512 |"
    assert powers.splitlines()[0] == "| time grows with the power | 1 thread | 2 threads |"
    assert powers.splitlines()[2] == "| scoring, 1 … 4 rows N | 1.00 | 1.00 |"


def test_speed_that_was_not_measured_is_said(tmp_path: Path) -> None:
    assert speed_table.speed_tables(tmp_path) == speed_table.NONE


def test_results_that_do_not_exist_are_not_drawn(tmp_path: Path) -> None:
    assert speed_plot.draw(tmp_path, tmp_path) == []
