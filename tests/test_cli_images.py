"""The command line on a folder of pictures."""

from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image

import nits
from nits import NITSImages
from nits.cli.main import main
from pictures import bands


def run(*argv: object) -> int:
    return main([str(part) for part in argv])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with twenty pictures in it, and a model of them beside it."""
    place = tmp_path_factory.mktemp("cli")
    (place / "pictures").mkdir()
    for k, image in enumerate(bands(20)):
        Image.fromarray(image).save(place / "pictures" / f"{k:02}.png")
    options = ["--size", "tiny", "--pnn", "5", "--max-steps", "3", "--quiet"]
    assert run("fit", place / "pictures", "-o", place / "m.nits", *options) == 0
    return place


def test_fit_writes_what_the_estimator_would(folder: Path) -> None:
    model = nits.load(folder / "m.nits")
    same = NITSImages(size="tiny", pnn=(5,), max_steps=3, random_state=0).fit(folder / "pictures")
    assert np.array_equal(model.score_samples(bands(3)), same.score_samples(bands(3)))


def test_score_names_every_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score", folder / "m.nits", folder / "pictures", "-o", tmp_path / "s.csv") == 0
    found = pandas.read_csv(tmp_path / "s.csv")
    model = nits.load(folder / "m.nits")
    assert found["file"].tolist() == [f"{k:02}.png" for k in range(20)]
    np.testing.assert_allclose(found["log_probability"], model.score_samples(bands(20)), rtol=1e-6)
    assert (
        f"20 images, {model.bits_per_dim(bands(20)):.4f} bits per dimension"
        in capsys.readouterr().err
    )


def test_sample_writes_a_grid_an_array_or_files(folder: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "grid.png", tmp_path / "all.npy", tmp_path):
        assert run("sample", folder / "m.nits", "-n", 11, "-o", output, "--seed", 1, "--quiet") == 0
    drawn = np.load(tmp_path / "all.npy")
    assert drawn.shape == (11, 6, 5)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "03.png")), drawn[3])
    assert np.asarray(Image.open(tmp_path / "grid.png"))[2:8, 2:7].tolist() == drawn[0].tolist()


def test_info_and_plot(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", folder / "m.nits") == 0
    out = capsys.readouterr().out
    assert "images of 6 × 5 pixels, grey" in out
    assert "held-out images" in out
    assert run("plot", folder / "m.nits", folder / "pictures", "-o", tmp_path / "plots") == 0
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "pictures.png",
        "surprise.png",
        "training.png",
    }


WRONG = {
    "table option": (
        ["fit", "pictures", "-o", "x.nits", "--context", "a"],
        "--context is for tables",
    ),
    "picture option": (
        ["fit", "table.csv", "-o", "x.nits", "--size", "tiny"],
        "--size is for folders",
    ),
    "size": (["fit", "pictures", "-o", "x.nits", "--size", "vast"], "size must be one of tiny"),
    "empty": (["fit", "empty", "-o", "x.nits"], "but holds none"),
    "mixed sizes": (["fit", "mixed", "-o", "x.nits"], "make all images alike"),
    "unreadable": (["fit", "broken", "-o", "x.nits"], "cannot be read"),
    "no output": (["sample", "m.nits", "-n", "2"], "-o must name a .png file"),
    "label": (
        ["sample", "m.nits", "-n", "2", "-o", "x.png", "--given", "a=1"],
        "must be label=NUMBER",
    ),
    "no labels": (
        ["sample", "m.nits", "-n", "2", "-o", "x.png", "--given", "label=1"],
        "without labels",
    ),
    "per column": (["score", "m.nits", "pictures", "--per-column"], "--per-column is for tables"),
    "other size": (["score", "m.nits", "larger"], "as in training"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_one_line_and_leaves_nothing(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for place in ("empty", "mixed", "broken", "larger"):
        Path(place).mkdir(exist_ok=True)
    Path("table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    Path("broken/0.png").write_bytes(b"no picture")
    for place, size in (("mixed/0.png", (4, 4)), ("mixed/1.png", (5, 4)), ("larger/0.png", (9, 9))):
        Image.new("L", size).save(place)
    argv, message = WRONG[name]
    assert run(*argv) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not any(Path(place).exists() for place in ("x.nits", "x.png"))
