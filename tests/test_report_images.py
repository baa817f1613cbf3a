"""Reports on models of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nits import NITSImages
from nits.cli.main import main
from nits.report import pictures, words
from nits.report.document import Report
from pictures import bands


@pytest.fixture(scope="module")
def model() -> NITSImages:
    return NITSImages(size="tiny", pnn=(5,), max_steps=3, random_state=0).fit(bands(20))


@pytest.fixture(scope="module")
def report(model: NITSImages) -> Report:
    return model.report(bands(9))


def test_bits_are_those_of_the_library(model: NITSImages, report: Report) -> None:
    found = report.sections["bits"]
    assert found.mean == pytest.approx(model.bits_per_dim(bands(9)), rel=1e-6)
    assert found.held_out == model.held_out_
    assert words.fixed(found.mean, 3) in report.html
    assert found.uniform == 8
    values = np.unique(bands(9), return_counts=True)[1] / bands(9).size
    assert found.alone == pytest.approx(-(values * np.log2(values)).sum())


def test_surprising_images_come_first(model: NITSImages, report: Report) -> None:
    each = model.surprise(bands(9)).mean((1, 2))
    found = report.sections["surprise"]
    assert found.highest == pytest.approx(each.max(), rel=1e-5)
    assert found.least == pytest.approx(each.min(), rel=1e-5)


def test_pictures_are_in_the_page(report: Report) -> None:
    assert report.reasons == {}
    assert report.html.count('<img src="data:image/png;base64,') == 5
    assert "http" not in report.html.replace("http-equiv", "")


def test_a_row_of_images_is_large_enough_to_be_seen() -> None:
    found = pictures.row(bands(16))
    assert 400 < found.shape[1] <= 1000
    assert len(np.unique(found)) <= len(np.unique(bands(16))) + 1


def test_labels_are_refused() -> None:
    model = NITSImages(size="tiny", pnn=(5,), max_steps=1, random_state=0)
    model.fit(bands(6), [0, 1, 0, 1, 0, 1])
    with pytest.raises(ValueError, match="but this model has labels"):
        model.report(bands(6))


def test_the_command_line_writes_it(
    model: NITSImages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pictures").mkdir()
    for k, image in enumerate(bands(5)):
        Image.fromarray(image).save(tmp_path / "pictures" / f"{k}.png")
    model.save(tmp_path / "m.nits")
    argv = ["report", str(tmp_path / "m.nits"), str(tmp_path / "pictures"), "--quiet"]
    assert main([*argv, "-o", str(tmp_path / "r.html")]) == 0
    assert "all 5 images of pictures" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main([*argv, "-o", str(tmp_path / "r.html"), "--held-out", "x.csv"]) == 2
    assert "--held-out is for tables" in capsys.readouterr().err
