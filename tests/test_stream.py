"""Tables of many files: opened, fitted, scored and sampled piece by piece."""

import errno
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas
import pyarrow
import pytest
import torch
from pyarrow import dataset, parquet

import nits
from mixed_table import mixed, small
from nits.cli.main import main
from nits.tables.stream import parts, source

YEARS = [2020, 2021, 2022]


@pytest.fixture
def table() -> Any:
    rows = mixed(900).drop(columns="seen")
    return rows.assign(year=np.repeat(YEARS, 300).astype(np.int32))


@pytest.fixture
def folder(table: Any, tmp_path: Path) -> Path:
    """Returns a folder of folders by year, each with two files of several row groups."""
    for year in YEARS:
        place = tmp_path / "table" / f"year={year}"
        place.mkdir(parents=True)
        rows = table[table.year == year].drop(columns="year")
        rows[:150].to_parquet(place / "a.parquet", row_group_size=60)
        rows[150:].to_parquet(place / "b.parquet", row_group_size=60)
    (tmp_path / "table" / "_SUCCESS").touch()
    return tmp_path / "table"


def close(one: Any, other: Any) -> bool:
    states = one.model_.state_dict(), other.model_.state_dict()
    return all(torch.equal(t, states[1][name]) for name, t in states[0].items())


def test_a_folder_has_the_rows_of_its_files_and_the_columns_of_its_folders(
    folder: Path, table: Any
) -> None:
    with source.opened(folder) as found:
        assert len(found) == 900
        assert max(found.sizes) == 60
        read = pyarrow.concat_tables(t for k in range(len(found.sizes)) for t in found.read(k))
        assert found.file(0) == "year=2020/a.parquet"
    pandas.testing.assert_frame_equal(read.to_pandas()[list(table)], table, check_dtype=False)


def test_pieces_can_be_read_in_other_processes(folder: Path) -> None:
    with source.opened(folder) as found:
        again = pickle.loads(pickle.dumps(found))
        assert next(again.read(3)).equals(next(found.read(3)))
        assert again.digest() == found.digest()


def test_a_fit_to_a_folder_is_like_one_in_memory(folder: Path, table: Any) -> None:
    streamed = small(max_steps=60).fit(folder)
    whole = small(max_steps=60).fit(table)
    assert streamed.schema_.form == "arrow"
    assert [c.kind for c in streamed.schema_.columns] == [c.kind for c in whole.schema_.columns]
    assert streamed.score(table) == pytest.approx(whole.score(table), abs=0.25)
    assert streamed.held_out_ is not None
    assert close(streamed, small(max_steps=60).fit(folder))
    assert list(streamed.sample(3, 0).column_names) == list(table)


def test_patterns_addresses_and_arrows_own_datasets_are_tables(folder: Path, table: Any) -> None:
    expected = small().fit(folder)
    hive = dataset.dataset(folder, partitioning="hive", exclude_invalid_files=True)
    for same in (str(folder), f"{folder}/*/*.parquet", f"file://{folder}", hive):
        assert close(small().fit(same), expected)
    memory = fsspec.filesystem("memory")
    with memory.open("/kept/a.parquet", "wb") as file:
        table.to_parquet(file)
    assert small().fit("memory://kept").n_features_in_ == 7
    memory.rm("/kept", recursive=True)


def test_a_folder_of_csv_is_a_table(tmp_path: Path, table: Any) -> None:
    table[:500].to_csv(tmp_path / "a.csv", index=False)
    table[500:].to_csv(tmp_path / "b.csv", index=False)
    model = small().fit(tmp_path)
    assert [c.kind for c in model.schema_.columns] == [
        c.kind for c in small().fit(table).schema_.columns
    ]


def test_some_columns_may_be_given(folder: Path, table: Any) -> None:
    model = small(context=["year", "city"]).fit(folder)
    assert model.schema_.names == ["size", "count", "member", "rain", "price"]
    assert np.isfinite(model.score_samples(table)).all()


def test_several_members_learn_from_a_folder(folder: Path, table: Any) -> None:
    model = small(members=2, order="greedy", answers="any").fit(folder)
    assert len(model.history_["others"]) >= 1
    assert model.companion_ is not None
    assert np.isfinite(model.score(table))


