"""The command line: every verb on a small table; one line and exit code 2 for every mistake."""

import errno
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import nits
from mixed_table import mixed
from nits.cli.main import main
from nits.tables import csv_text, estimator, files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a model of it."""
    place = tmp_path_factory.mktemp("cli")
    mixed().to_csv(place / "table.csv", index=False)
    argv = [
        "fit",
        str(place / "table.csv"),
        "-o",
        str(place / "model.nits"),
        "--max-steps",
        "15",
        "--quiet",
    ]
    assert main(argv) == 0
    return place


def run(*argv: object) -> int:
    return main([str(part) for part in argv])


# What works.


def test_fit_writes_what_the_estimator_would(folder: Path) -> None:
    model = nits.load(folder / "model.nits")
    same = estimator.NITSDensity(max_steps=15, random_state=0).fit(folder / "table.csv")
    table = files.read_table(str(folder / "table.csv"))
    assert np.array_equal(model.score_samples(table), same.score_samples(table))


def test_options_of_fit_reach_the_estimator(folder: Path, tmp_path: Path) -> None:
    options = ["--kind", "count=categorical", "--support", "rain=0:", "--context", "city,member"]
    options += ["--drop", "seen", "--order", "rain,size,count,price", "--max-steps", "2", "--quiet"]
    assert run("fit", folder / "table.csv", "-o", tmp_path / "m.nits", *options) == 0
    model = nits.load(tmp_path / "m.nits")
    assert model.schema_.names == ["size", "count", "rain", "price"]
    assert model.context_schema_.names == ["city", "member"]
    assert model.schema_.columns[1].kind == "categorical"
    assert model.support == {"rain": (0.0, float("inf"))}
    assert model.order == ("rain", "size", "count", "price")


def test_a_greedy_order_can_be_asked_for(folder: Path, tmp_path: Path) -> None:
    options = ["--order", "greedy", "--max-steps", "2", "--quiet"]
    assert run("fit", folder / "table.csv", "-o", tmp_path / "m.nits", *options) == 0
    model = nits.load(tmp_path / "m.nits")
    assert model.order == "greedy"
    assert model.model_.order.tolist() != list(range(7))


def test_an_order_can_be_searched_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--order", "search", "--drop", "rain,seen,price,city", "--max-steps", "1"]
    assert run("fit", folder / "table.csv", "-o", tmp_path / "m.nits", *options) == 0
    capsys.readouterr()
    assert run("info", tmp_path / "m.nits") == 0
    shown = capsys.readouterr().out
    lines = [line for line in shown.splitlines() if "nats in " in line]
    assert len(lines) > 1
    assert sum(" taken " in line for line in lines) == 1


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_score_reads_and_writes_every_format(folder: Path, tmp_path: Path, suffix: str) -> None:
    table = pandas.read_csv(folder / "table.csv", parse_dates=["seen"])
    place, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    table.to_parquet(place) if suffix == ".parquet" else table.to_csv(place, index=False)
    assert run("score", folder / "model.nits", place, "-o", out, "--per-column") == 0
    found = pandas.read_parquet(out) if suffix == ".parquet" else pandas.read_csv(out)
    expected = nits.load(folder / "model.nits").score_samples(
        files.read_table(str(folder / "table.csv"))
    )
    np.testing.assert_allclose(found["log_density"], expected, rtol=1e-6)
    assert list(found.columns)[1:] == [f"log_density_{name}" for name in table.columns]


def test_scores_go_to_standard_output(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run("score", folder / "model.nits", folder / "table.csv") == 0
    captured = capfdbinary.readouterr()
    assert len(captured.out.splitlines()) == 401
    assert b"400 rows, " in captured.err


def test_columns_in_another_order_are_found_by_name(folder: Path, tmp_path: Path) -> None:
    table = pandas.read_csv(folder / "table.csv")
    table[table.columns[::-1]].assign(extra=1).to_csv(tmp_path / "turned.csv", index=False)
    for name, place in (("a.csv", folder / "table.csv"), ("b.csv", tmp_path / "turned.csv")):
        assert run("score", folder / "model.nits", place, "-o", tmp_path / name, "--quiet") == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_scoring_goes_in_batches(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of a few kilobytes as in one piece."""
    assert (
        run(
            "score",
            folder / "model.nits",
            folder / "table.csv",
            "-o",
            tmp_path / "a.csv",
            "--quiet",
        )
        == 0
    )
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 4096)
    assert (
        run(
            "score",
            folder / "model.nits",
            folder / "table.csv",
            "-o",
            tmp_path / "b.csv",
            "--quiet",
        )
        == 0
    )
    a, b = (pandas.read_csv(tmp_path / name)["log_density"] for name in ("a.csv", "b.csv"))
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_sample_draws_such_a_table(folder: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        assert (
            run("sample", folder / "model.nits", "-n", 50, "-o", tmp_path / name, "--seed", 1) == 0
        )
    drawn = pandas.read_csv(tmp_path / "a.csv")
    assert list(drawn.columns) == list(mixed().columns)
    assert set(drawn["city"].dropna()) == {"Lima", "Oslo", "Rome"}
    assert drawn["size"].isna().any()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    argv = [
        "sample",
        folder / "model.nits",
        "-n",
        5,
        "-o",
        tmp_path / "c.csv",
        "--given",
        "size=40",
        "--quiet",
    ]
    assert run(*argv) == 0
    assert (pandas.read_csv(tmp_path / "c.csv")["size"] == 40).all()


def test_any_columns_can_be_given(folder: Path, tmp_path: Path) -> None:
    told = ["--given", "city=Oslo", "--given", "count=2:8", "--given", "size > 45"]
    path = tmp_path / "d.csv"
    assert run("sample", folder / "model.nits", "-n", 30, "-o", path, *told, "--quiet") == 0
    drawn = pandas.read_csv(path)
    assert (drawn["city"] == "Oslo").all()
    assert drawn["count"].between(2, 7).all()
    assert (drawn["size"] > 45).all()


def test_probability_prints_estimate_error_and_size(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = "rain > 3 and city == 'Oslo'"
    assert run("probability", folder / "model.nits", event, "--given", "price > 2") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header == "probability,standard_error,effective_sample_size"
    found = nits.load(folder / "model.nits").given("price > 2").probability(event)
    assert tuple(map(float, row.split(","))) == tuple(found)
    assert run("probability", folder / "model.nits", "town > 3") == 2
    assert_one_line(capsys, "there is no column 'town' among size")


def test_impute_fills_in_holes(folder: Path, tmp_path: Path) -> None:
    table = pandas.read_csv(folder / "table.csv")
    for option in (["--by", "mean"], ["--draws", 2, "--seed", 1]):
        argv = ["impute", folder / "model.nits", folder / "table.csv", "-o", tmp_path / "i.csv"]
        assert run(*argv, *option, "--quiet") == 0
        found = pandas.read_csv(tmp_path / "i.csv")
        assert found.notna().all().all()
        first = found[found["draw"] == 1].drop(columns="draw") if "draw" in found else found
        assert list(first.columns) == list(table.columns)
        assert ((first == table) | table.isna()).drop(columns="seen").all().all()
    assert len(found) == 2 * len(table)


def test_complete_samples_have_no_holes(folder: Path, tmp_path: Path) -> None:
    argv = ["sample", folder / "model.nits", "-n", 200, "-o", tmp_path / "a.csv", "--complete"]
    assert run(*argv, "--quiet") == 0
    assert pandas.read_csv(tmp_path / "a.csv").notna().all().all()


def test_info_tells_schema_and_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", folder / "model.nits") == 0
    out = capsys.readouterr().out
    assert "a density of 7 columns" in out
    assert "city    categorical  3 categories, 9.3% missing\n" in out
    assert "rain    continuous   real numbers with 1 frequent value, never negative\n" in out
    assert "price   integer      multiples of 0.1" in out
    assert "held-out rows: " in out


def test_plot_draws_four_figures(folder: Path, tmp_path: Path) -> None:
    assert run("plot", folder / "model.nits", folder / "table.csv", "-o", tmp_path / "plots") == 0
    found = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert found == ["calibration.png", "marginals.png", "pairs.png", "training.png"]
    assert all((tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG") for name in found)


def test_standard_input(folder: Path, tmp_path: Path) -> None:
    data = (folder / "table.csv").read_bytes()
    argv = [sys.executable, "-m", "nits", "score", str(folder / "model.nits"), "-", "--quiet"]
    done = subprocess.run(argv, input=data, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 401
    assert done.stderr == b""


def test_help_is_quick() -> None:
    """No torch, no pandas: half a second is promised; two are allowed here, for busy machines."""
    code = (
        "import sys, nits.cli.main, nits.cli.verbs; nits.cli.verbs.parser(); "
        "print('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert time.monotonic() - started < 2


# What does not.


def written(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def numbers(tmp_path: Path, change: Callable[[Any], Any]) -> Path:
    frame = pandas.DataFrame({"a": np.arange(30.0) ** 1.1, "b": np.arange(30) % 7})
    change(frame).to_csv(tmp_path / "in.csv", index=False)
    return tmp_path / "in.csv"


BAD_TABLES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "empty file": (lambda p: written(p / "in.csv", ""), "Empty CSV file"),
    "header only": (
        lambda p: written(p / "in.csv", "a,b\n"),
        "must have at least one row below its header, but has none.",
    ),
    "one row": (lambda p: written(p / "in.csv", "a,b\n1,2\n"), "1 sample"),
    "ragged rows": (lambda p: written(p / "in.csv", "a,b\n1,2\n3\n"), "Expected 2 columns, got 1"),
    "infinite": (
        lambda p: numbers(p, lambda f: f.assign(a=[np.inf, *range(29)])),
        "1 infinite values",
    ),
    "identifiers": (
        lambda p: written(p / "in.csv", "a\n" + "".join(f"id{i}\n" for i in range(1500))),
        "a column must be left to model, but there is none; set aside: "
        "'a' (an identifier: all 1500 values differ).",
    ),
    "repeated name": (
        lambda p: written(p / "in.csv", "a,a\n1,2\n3,4\n"),
        "'a' occurs twice; rename one",
    ),
    "binary file": (
        lambda p: written(p / "in.csv", bytes(range(256)) * 20),
        "is not a table that can be read",
    ),
    "wrong delimiter": (
        lambda p: written(p / "in.csv", "a;b\n1;2\n3;4\n"),
        "must be separated by commas, or by tabs if it is a .tsv, "
        "but seems to be separated by ';'; convert it.",
    ),
    "tabs in a .csv": (
        lambda p: written(p / "in.csv", "a\tb\n1\t2\n3\t4\n"),
        "seems to be separated by '\\t'",
    ),
    "zeros": (lambda p: written(p / "in.csv", bytes(5000)), "error: "),
    "not gzip": (lambda p: written(p / "in.csv.gz", "a,b\n1,2\n"), "error: "),
    "cut gzip": (
        lambda p: written(p / "in.csv.gz", gzip.compress(b"a,b\n1,2\n" * 999)[:-20]),
        "error: ",
    ),
    "not parquet": (
        lambda p: written(p / "in.parquet", "a,b\n1,2\n"),
        "is not a table that can be read",
    ),
    "wrong ending": (lambda p: written(p / "in.xlsx", "a,b\n1,2\n"), "must end in .csv, .csv.gz"),
    "no such file": (lambda p: p / "none.csv", "No such file"),
    "a folder": (lambda p: p, "images, but holds none"),
    "wrong encoding": (
        lambda p: written(p / "in.csv", "a,b\né,1\nü,2\n".encode("latin-1")),
        "error: ",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, message = BAD_TABLES[name]
    table = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert run("fit", table, "-o", tmp_path / "m.nits", "--max-steps", 1, "--quiet") == 2
    assert_one_line(capsys, message)
    assert sorted(tmp_path.iterdir()) == before


def assert_one_line(capsys: pytest.CaptureFixture[str], message: str) -> None:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


BAD_OPTIONS: dict[str, tuple[list[str], str]] = {
    "unknown kind": (
        ["--kind", "size=number"],
        "must be continuous, integer, ordered or categorical, but is 'number'",
    ),
    "kind of no column": (["--kind", "weight=integer"], "there is no column 'weight' among size"),
    "strings as integers": (
        ["--kind", "city=integer"],
        "'city' must be categorical, since it holds strings, but was named integer",
    ),
    "support of no column": (["--support", "weight=0:1"], "there is no column 'weight' among size"),
    "support that rows leave": (
        ["--support", "rain=5:100"],
        "column 'rain': the values must lie in the support [5, 100], but go from 0 to ",
    ),
    "support turned round": (["--support", "rain=5:1"], "low must be below high"),
    "context of no column": (["--context", "weight"], "there is no column 'weight' among size"),
    "all given": (
        ["--context", "size,count,city,member,rain,seen,price"],
        "context must leave a column to model, but has all",
    ),
    "drop of no column": (["--drop", "weight"], "there is no column 'weight' among size"),
    "order repeats a column": (["--order", "size,size"], "must name a column once, but has 'size'"),
    "validation of everything": (
        ["--validation-fraction", "1.5"],
        "validation must be rows or a share",
    ),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_one_line(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, message = BAD_OPTIONS[name]
    argv = [
        "fit",
        folder / "table.csv",
        "-o",
        tmp_path / "m.nits",
        "--max-steps",
        1,
        "--quiet",
        *options,
    ]
    assert run(*argv) == 2
    assert_one_line(capsys, message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "argv",
    [
        ["fit", "t.csv"],
        ["fit", "t.csv", "-o", "m", "--max-minutes", "-1"],
        ["fit", "t.csv", "-o", "m", "--max-steps", "0"],
        ["fit", "t.csv", "-o", "m", "--kind", "a"],
        ["fit", "t.csv", "-o", "m", "--support", "a=1"],
        ["fit", "t.csv", "-o", "m", "--support", "a=x:y"],
        ["sample", "m.nits", "-n", "0"],
        ["sample", "m.nits", "-n", "many"],
        ["dance"],
        [],
    ],
)
def test_a_mistyped_command_exits_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert "error: " in capsys.readouterr().err


def changed(folder: Path, tmp_path: Path, change: Callable[[Any], Any]) -> Path:
    change(pandas.read_csv(folder / "table.csv")).to_csv(tmp_path / "in.csv", index=False)
    return tmp_path / "in.csv"


BAD_SCORES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "missing column": (
        lambda f: f.drop(columns="rain"),
        "the table must have the column 'rain', but has size",
    ),
    "two missing columns": (
        lambda f: f.drop(columns=["rain", "city"]),
        "the table must have the columns 'city' and 'rain', but has size",
    ),
    "text for a number": (
        lambda f: f.assign(rain="wet"),
        "in.csv: column 'rain' must hold double values, as in training, but has 'wet'; convert it.",
    ),
    "text for a number, and infinity": (
        lambda f: f.assign(rain="wet", size=f["size"].where(f.index > 1, float("inf"))),
        "but has 'wet'; column 'size' has 2 infinite values; convert it.",
    ),
    "no rows": (lambda f: f[:0], "must have at least one row to score, but has none."),
}


@pytest.mark.parametrize("name", BAD_SCORES)
def test_a_table_that_does_not_fit_is_one_line(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, message = BAD_SCORES[name]
    table = changed(folder, tmp_path, change)
    assert run("score", folder / "model.nits", table, "-o", tmp_path / "out.csv", "--quiet") == 2
    assert_one_line(capsys, message)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


UNSEEN: dict[str, Callable[[Any], Any]] = {
    "a new category": lambda f: f.assign(city="Paris"),
    "missing values where there were none": lambda f: f.assign(rain=np.nan),
    "off the grid": lambda f: f.assign(price=f["price"] + 0.0371),
    "half a child": lambda f: f.assign(count=f["count"] + 0.5),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_was_never_seen_is_counted_and_no_error(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = changed(folder, tmp_path, UNSEEN[name])
    assert run("score", folder / "model.nits", table, "-o", tmp_path / "out.csv") == 0
    assert np.isfinite(pandas.read_csv(tmp_path / "out.csv")["log_density"]).all()
    assert ", 400 rows with something never seen in training\n" in capsys.readouterr().err


def odd(rows: int = 120) -> Any:
    """A constant, an empty, an identifier, an index and a date column beside two ordinary ones."""
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "Unnamed: 0": np.arange(rows),
            "country": "Peru",
            "x": rng.normal(size=rows),
            "note": np.full(rows, np.nan),
            "id": [f"u{i:05d}" for i in range(rows)],
            "day": np.datetime64("2024-01-01") + rng.integers(0, 900, rows),
            "kind": rng.choice(["a", "b"], rows),
        }
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_odd_table_needs_one_command_and_gets_one_notice(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model, drawn = (tmp_path / f"{n}{suffix}" for n in ("in", "m", "out"))
    odd().to_parquet(table) if suffix == ".parquet" else odd().to_csv(table, index=False)
    assert run("fit", table, "-o", model, "--max-steps", 2, "--quiet") == 0
    assert capsys.readouterr().err == (
        "note: set aside: 'Unnamed: 0' (a saved index), 'country' (constant at 'Peru'), "
        "'note' (empty), 'id' (an identifier: all 120 values differ).\n"
    )
    assert run("sample", model, "-n", 9, "-o", drawn, "--quiet") == 0
    found = pandas.read_parquet(drawn) if suffix == ".parquet" else pandas.read_csv(drawn)
    assert list(found.columns) == list(odd().columns)
    assert (found["country"] == "Peru").all()
    assert found["note"].isna().all()
    assert found["id"].is_unique
    assert run("score", model, table, "-o", tmp_path / f"s{suffix}", "--quiet") == 0
    assert capsys.readouterr().err == ""
    odd().assign(country="Chile").to_csv(tmp_path / "other.csv", index=False)
    assert run("score", model, tmp_path / "other.csv", "-o", tmp_path / "s.csv", "--quiet") == 0
    assert capsys.readouterr().err == (
        "note: column 'country' was constant in training, but differs in 120 rows here.\n"
    )


def test_what_cannot_be_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, message in (
        ("town=Oslo", "there is no column 'town' among size"),
        ("city=Paris", "'city' must be one of Lima, Oslo, Rome, but is given 'Paris'."),
        ("size=tall", "'size' must be given a number, but is given 'tall'."),
        ("size=9:3", "the range of 'size' must hold a value, but size >= 9 and < 3 has none."),
        ("size >", "a condition must look like"),
    ):
        assert run("sample", folder / "model.nits", "-n", 2, "--given", given, "--quiet") == 2
        assert_one_line(capsys, message)


def test_models_that_are_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in (["info"], ["sample", "-n", "1"], ["score", str(folder / "table.csv")]):
        for model, message in (
            (folder / "table.csv", "is not a model file"),
            (tmp_path / "no", "No such file"),
        ):
            assert run(verb[0], model, *verb[1:]) == 2
            assert_one_line(capsys, message)


def test_outputs_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = folder / "no" / "such" / "folder"
    assert run("fit", folder / "table.csv", "-o", nowhere / "m.nits", "--quiet") == 2
    assert_one_line(capsys, "does not exist; create it")
    assert run("sample", folder / "model.nits", "-n", 2, "-o", nowhere / "s.csv", "--quiet") == 2
    assert_one_line(capsys, "does not exist; create it")
    assert (
        run("score", folder / "model.nits", folder / "table.csv", "-o", folder / "s.txt", "--quiet")
        == 2
    )
    assert_one_line(capsys, "must end in .csv")


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_nothing_behind(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(files.Writer, "write", full_disk)
    for argv in (
        ["sample", folder / "model.nits", "-n", 2],
        ["score", folder / "model.nits", folder / "table.csv"],
    ):
        assert run(*argv, "-o", tmp_path / "out.csv", "--quiet") == 2
        assert_one_line(capsys, "No space left on device")
    monkeypatch.setattr(os, "fsync", full_disk)
    argv = ["fit", folder / "table.csv", "-o", tmp_path / "m.nits", "--max-steps", 1, "--quiet"]
    assert run(*argv) == 2
    assert_one_line(capsys, "No space left on device")
    assert not list(tmp_path.iterdir())


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_leaves_nothing_behind(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, table = folder / "model.nits", folder / "table.csv"
    monkeypatch.setattr(estimator.NITSDensity, "score_samples", interrupt)
    monkeypatch.setattr(estimator.NITSDensity, "sample", interrupt)
    monkeypatch.setattr("nits.cli.plots.marginals", interrupt)
    monkeypatch.setattr(files, "read_table", interrupt)
    for argv in (
        ["fit", table, "-o", tmp_path / "m.nits"],
        ["score", model, table, "-o", tmp_path / "s.csv"],
        ["sample", model, "-n", 3, "-o", tmp_path / "s.csv"],
        ["plot", model, table, "-o", tmp_path],
    ):
        assert run(*argv, *([] if argv[0] == "plot" else ["--quiet"])) == 2
        assert_one_line(capsys, "interrupted; nothing was written.")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_during_training_keeps_what_was_learned(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nits.training.team import Team

    advance, calls = Team.advance, []

    def stopped(self: Any, progress: float) -> None:
        calls.append(progress)
        if len(calls) == 5:
            raise KeyboardInterrupt
        advance(self, progress)

    monkeypatch.setattr(Team, "advance", stopped)
    assert (
        run("fit", folder / "table.csv", "-o", tmp_path / "m.nits", "--max-steps", 50, "--quiet")
        == 0
    )
    assert len(calls) == 5
    assert np.isfinite(nits.load(tmp_path / "m.nits").score(mixed()))


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m nits sample {folder / 'model.nits'} -n 20000 --quiet | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.startswith('"size"')
    assert done.stderr == ""


def test_missing_libraries_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "nits.cli.commands.info", None)
    assert run("info", folder / "model.nits") == 2
    assert_one_line(capsys, "is not installed; pip install 'nits[table,plot,report]'.")


def typed(rows: int = 200) -> pyarrow.Table:
    """Types of Parquet, most of them with missing values."""
    rng, hole = np.random.default_rng(0), np.arange(rows) % 9 == 0
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, rows)
    times = np.datetime64("2021-01-01", "us") + rng.integers(0, 10**13, rows)
    cents = [Decimal(int(k)) / 100 for k in rng.integers(0, 9999, rows)]
    return pyarrow.table(
        {
            "yes": pyarrow.array(rng.random(rows) < 0.4, mask=hole),
            "day": pyarrow.array(days, type=pyarrow.date32(), mask=hole),
            "price": pyarrow.array(cents, type=pyarrow.decimal128(10, 2)),
            "at": pyarrow.array(times, type=pyarrow.timestamp("us", tz="Europe/Oslo")),
            "wait": pyarrow.array(rng.integers(0, 900, rows), type=pyarrow.duration("s")),
            "tiny": pyarrow.array(rng.integers(-9, 120, rows), type=pyarrow.int8(), mask=hole),
            "large": pyarrow.array(rng.integers(2**63, 2**64 - 1, rows, dtype=np.uint64)),
            "value": pyarrow.array(rng.normal(size=rows).astype(np.float32), mask=hole),
            "kind": pyarrow.array(rng.choice(["a", "b"], rows), mask=hole).dictionary_encode(),
        }
    )


def test_parquet_keeps_its_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As other programs write them; neither training rows nor samples are unseen."""
    source, drawn, model = (tmp_path / name for name in ("in.parquet", "out.parquet", "m.nits"))
    parquet.write_table(typed(), source)
    assert run("fit", source, "-o", model, "--max-steps", 2, "--quiet") == 0
    assert run("sample", model, "-n", 500, "-o", drawn, "--quiet") == 0
    found = parquet.read_table(drawn)
    assert found.schema.types == typed().schema.types
    assert [c.null_count > 0 for c in found.columns] == [c.null_count > 0 for c in typed().columns]
    capsys.readouterr()
    for table in (source, drawn):
        assert run("score", model, table, "-o", tmp_path / "s.csv") == 0
        assert "never seen" not in capsys.readouterr().err


def test_csv_keeps_what_it_can_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, drawn, model = (tmp_path / name for name in ("in.csv", "out.csv", "m.nits"))
    names = ["yes", "day", "price", "tiny", "large", "value"]
    written_as = typed().select(names).to_pandas().astype({"tiny": "Int8"})
    written_as.to_csv(source, index=False)
    assert run("fit", source, "-o", model, "--max-steps", 2, "--quiet") == 0
    assert run("sample", model, "-n", 500, "-o", drawn, "--quiet") == 0
    found = pandas.read_csv(drawn)
    assert set(found["yes"].dropna().astype(str).str.lower()) == {"true", "false"}
    assert found["day"].dropna().str.fullmatch(r"20\d\d-\d\d-\d\d").all()
    assert (found["tiny"].dropna() % 1 == 0).all()
    assert found["large"].dtype == np.uint64
    capsys.readouterr()
    for table in (source, drawn):
        assert run("score", model, table, "-o", tmp_path / "s.csv") == 0
        assert "never seen" not in capsys.readouterr().err


def test_samples_of_a_model_of_a_polars_table_are_written(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"a": np.random.default_rng(0).normal(size=60), "b": ["x", "y"] * 30})
    nits.NITSDensity(max_steps=2, random_state=0).fit(table).save(tmp_path / "m.nits")
    out = tmp_path / "s.csv"
    assert main(["sample", str(tmp_path / "m.nits"), "-n", "7", "-o", str(out), "--quiet"]) == 0
    assert len(out.read_text().splitlines()) == 8
