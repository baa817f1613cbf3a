"""The command line and its files: nothing that was read or learned is lost, and nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet as pq
import pytest

import nits
from mixed_table import mixed
from nits.cli.main import main
from nits.tables.estimator import NITSDensity
from nits.training.loop import Loop
from test_resume import same

COLUMNS = ["size", "count", "city"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli")
    mixed(120)[COLUMNS].to_csv(place / "t.csv", index=False)
    assert run("fit", place / "t.csv", "-o", place / "m.nits", "--max-steps", 3, "--quiet") == 0
    return place


def run(*argv: object) -> int:
    return main([str(part) for part in argv])


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


@pytest.mark.parametrize(
    ("command", "same"),
    [
        ("fit - -o t.csv --max-steps 3 <t.csv", "that of standard input, which is read, but t.csv"),
        (
            "score m.nits - -o link.csv <t.csv",
            "that of standard input, which is read, but link.csv",
        ),
        ("score m.nits t.csv >>t.csv", "t.csv, which is read, but standard output"),
        ("sample m.nits -n 3 >>hard.nits", "m.nits, which is read, but standard output"),
        (
            "impute m.nits - <t.csv >>t.csv",
            "that of standard input, which is read, but standard ou",
        ),
    ],
)
def test_what_a_shell_reads_is_not_replaced(
    folder: Path, tmp_path: Path, command: str, same: str
) -> None:
    for name in ("t.csv", "m.nits"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "link.csv").symlink_to("t.csv")
    os.link(tmp_path / "m.nits", tmp_path / "hard.nits")
    whole = f"{sys.executable} -m nits {command}"
    done = subprocess.run(whole, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"error: -o must name another file than {same}" in done.stderr
    for name in ("t.csv", "m.nits"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_what_is_read_is_not_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = tmp_path / "t.csv", tmp_path / "m.nits"
    table.write_bytes((folder / "t.csv").read_bytes())
    model.write_bytes((folder / "m.nits").read_bytes())
    (tmp_path / "link.csv").symlink_to("t.csv")
    os.link(model, tmp_path / "hard.csv")
    before = names(tmp_path), table.read_bytes(), model.read_bytes()
    for argv in (
        ["fit", table, "-o", table],
        ["fit", table, "-o", tmp_path / "link.csv"],
        ["score", model, table, "-o", table],
        ["score", model, table, "-o", tmp_path / "x" / ".." / "t.csv"],
        ["score", model, tmp_path / "link.csv", "-o", table],
        ["sample", model, "-n", 3, "-o", tmp_path / "hard.csv"],
        ["impute", model, table, "-o", table],
        ["outliers", model, table, "-o", tmp_path / "link.csv"],
        ["predict", model, table, "-o", table],
        ["report", model, table, "-o", tmp_path / "hard.csv"],
    ):
        (tmp_path / "x").mkdir()
        assert run(*argv) == 2
        (tmp_path / "x").rmdir()
        assert "-o must name another file than" in capsys.readouterr().err
    assert (names(tmp_path), table.read_bytes(), model.read_bytes()) == before


def test_a_file_of_a_folder_that_is_read_is_not_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for name in ("a.csv", "b.csv"):
        (many / name).write_bytes((folder / "t.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to("many/b.csv")
    for argv in (
        ["fit", many, "-o", many / "a.csv"],
        ["score", folder / "m.nits", many, "-o", many / "b.csv"],
        ["score", folder / "m.nits", f"{many}/*.csv", "-o", tmp_path / "link.csv"],
        ["score", folder / "m.nits", f"file://{many}/b.csv", "-o", tmp_path / "link.csv"],
    ):
        assert run(*argv) == 2
        assert "which is read, but" in capsys.readouterr().err
    whole = (folder / "t.csv").read_bytes()
    assert [(many / name).read_bytes() for name in ("a.csv", "b.csv")] == [whole, whole]


def test_a_checkpoint_and_an_output_of_one_name_are_refused_before_training(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "m.nits"
    argv = ["fit", folder / "t.csv", "-o", output, "--checkpoint", f"{tmp_path}/./m.nits"]
    assert run(*argv) == 2
    assert "-o must name another file than --checkpoint" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_a_file_that_is_not_there_is_named(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score", folder / "m.nits", name) == 2
    assert capsys.readouterr().err == f"error: {name}: No such file or directory.\n"
    assert run("info", name) == 2
    assert capsys.readouterr().err == f"error: {name}: No such file or directory.\n"


def test_an_output_that_cannot_be_written_is_found_before_training(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr(NITSDensity, "fit", never)
    (tmp_path / "folder").mkdir()
    for place, words in (("folder", "is a folder"), ("none/m.nits", "does not exist; create it.")):
        assert run("fit", folder / "t.csv", "-o", tmp_path / place) == 2
        assert words in capsys.readouterr().err
    monkeypatch.setattr("os.open", _read_only(os.open))
    assert run("fit", folder / "t.csv", "-o", tmp_path / "m.nits") == 2
    assert "m.nits cannot be written: Read-only file system." in capsys.readouterr().err


def _read_only(before: Any) -> Any:
    def opened(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(30, "Read-only file system")
        return int(before(path, flags, *rest, **more))

    return opened


def test_a_model_whose_file_fails_is_saved_elsewhere(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    save = NITSDensity.save

    def full(self: NITSDensity, path: str | Path) -> None:
        if "out" in Path(path).parts:
            raise OSError(28, "No space left on device")
        save(self, path)

    monkeypatch.setattr(NITSDensity, "save", full)
    argv = ["fit", folder / "t.csv", "-o", tmp_path / "out" / "m.nits", "--max-steps", 3]
    assert run(*argv, "--quiet") == 2
    told = capsys.readouterr().err
    assert "could not be written (No space left on device); the model is in" in told
    (rescued,) = tmp_path.glob("rescued-*-m.nits")
    assert str(rescued) in told
    assert same(nits.load(rescued), nits.load(folder / "m.nits"))
    assert names(tmp_path / "out") == []


def test_a_killed_run_leaves_nothing_after_the_next(folder: Path, tmp_path: Path) -> None:
    for name in (".m.nits.0a1b.part", ".s.csv.0a1b.part"):
        (tmp_path / name).write_bytes(b"half")
    table, model = folder / "t.csv", tmp_path / "m.nits"
    assert run("fit", table, "-o", model, "--max-steps", 2, "--quiet") == 0
    assert run("score", model, table, "-o", tmp_path / "s.csv", "--quiet") == 0
    assert names(tmp_path) == ["m.nits", "s.csv"]


def test_the_same_model_has_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    model = nits.load(folder / "m.nits")
    for k in range(4):  # safetensors alone would order its metadata at random
        model.save(tmp_path / f"{k}.nits")
        assert (tmp_path / f"{k}.nits").read_bytes() == (folder / "m.nits").read_bytes()


def test_no_time_for_a_step_is_no_error(folder: Path, tmp_path: Path) -> None:
    argv = ["fit", folder / "t.csv", "-o", tmp_path / "m.nits", "--max-minutes", "1e-9"]
    assert run(*argv, "--members", 1, "--quiet") == 0
    assert run("info", tmp_path / "m.nits") == 0


def test_a_fit_goes_on_from_its_checkpoint(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["fit", folder / "t.csv", "-o", tmp_path / "m.nits", "--max-steps", 3, "--quiet"]
    assert run(*argv, "--resume") == 2
    assert "--resume needs a checkpoint, but there is no --checkpoint" in capsys.readouterr().err
    kept = ["--checkpoint", tmp_path / "kept"]
    assert run(*argv, *kept, "--resume") == 2
    assert "kept; check the spelling, or leave out --resume." in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        _terminated(patch, after=2)
        assert run(*argv, *kept) == 0
    assert "note: the same command goes on from its checkpoint." in capsys.readouterr().err
    assert not same(nits.load(tmp_path / "m.nits"), nits.load(folder / "m.nits"))
    assert run(*argv, *kept, "--resume") == 0
    assert same(nits.load(tmp_path / "m.nits"), nits.load(folder / "m.nits"))


def _terminated(patch: pytest.MonkeyPatch, after: int) -> None:
    """Sends SIGTERM in the middle of a step."""
    counts = Loop.counts

    def stepped(self: Loop, value: float, norm: float) -> bool:
        if self.step + 1 == after:
            os.kill(os.getpid(), signal.SIGTERM)
        return counts(self, value, norm)

    patch.setattr(Loop, "counts", stepped)


@pytest.mark.skipif(os.name == "nt", reason="posix signals")
def test_sigterm_keeps_what_was_learned(folder: Path, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        _terminated(patch, after=2)
        argv = ["fit", folder / "t.csv", "-o", tmp_path / "m.nits", "--max-steps", 90, "--quiet"]
        assert run(*argv) == 0
    assert nits.load(tmp_path / "m.nits").history_["stopped"] == "interrupted"
    assert signal.getsignal(signal.SIGTERM) is before


def test_interrupted_samples_leave_nothing_and_say_one_line(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nits.cli.commands.sample.AT_ONCE", 10)
    sample = NITSDensity.sample
    drawn = [0]

    def interrupted(self: NITSDensity, *args: Any, **options: Any) -> Any:
        drawn[0] += 1
        if drawn[0] % 3 == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        return sample(self, *args, **options)

    monkeypatch.setattr(NITSDensity, "sample", interrupted)
    for name in ("s.parquet", "s.csv", "s.csv.gz"):
        argv = ["sample", folder / "m.nits", "-n", 100, "-o", tmp_path / name, "--quiet"]
        assert run(*argv) == 2
        assert capsys.readouterr().err == "error: interrupted; nothing was written.\n"
    assert names(tmp_path) == []


def test_a_closed_standard_output_is_one_line(folder: Path) -> None:
    command = f"{sys.executable} -m nits sample {folder / 'm.nits'} -n 3 >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "error: standard output is closed, so nothing can go there; name a file." in done.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_imputing_keeps_columns_that_the_model_does_not_read(
    folder: Path, tmp_path: Path, ending: str
) -> None:
    table = mixed(40)[COLUMNS].astype({"count": "Int64"})
    table.loc[3, "count"] = None
    table.insert(1, "id", [f"r{k}" for k in range(40)])
    path, filled = tmp_path / f"t.{ending}", tmp_path / f"filled.{ending}"
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
        pq.write_table(arrow.append_column("list", pyarrow.array([[k] for k in range(40)])), path)
    assert run("impute", folder / "m.nits", path, "-o", filled, "--quiet") == 0
    read = pandas.read_csv(filled) if ending == "csv" else pandas.read_parquet(filled)
    assert list(read.columns)[:4] == ["size", "id", "count", "city"]
    assert read["id"].tolist() == table["id"].tolist()
    assert read["count"].notna().all()
    assert ending == "csv" or [list(one) for one in read["list"]] == [[k] for k in range(40)]


def test_a_column_that_is_not_read_is_never_at_fault(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {name: pyarrow.array(mixed(40)[name]) for name in COLUMNS}
    columns["list"] = pyarrow.array([[k] for k in range(40)])
    pq.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    argv = ["score", folder / "m.nits", tmp_path / "t.parquet", "-o", tmp_path / "s.csv"]
    assert run(*argv) == 0
    columns["Size"] = columns.pop("size")
    (tmp_path / "many").mkdir()
    for place in (tmp_path / "t.parquet", tmp_path / "many" / "a.parquet"):
        pq.write_table(pyarrow.table(columns), place)
    capsys.readouterr()
    for place in (tmp_path / "t.parquet", tmp_path / "many"):
        argv[2] = place
        assert run(*argv) == 2
        told = capsys.readouterr().err
        names = sorted(told.partition("but has ")[2].partition(";")[0].split(", "))
        assert f"{place}: the table must have the column 'size', but has" in told
        assert names == ["Size", "city", "count", "list"]