def test_a_fit_that_was_interrupted_goes_on(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    expected = small(max_steps=40).fit(folder)
    found = small(max_steps=40, checkpoint=place).fit(folder)
    assert close(found, expected)
    assert close(small(max_steps=40, checkpoint=place).fit(folder), expected)
    table = parquet.read_table(folder / "year=2020" / "a.parquet")
    parquet.write_table(table.slice(1), folder / "year=2020" / "a.parquet", row_group_size=60)
    with pytest.raises(ValueError, match="is of a fit to another table"):
        small(max_steps=40, checkpoint=place).fit(folder)


def test_what_needs_all_rows_in_memory_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="sample_weight= needs a table in memory, but this one"):
        small().fit(folder, sample_weight=np.ones(900))
    with pytest.raises(ValueError, match="order='search' needs a table in memory"):
        small(order="search").fit(folder)
    with pytest.raises(ValueError, match="whiten=True needs a table in memory"):
        small(whiten=True).fit(folder)


def test_folders_that_are_no_tables_are_refused(tmp_path: Path, table: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"must hold files that end in .*, but holds none"):
        small().fit(tmp_path)
    table[["size"]].to_parquet(tmp_path / "a.parquet")
    table[["size"]].to_csv(tmp_path / "b.csv")
    with pytest.raises(ValueError, match="must be of one kind, but some are CSV and some Parquet"):
        small().fit(tmp_path)
    (tmp_path / "b.csv").unlink()
    table[["city"]].rename(columns={"city": "size"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="must have columns of the same types, but have not"):
        small().fit(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"no table")
    with pytest.raises(ValueError, match="is not a table that can be read"):
        small().fit(tmp_path)


def test_ordered_categories_must_be_declared_alike(tmp_path: Path) -> None:
    for name, levels in (("a", ["low", "high"]), ("b", ["high", "low"])):
        sizes = pandas.Categorical(["low", "high"] * 30, levels, ordered=True)
        pandas.DataFrame({"size": sizes}).to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match="must be declared alike in all files, but"):
        small().fit(tmp_path)


def test_too_many_strings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nits.tables.stream.tallies.MOST_VALUES", 50)
    words = [f"w{i % 300}" for i in range(900)]
    pandas.DataFrame({"word": words, "x": np.arange(900) % 7}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"at most .* different ones .*, but 'word' has about"):
        small().fit(tmp_path)


