"""Columns that once spoiled a model's own rows or samples, each by a law of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from hostile_checks import tail_masses
from mixed_table import small
from nits.cli.main import main
from nits.tables.columns.column import LOWER, UPPER

RNG = np.random.default_rng(0)
OTHER = RNG.normal(size=60)


def modelled(column: Any) -> Any:
    """Returns a small model of a column beside another one, and its table."""
    table = pandas.DataFrame({"x": column, "other": OTHER[: len(column)]})
    return small(max_steps=2).fit(table), table


COLUMNS: dict[str, Any] = {
    "1e-7 … 5e-7": RNG.integers(1, 6, 60) * 1e-7,
    "1.5e6 + k/4": 1.5e6 + RNG.integers(-90, 90, 60) / 4,
    "spread 1e-12": 1 + 1e-12 * RNG.integers(0, 50, 60),
    "an outlier of 2e9": np.append(RNG.normal(size=59), 2e9),
    "uint8 near 255": np.array(255 - RNG.poisson(2, 60), np.uint8),
    "int8 near -128": np.array(RNG.poisson(2, 60) - 128, np.int8),
    "uint64 near 2^64": np.uint64(2**64 - 1) - RNG.poisson(9, 60).astype(np.uint64),
    "int64 near 2^60": 2**60 + RNG.poisson(9, 60),
    "year 1000": np.datetime64("1000-01-01", "s") + RNG.integers(0, 10**6, 60),
    "year 9999": np.datetime64("9999-12-01", "s") + RNG.integers(0, 2 * 10**6, 60),
    "values of 53 bits, twice": np.repeat(RNG.normal(size=5), 2),
    "0 and 2^62": np.array([0, 2**62, 2**62 + 1]),
    "float16": RNG.normal(size=60).astype(np.float16),
    "denormal": 5e-324 * RNG.poisson(50, 60),
    "three denormals": np.array([2.5e-322, 2.03e-322, 2.57e-322]),
    "three integers near 2^53": 2**53 - np.arange(3),
    "three decimals, two of them close": np.array([0.2, 0.22, 0.69]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_own_rows_and_own_samples_are_scored(name: str) -> None:
    model, table = modelled(COLUMNS[name])
    drawn = model.sample(300, random_state=1)
    for rows in (table, drawn):
        assert np.isfinite(model.score_samples(rows)).all()
        assert not model.unseen(rows).any()
    assert drawn["x"].dtype == table["x"].dtype
    assert not drawn["x"].isna().any()
    # Nothing has wrapped round.
    low, high = table["x"].min(), table["x"].max()
    inside = 1 - sum(tail_masses(model))
    assert ((drawn["x"] >= low) & (drawn["x"] <= high)).mean() > 0.6 * inside


def test_categories_in_order_that_never_occurred_end_the_tails() -> None:
    levels = ["none", "low", "middle", "high", "never"]
    codes = RNG.integers(1, 4, 60)
    column = pandas.Series(pandas.Categorical.from_codes(codes, levels, ordered=True))
    model, _ = modelled(column)
    found = model.schema_.columns[0]
    for side in (LOWER, UPPER):
        if found.beyond[0 if side == LOWER else 1]:
            assert set(found.drawn_beyond(side, np.linspace(0.01, 0.999, 50))) <= set(levels)
    drawn = model.sample(500, random_state=0)
    assert drawn["x"].dtype == column.dtype
    assert not model.unseen(drawn).any()


def test_cells_as_fine_as_floats_beyond_the_ends_have_a_probability() -> None:
    model, _ = modelled(COLUMNS["values of 53 bits, twice"])
    column = model.schema_.columns[0]
    far = column.drawn_beyond(UPPER, np.linspace(0.01, 0.99, 50))
    law = column.log_beyond(column.ruler.numbers(far), UPPER)
    assert np.isfinite(law).all()
    density = column.ruler.log_density(far, UPPER) + np.log(column.ruler.resolution.at(far))
    np.testing.assert_allclose(law, density)


def test_empty_columns_of_times_are_sampled(tmp_path: Path) -> None:
    empty = pyarrow.nulls(30, pyarrow.timestamp("us", "UTC"))
    parquet.write_table(pyarrow.table({"a": empty, "b": OTHER[:30]}), tmp_path / "t.parquet")
    model, samples = str(tmp_path / "m.nits"), str(tmp_path / "s.parquet")
    fitted = ["fit", str(tmp_path / "t.parquet"), "-o", model, "--max-steps", "2", "--quiet"]
    assert main(fitted) == 0
    assert main(["sample", model, "-n", "5", "-o", samples, "--quiet"]) == 0
    drawn = parquet.read_table(samples).column("a")
    assert drawn.type == pyarrow.timestamp("us", "UTC")
    assert drawn.null_count == 5


def test_words_that_look_missing_are_kept_in_every_format(tmp_path: Path) -> None:
    words = ["NA", "null", "", "x"] * 15
    parquet.write_table(pyarrow.table({"a": words, "b": OTHER}), tmp_path / "t.parquet")
    model = str(tmp_path / "m.nits")
    fitted = ["fit", str(tmp_path / "t.parquet"), "-o", model, "--max-steps", "2", "--quiet"]
    assert main(fitted) == 0
    for form in ("csv", "csv.gz", "tsv", "parquet"):
        samples, scores = str(tmp_path / f"s.{form}"), str(tmp_path / "scores.csv")
        assert main(["sample", model, "-n", "40", "-o", samples, "--quiet", "--seed", "1"]) == 0
        assert main(["score", model, samples, "-o", scores, "--per-column", "--quiet"]) == 0
        found = pandas.read_csv(scores)["log_density_a"]
        assert (found > np.log(0.05)).all(), form  # what was never seen has 1/62


@pytest.mark.parametrize(
    "column",
    [1.7e308 * RNG.uniform(-1, 1, 60), 5e-324 * RNG.poisson(9, 60), 2**60 + RNG.poisson(9, 60)],
)
def test_figures_of_any_numbers(tmp_path: Path, column: Any) -> None:
    table = pandas.DataFrame({"$x_1$": column, "$y": OTHER, "z\x1b": ["$", "a"] * 30})
    table.to_parquet(tmp_path / "t.parquet")
    path, model = str(tmp_path / "t.parquet"), str(tmp_path / "m.nits")
    assert main(["fit", path, "-o", model, "--max-steps", "2", "--quiet"]) == 0
    assert main(["plot", model, path, "-o", str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out").iterdir())) == 4


def test_a_number_that_turns_to_text_stops_no_score_that_ignores_it(tmp_path: Path) -> None:
    table = pandas.DataFrame({"id": range(60), "a": OTHER, "same": 7})
    table.to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m.nits")
    fitted = ["fit", str(tmp_path / "t.csv"), "-o", model, "--max-steps", "2", "--quiet"]
    assert main(fitted) == 0
    late = table.astype({"id": object, "same": object})
    late.loc[59, ["id", "same"]] = "late"
    late.to_csv(tmp_path / "late.csv", index=False)
    scores = str(tmp_path / "scores.csv")
    assert main(["score", model, str(tmp_path / "late.csv"), "-o", scores, "--quiet"]) == 0
    assert len(pandas.read_csv(scores)) == 60
