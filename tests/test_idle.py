"""Columns set aside: one notice of all of them, brought back in samples, kept in the file."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import nits
from mixed_table import small
from nits import NITSDensity
from nits.cli.main import main
from nits.tables import frames
from nits.tables.idle import Idle
from nits.tables.validate import TableWarning

N = 60
NOTICE = (
    "set aside: 'row' (a saved index), 'country' (constant at 'Peru'), 'year' (constant at 2024), "
    "'since' (constant at 2024-05-01T00:00:00.000000000), 'note' (empty), "
    "'key' (an identifier: all 60 values differ), 'person' (an identifier: all 60 values differ)."
)


def odd(rows: int = N) -> Any:
    """Two ordinary columns among seven with nothing to model."""
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "row": np.arange(rows),
            "country": "Peru",
            "x": rng.normal(size=rows),
            "year": np.full(rows, 2024, np.int16),
            "since": np.full(rows, np.datetime64("2024-05-01", "ns")),
            "note": np.full(rows, np.nan),
            "kind": rng.choice(["a", "b"], rows),
            "key": [f"u{i:05d}" for i in rng.permutation(rows)],
            "person": rng.permutation(rows) + 1000,
        }
    )


def silent(**options: Any) -> NITSDensity:
    return small(**{"max_steps": 2, **options})


@pytest.fixture(scope="module")
def fitted() -> NITSDensity:
    with pytest.warns(TableWarning):
        return silent().fit(odd())


def test_one_notice_lists_all_of_them() -> None:
    with pytest.warns(TableWarning) as given:
        silent().fit(odd())
    assert [str(one.message) for one in given] == [NOTICE]


def test_an_ordinary_table_has_no_notice() -> None:
    model = silent().fit(odd()[["x", "kind"]])
    assert not model.idle_.columns
    assert model.idle_.notice() == ""


def test_the_rest_is_modelled(fitted: NITSDensity) -> None:
    assert fitted.schema_.names == ["x", "kind"]
    assert fitted.score_samples(odd(), per_column=True).shape == (N, 2)


def test_samples_bring_them_back_in_the_tables_order(fitted: NITSDensity) -> None:
    drawn = fitted.sample(200, random_state=0)
    assert list(drawn.columns) == list(odd().columns)
    assert (drawn["country"] == "Peru").all()
    assert (drawn["year"] == 2024).all()
    assert (drawn["since"] == pandas.Timestamp("2024-05-01")).all()
    assert drawn["note"].isna().all()
    assert drawn["row"].tolist() == list(range(200))
    assert drawn["person"].tolist() == list(range(1000, 1200))
    assert drawn["key"].is_unique
    assert drawn.dtypes.to_dict() == odd().dtypes.to_dict()


@pytest.mark.parametrize("form", ["arrow", "polars", "numpy"])
def test_other_libraries_tables_get_them_back_too(form: str) -> None:
    table: Any = odd()
    if form == "arrow":
        table = pyarrow.Table.from_pandas(table, preserve_index=False)
    elif form == "polars":
        table = polars.from_pandas(table)
    else:
        table = np.column_stack([np.full(N, 7.0), table["x"], np.full(N, np.nan)])
    with pytest.warns(TableWarning, match="set aside: "):
        model = silent().fit(table)
    drawn = model.sample(5, random_state=0)
    assert type(drawn) is type(table)
    if form == "numpy":
        assert drawn.shape == (5, 3)
        assert (drawn[:, 0] == 7).all()
        assert np.isnan(drawn[:, 2]).all()
    else:
        back = frames.read(drawn).columns
        expected = frames.read(table).columns
        assert {n: v.dtype for n, v in back.items()} == {n: v.dtype for n, v in expected.items()}
        assert back["country"].known.tolist() == ["Peru"] * 5
        assert back["since"].known[0] == expected["since"].known[0]


def test_identifiers_outgrow_a_small_type() -> None:
    table = pandas.DataFrame({"x": np.random.default_rng(0).normal(size=100)})
    table["id"] = np.arange(100, dtype=np.int8)
    with pytest.warns(TableWarning, match=r"set aside: 'id' \(a saved index\)\."):
        model = silent().fit(table)
    assert model.sample(300, random_state=0)["id"].tolist() == list(range(300))


def test_scoring_needs_none_of_them(fitted: NITSDensity) -> None:
    expected = fitted.score_samples(odd())
    assert np.array_equal(fitted.score_samples(odd()[["kind", "x"]]), expected)


def test_a_constant_that_differs_is_told(fitted: NITSDensity) -> None:
    table = odd()
    table.loc[:2, "country"] = "Chile"
    table.loc[3, "year"] = 2025
    table.loc[5:8, "since"] = pandas.Timestamp("2024-05-02")
    with pytest.warns(TableWarning) as given:
        scores = fitted.score_samples(table)
    assert [str(one.message) for one in given] == [
        "column 'country' was constant in training, but differs in 3 rows here.",
        "column 'year' was constant in training, but differs in 1 rows here.",
        "column 'since' was constant in training, but differs in 4 rows here.",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(scores, fitted.score_samples(odd()))


def test_a_retyped_constant_does_not_differ(fitted: NITSDensity) -> None:
    table = odd()
    table["year"] = table["year"].astype(float)
    table["since"] = table["since"].astype("datetime64[s]")
    table["country"] = table["country"].astype("category")
    assert np.isfinite(fitted.score_samples(table)).all()


def test_the_file_keeps_them(fitted: NITSDensity, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.nits")
    again = nits.load(tmp_path / "m.nits")
    assert again.idle_ == fitted.idle_
    assert again.idle_.notice() == NOTICE
    pandas.testing.assert_frame_equal(
        again.sample(20, random_state=1), fitted.sample(20, random_state=1)
    )
    with pytest.warns(TableWarning, match="'country' was constant in training"):
        again.score_samples(odd().assign(country="Chile"))


def test_json_keeps_them() -> None:
    """Of every type that a constant may have, and categoricals with their levels."""
    table = odd().assign(
        yes=True,
        share=0.1,
        large=np.full(N, 2**64 - 1, np.uint64),
        wait=np.full(N, np.timedelta64(90, "s")),
        grade=pandas.Categorical(["b"] * N, ["a", "b", "c"], ordered=True),
    )
    idle = Idle.of(frames.read(table), [])
    assert len(idle.columns) == 12
    again = Idle.from_dict(json.loads(json.dumps(idle.to_dict(), allow_nan=False)))
    assert again == idle
    drawn = frames.write(frames.Frame(again.drawn(N), "pandas"))
    same = ["country", "year", "since", "note", "yes", "share", "large", "wait", "grade"]
    pandas.testing.assert_frame_equal(drawn[same], table[same])


def test_what_the_user_names_is_not_set_aside() -> None:
    table = odd()[["x", "row"]]
    assert silent(kinds={"row": "integer"}).fit(table).schema_.names == ["x", "row"]
    assert silent(support={"row": (0, 99)}).fit(table).schema_.names == ["x", "row"]


def test_a_constant_with_holes_is_modelled() -> None:
    table = pandas.DataFrame({"flag": np.where(np.arange(200) % 4 == 0, 1.0, np.nan)})
    model = silent(max_steps=30).fit(table)
    shares = np.exp(model.score_samples(pandas.DataFrame({"flag": [1.0, np.nan, 2.0]})))
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    assert shares[0] == pytest.approx(0.25, abs=0.05)
    assert set(model.sample(100, random_state=0)["flag"].dropna()) == {1.0}


def test_a_context_may_be_set_aside() -> None:
    with pytest.warns(TableWarning, match=r"set aside: 'country' \(constant at 'Peru'\)\."):
        model = silent(context=["country", "kind"]).fit(odd()[["country", "x", "kind"]])
    assert model.context_schema_.names == ["kind"]
    drawn = model.sample(2, random_state=0, given={"kind": ["a", "b"]})
    assert list(drawn.columns) == ["x"]
    assert len(drawn) == 4


def test_something_must_be_left() -> None:
    message = (
        "a column must be left to model, but there is none; set aside: 'country' "
        "(constant at 'Peru'), 'note' (empty)."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        silent().fit(odd()[["country", "note"]])
    with pytest.raises(ValueError, match="a column must be left to model, but there is none; set"):
        silent(context=["x"]).fit(odd()[["country", "x"]])


def test_a_constant_is_the_same_in_a_file_that_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"year": 2013, "x": rng.normal(size=80)})
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(TableWarning, match="year"):
        model = small(max_steps=2).fit(str(tmp_path / "t.csv"))
    model.save(tmp_path / "m.nits")
    paths = [str(tmp_path / name) for name in ("m.nits", "t.csv", "s.csv")]
    assert main(["score", *paths[:2], "-o", paths[2]]) == 0
    assert "differs" not in capsys.readouterr().err
    model.score_samples(table.astype({"year": str}))  # no warning: it spells the same number
    with pytest.warns(TableWarning, match="differs in 80 rows"):
        model.score_samples(table.assign(year="2014"))
