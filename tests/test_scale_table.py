"""The tables of docs/scale.md, and the cost model behind them."""

from pathlib import Path
from typing import Any

import pytest
import results
import scale_model
import scale_plan
import scale_table
from scale_model import Size, Work

PLAN = {
    "nodes": 16,
    "first_pass_hours": 1.25,
    "step_seconds": 0.5,
    "exchange_share": 0.125,
    "reading_share": 0.01,
    "epoch_hours": 2.0,
}

FIGURES: dict[str, dict[str, Any]] = {
    "ray-members": {"members": 5, "two_nodes_ahead": {"median": 1.91}, "same_bits": True},
    "ray-scores": {"rows": 20_000_000, "two_nodes_ahead": 1.84, "same_scores": False},
    "ranks": {
        "two_over_one": {"median": 1.85},
        "seconds_per_step": {"two": {"median": 0.2}},
        "waits": {"median": 0.01},
    },
    "ranks-weights": {"steps": 200, "weights_apart": 3e-7},
    "scale-steps": {
        "constants": {"s": 1e-3, "o": 2e-9, "a": 3e-12, "c": 4e-7},
        "values_per_second": {"first_pass": 3e6, "decoded": 4e6},
        "steps": [
            {
                **Size(10, 128, 1024)._asdict(),
                "weights": 1234,
                "fitted": False,
                "seconds": 0.012,
                "predicted_over_measured": 1.04,
            }
        ],
    },
    "scale-exchange": {"latency": 5e-5, "bandwidth": 2e9},
    "scale-plan": {
        "runs": [{"what": "first pass, s", "measured": 123.4, "predicted_over_measured": 0.93}],
        "planned": {**Size(100, 512, 65536)._asdict(), "weights": 10**6, "rows": 10**9, "cores": 2},
        "plan": [PLAN],
        "levels_off_at_ranks": 87.6,
        "changes": {"nodes": 256, "ways": [{"what": "as it is", "epoch_hours": 0.25}]},
    },
}


def test_tables_say_what_the_result_files_have(tmp_path: Path) -> None:
    assert scale_table.scale_tables(tmp_path) == scale_table.NONE
    for name, figures in FIGURES.items():
        results.write(tmp_path / f"{name}.json", {"results": figures})
        results.write(tmp_path / f"{name}-quick.json", {"results": {}})  # never shown
    made = scale_table.scale_tables(tmp_path)
    for cells in (
        "| 5 members on two Ray nodes over one after another | 1.91, same bits | 1.8, same bits |",
        "| 20,000,000 rows scored on two Ray nodes over one process | 1.84, other scores | 1.8 |",
        "| rows per second of two ranks over those of one | 1.85 | 1.8 |",
        "| share of a step of two ranks that is the exchange | 5.0% |",
        "| weights of one rank and of two after 200 steps, largest difference | 3.0e-07 | 1e-5 |",
        "| a, each weight of each row | 3.0 ps |",
        "| first pass, s | 123 | 0.93 |",
        "do alike at 88 ranks.",
        "| as it is | 0.25 |",
        "| 10 | 128 | 1024 | 1,234 | 12.0 | 1.04 | not fitted to |",
        "| 16 | 1.2 | 0.5 | 12.5% | 1.0% | 2 |",
    ):
        assert cells in made


def test_the_constants_of_the_cost_model_are_found_in_its_own_steps() -> None:
    known = {"s": 2e-3, "o": 3e-8, "a": 4e-10, "c": 5e-6}
    sizes = *scale_model.QUICK[0], Size(16, 16, 512)
    measured = {size: scale_model.predicted(known, Work.of(size)) for size in sizes}
    found = scale_model.constants(measured)
    assert found == {name: pytest.approx(value, rel=1e-4) for name, value in known.items()}


def test_a_step_levels_off_where_half_of_it_does_not_shrink() -> None:
    own = {"s": 2e-3, "o": 3e-9, "a": 4e-11, "c": 5e-7}
    machine = scale_plan.Machine(own, 0.0, 1e9, 1e12, 1e7)
    work = Work(10**6, 100, 4096, 10**6)
    ranks = round(scale_plan.levels_off(machine, work))
    rows = own["a"] * work.weights + own["c"] * work.columns
    assert machine.step(work, ranks) == pytest.approx(2 * work.batch / ranks * rows, rel=0.02)
    assert machine.waits(work, 1) == 0.0
    assert machine.waits(work, 2) == pytest.approx(4e6 / 1e9)
    ways = {one["what"]: one["epoch_hours"] for one in scale_plan.changed(machine, work, 64)}
    assert all(hours < ways["as it is"] for what, hours in ways.items() if what != "as it is")
    alone, many = (scale_plan.planned(machine, work, n) for n in (1, 16))
    assert many["first_pass_hours"] == pytest.approx(alone["first_pass_hours"] / 16)
    assert many["epoch_hours"] < alone["epoch_hours"]