def test_infinite_values_are_refused(tmp_path: Path) -> None:
    pandas.DataFrame({"x": [1.0, np.inf] * 30}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'x' has 30 infinite values; drop those rows"):
        small().fit(tmp_path)


def test_threads_of_arrow_hold_no_memory_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array, held, written = np.arange(100.0), [], dataset.write_dataset

    def write(table: Any, folder: Path, **options: Any) -> None:
        held.append(table)
        written(table, folder, **options)

    monkeypatch.setattr(dataset, "write_dataset", write)
    before = sys.getrefcount(array)
    with parts.written(f"{tmp_path}/draws/") as folder:
        folder.add(pyarrow.table({"x": array}))
    assert held[0].column("x").to_pylist() == array.tolist()
    assert sys.getrefcount(array) == before


def test_the_command_line_fits_scores_and_samples_folders(
    folder: Path, table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, scores, draws = (f"{tmp_path}/{name}" for name in ("m.nits", "scores/", "draws/"))
    assert main(["fit", str(folder), "-o", model, "--max-steps", "5", "--drop", "rain"]) == 0
    assert main(["score", model, str(folder), "-o", scores]) == 0
    assert "900 rows" in capsys.readouterr().err
    read = parquet.read_table(Path(scores) / "year=2021" / "b.parquet")
    expected = nits.load(model).score_samples(table[450:600])
    np.testing.assert_allclose(read["log_density"].to_numpy(), expected, rtol=1e-6)
    assert main(["sample", model, "-n", "500", "-o", draws, "--partition-by", "year"]) == 0
    drawn = dataset.dataset(draws, partitioning="hive").to_table()
    assert drawn.num_rows == 500
    assert set(drawn.column_names) == set(table) - {"rain"}
    assert set(drawn["year"].to_pylist()) <= set(YEARS)


def test_the_command_line_refuses_what_it_cannot_write(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "m.nits")
    assert main(["fit", str(folder), "-o", model, "--max-steps", "2", "--quiet"]) == 0
    assert main(["score", model, str(folder), "-o", str(folder)]) == 2
    assert "must name a new or an empty folder, but" in capsys.readouterr().err
    assert main(["sample", model, "-n", "5", "--partition-by", "year"]) == 2
    assert "--partition-by needs a folder, but -o is -" in capsys.readouterr().err
    assert main(["sample", model, "-n", "5", "-o", f"{tmp_path}/d/", "--partition-by", "yaer"]) == 2
    assert "must name columns of the model, but 'yaer' is none" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()
    assert main(["fit", str(folder), "-o", model, "--drop", "yaer"]) == 2
    assert "there is no column 'yaer'" in capsys.readouterr().err


def test_a_folder_that_is_half_written_leaves_no_trace(tmp_path: Path) -> None:
    def interrupted() -> None:
        with parts.written(f"{tmp_path}/new/") as folder:
            folder.append("a.parquet", pyarrow.table({"x": [1]}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    left, other = tmp_path / ".new.0123.part", tmp_path / ".newer.0123.part"
    for place in (left, other):
        place.mkdir()
        (place / "a.parquet").touch()
    with parts.written(f"{tmp_path}/new/") as one:
        assert not left.exists()
        with parts.written(f"{tmp_path}/new/") as two:  # which does not take the first for left
            two.append("b.parquet", pyarrow.table({"x": [1]}))
        (tmp_path / "new").rename(tmp_path / "second")
        one.append("a.parquet", pyarrow.table({"x": [1]}))
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    assert found == [".newer.0123.part/a.parquet", "new/a.parquet", "second/b.parquet"]


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with parts.written(f"{tmp_path}/link/") as folder:
        folder.append("a.parquet", pyarrow.table({"x": [1]}))
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["a.parquet"]
    assert {path.name for path in tmp_path.iterdir()} == {"link", "real"}


def test_copies_of_csv_that_a_killed_run_left_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    (temporary / "nits-csv-0123").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "a.csv").write_text("x\n1\n2\n")
    with source.opened(tmp_path / "table") as table:
        assert len(table) == 2
        (only,) = temporary.iterdir()
        assert only.name != "nits-csv-0123"
    assert not list(temporary.iterdir())


def test_files_whose_names_differ_by_their_endings_have_scores_of_their_own(
    folder: Path, tmp_path: Path
) -> None:
    model, many = str(tmp_path / "m.nits"), tmp_path / "many"
    assert main(["fit", str(folder), "-o", model, "--max-steps", "2", "--quiet"]) == 0
    many.mkdir()
    rows = parquet.read_table(folder)
    parquet.write_table(rows[:10], many / "a.parquet")
    parquet.write_table(rows[10:30], many / "a.pq")
    assert main(["score", model, str(many), "-o", f"{tmp_path}/scores/", "--quiet"]) == 0
    sizes = {path.name: parquet.read_metadata(path) for path in (tmp_path / "scores").iterdir()}
    assert {name: one.num_rows for name, one in sizes.items()} == {
        "a.parquet": 10,
        "a.pq.parquet": 20,
    }


def test_a_folder_on_a_full_disk_is_named_in_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = str(tmp_path / "m.nits")
    assert main(["fit", str(folder), "-o", model, "--max-steps", "2", "--quiet"]) == 0

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", full)
    monkeypatch.setattr(dataset, "write_dataset", full)
    output = f"{tmp_path}/out/"
    for argv in (["score", model, str(folder)], ["sample", model, "-n", "5"]):
        capsys.readouterr()
        assert main([*argv, "-o", output, "--quiet"]) == 2
        told = capsys.readouterr().err
        assert told == f"error: {output} cannot be written: No space left on device.\n"
    assert {path.name for path in tmp_path.iterdir()} == {"m.nits", "table"}
