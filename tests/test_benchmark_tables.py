"""The tables that benchmarks write into the pages, from records made up for the purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ablation
import pytest
import speed_table
import tables
from image_table import image_tables

RUN: dict[str, Any] = {
    "dataset": "power",
    "model": "nits-mlp",
    "minutes": 60.0,
    "seed": 0,
    "settings_name": "two-core",
    "parameters": 1234567,
    "epochs": 3.21,
    "test_nats": None,
    "test_nats_inside": 0.6123,
    "test_two_standard_errors": 0.0123,
    "test_rows": 204928,
    "test_rows_outside": 2,
}


def project(root: Path, *records: dict[str, Any]) -> Path:
    """A project with the files to write tables into, and runs that differ from RUN in these."""
    folder = root / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (root / "docs").mkdir()
    for name in tables.PLACES:
        (root / name).write_text(f"before\n{tables.BEGIN}\n{tables.END}\nafter\n")
    for index, record in enumerate(records):
        (folder / f"{index}.json").write_text(json.dumps({**RUN, **record}))
    return folder


def test_tables_are_written_and_checked(tmp_path: Path) -> None:
    folder = project(tmp_path, {})
    assert [tables.main(argv, tmp_path) for argv in (["--check"], [], ["--check"])] == [1, 0, 0]
    for name in ("README.md", "benchmarks/README.md"):
        text = (tmp_path / name).read_text()
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "0.612 ± 0.012 (2 of 204,928 rows outside)" in text
        assert "| 0.66 ± 0.01 |" in text
    lines = text.splitlines()
    for missing in ("gas", "hepmass", "miniboone"):
        assert any(line.startswith(f"| {missing} |") and "not run" in line for line in lines)
    (folder / "0.json").write_text(json.dumps({**RUN, "test_nats_inside": 0.6133}))
    assert tables.main(["--check"], tmp_path) == 1


def test_a_table_changed_by_hand_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, {})
    tables.main([], tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text().replace("0.612", "0.712"))
    assert tables.main(["--check"], tmp_path) == 1
    readme.write_text("no table here\n")
    assert tables.main([], tmp_path) == 2
    assert "README.md must have the lines" in capsys.readouterr().err


def test_readme_has_a_line_per_budget_that_rivals_had_and_for_the_largest(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        {},
        {"minutes": 10.0, "seed": 1, "test_nats_inside": 0.7},  # not the first seed
        {"minutes": 20.0, "test_nats_inside": 0.58},
        {"minutes": 10.0, "test_nats_inside": 0.51, "test_rows_outside": 0},
        {"minutes": 10.0, "test_nats_inside": -0.2, "model": "zuko-nsf"},
        {"minutes": 10.0, "test_nats_inside": -0.1, "model": "zuko-maf", "test_rows_outside": 0},
        {"minutes": 90.0, "test_nats_inside": 0.9, "model": "zuko-naf"},
        {"minutes": 120.0, "model": "nits-mixture", "test_rows_outside": 0},
    )
    lines = tables.short_table(folder).splitlines()[2:]
    assert lines[0].startswith("| power | 10 | 0.510 ± 0.012 | −0.100 ± 0.012, zuko-maf |")
    assert lines[1].startswith("| power | 120 | 0.612 ± 0.012, mixture | not run |")
    assert len(lines) == 2


def test_readme_has_what_defaults_reach_on_tables_without_published_figures(
    tmp_path: Path,
) -> None:
    rival = {"dataset": "diamonds", "minutes": 5.0, "model": "zuko-nsf", "test_nats_inside": 1.0}
    folder = project(tmp_path, rival)
    test = {"nats_inside": 5.25, "two_standard_errors": 0.1, "rows_outside": 0, "rows": 100}
    for dataset, minutes in (("diamonds", 5.0), ("gas_turbine", None), ("power", 5.0)):
        record = {"nits": {"results": {"max_minutes": minutes, "test": test}}}
        (folder / f"suite-published-{dataset}.json").write_text(json.dumps(record))
    lines = [line for line in tables.short_table(folder).splitlines() if "defaults" in line]
    assert len(lines) == 1
    assert lines[0].startswith("| diamonds | 5 | 5.250 ± 0.100, defaults | 1.000 ± 0.012")


def test_searches_from_the_defaults_have_a_table_of_their_own(tmp_path: Path) -> None:
    search = {"minutes": 2.0, "results": {ablation.BASE: {"validation_nats": 0.5}}}
    for dataset, defaults in (("diamonds", True), ("power", False), ("bsds300", False)):
        record = {**search, "dataset": dataset, "defaults": defaults}
        (tmp_path / f"ablation-{dataset}.json").write_text(json.dumps(record))
    first, second = tables.ablation_tables(tmp_path).split("NITSDensity")
    assert "| change | bsds300, 2 minutes | power, 2 minutes |" in first
    assert "| change | diamonds, 2 minutes |" in second


def test_trials_on_small_tables(tmp_path: Path) -> None:
    trials = {"0.001, 60 epochs": -1.234, "0.005, 60 epochs": 2.0}
    found = {"yacht": {"rows": 1247, "columns": 7, "validation_nats": trials}}
    (tmp_path / "small-tables.json").write_text(json.dumps({"results": found}))
    head, _, line = tables.recipe_tables(tmp_path).splitlines()[-3:]
    assert head == "| rows that were learned from | 0.001, 60 epochs | 0.005, 60 epochs |"
    assert line == "| yacht, 1,247 × 7 | −1.23 | 2.00 |"


def spread(middle: float) -> dict[str, float]:
    return {"median": middle, "quartile_low": 0.9 * middle, "quartile_high": 1.2 * middle}


def test_tables_of_speed_say_what_the_results_say(tmp_path: Path) -> None:
    over = {"plain": spread(12.0), "zuko-nsf": spread(0.7)}
    rates = {"nits-mlp": spread(4321.0), "zuko-nsf": spread(6000.0)}
    race = {"columns": {key: {"ours_over": over, "rows_per_s": rates} for key in ("63", "6")}}
    threads = {"1": {"exponent": 1.0}, "2": {"exponent": 0.5}}
    sweep = {"work": "scoring", "against": "rows N", "sizes": [1, 2, 4], "threads": threads}
    races = [(name, race) for name in speed_table.RACES]
    for name, found in (("speed", dict(races)), ("scaling", {"sweeps": {"a": sweep}})):
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": found}))
    first, second, powers = speed_table.speed_tables(tmp_path).split("\n\n")
    assert first.splitlines()[2] == "| plain |" + " **12** (10.8 … 14.4) |" * 8
    assert second.splitlines()[2] == "| nits-mlp |" + " 4,321 |" * 8
    assert powers.splitlines()[0] == "| time grows with the power | 1 thread | 2 threads |"
    assert powers.splitlines()[2] == "| scoring, 1 … 4 rows N | 1.00 | 0.50 |"


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    for made in (speed_table.speed_tables, image_tables, tables.ablation_tables):
        assert "measured on this version yet." in made(tmp_path)
