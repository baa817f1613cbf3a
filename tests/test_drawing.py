"""Images that grow, grids for every label, and labels by Bayes' rule."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console

from nits import NITSImages
from nits.cli import growing
from nits.cli.main import main
from nits.images.classifying import _calibration
from nits.weights import ConvSize

TINY = ConvSize(filters=6, blocks=1, dilations=(1,))


def stripes(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images of 4 × 5 pixels, dark with the label 3 and light with the label 7."""
    labels = np.arange(n) % 2 * 4 + 3
    noise = np.random.default_rng(0).integers(0, 3, (n, 4, 5))
    return (noise + np.where(labels == 3, 1, 11)[:, None, None]).astype(np.uint8), labels


@pytest.fixture(scope="module")
def labelled() -> NITSImages:
    model = NITSImages(
        size=TINY, pnn=(4,), levels=16, max_steps=250, learning_rate=0.02, random_state=0
    )
    return model.fit(*stripes(200))


@pytest.fixture(scope="module")
def plain() -> NITSImages:
    model = NITSImages(size=TINY, pnn=(4,), levels=16, max_steps=5, batch_size=32, random_state=0)
    return model.fit(stripes(50)[0])


def test_the_last_look_is_the_sample(plain: NITSImages, labelled: NITSImages) -> None:
    """After each row one row more is there, and what was there stays."""
    looks = list(plain.drawing(5, 3))
    assert len(looks) == 4
    assert np.array_equal(looks[-1], plain.sample(5, 3))
    for k, look in enumerate(looks):
        assert np.array_equal(look[:, : k + 1], looks[-1][:, : k + 1])
        assert not look[:, k + 1 :].any()
    given = [3, 7, 7]
    assert np.array_equal(list(labelled.drawing(3, 1, given))[-1], labelled.sample(3, 1, given))


def test_noisy_pixels_grow_as_well() -> None:
    model = NITSImages(size=TINY, pnn=(4,), dequantize="uniform", max_steps=3, random_state=0)
    model.fit(stripes(50)[0] * 16)
    assert np.array_equal(list(model.drawing(3, 2))[-1], model.sample(3, 2))


def test_a_grid_has_a_row_for_each_label(labelled: NITSImages) -> None:
    drawn = labelled.sample_classes(6, random_state=0)
    assert drawn.shape == (2, 6, 4, 5)
    assert drawn[0].mean() < 5 < 9 < drawn[1].mean()


def test_labels_follow_bayes_rule(labelled: NITSImages) -> None:
    images, labels = stripes(40)
    prior = np.array([0.9, 0.1])
    nats = np.stack([labelled.score_samples(images, np.full(40, c)) for c in (3, 7)], 1)
    expected = np.exp(nats - nats.max(1, keepdims=True)) * prior
    found = labelled.predict_proba(images, prior)
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), atol=1e-6)
    assert (labelled.predict(images) == labels).all()
    about = labelled.calibration(images, labels)
    assert about.accuracy == 1
    assert about.images.sum() == 40
    assert about.log_loss < 0.1


def test_calibration_counts() -> None:
    """Ten images said to be right in 8 of 10 cases, of which 6 are; two at even odds, one right."""
    proba = np.array([[0.8, 0.2]] * 10 + [[0.5, 0.5]] * 2)
    truth = np.array([0] * 6 + [1] * 4 + [0, 1])
    found = _calibration(np.log(proba), truth, 10)
    assert found.accuracy == pytest.approx(7 / 12)
    assert found.error == pytest.approx(10 / 12 * 0.2)
    assert found.right[8] == pytest.approx(0.6)
    assert found.confidence[5] == pytest.approx(0.5)
    assert np.isnan(found.right[0])
    assert found.log_loss == pytest.approx(-np.log(np.r_[[0.8] * 6, [0.2] * 4, 0.5, 0.5]).mean())


def test_what_needs_labels_says_so(plain: NITSImages, labelled: NITSImages) -> None:
    images, labels = stripes(4)
    with pytest.raises(ValueError, match="labels can only be told by a model with labels"):
        plain.predict(images)
    with pytest.raises(ValueError, match="images for each label need a model with labels"):
        plain.sample_classes()
    message = "prior must be 2 positive probabilities that add up to one, but is [1, 1]."
    with pytest.raises(ValueError, match=re.escape(message)):
        labelled.predict(images, [1, 1])
    with pytest.raises(ValueError, match="labels must be 4 of those of training, but are not"):
        labelled.calibration(images, labels + 1)


def test_a_grid_grows_in_its_file(
    labelled: NITSImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written after every row of pixels, with the same pictures in the end."""
    monkeypatch.setattr(growing, "SECONDS", 0.0)
    labelled.save(tmp_path / "m.nits")
    written: list[int] = []
    save = Image.Image.save

    def counted(image: Image.Image, *args: Any, **options: Any) -> None:
        written.append(int((np.asarray(image) == 0).sum()))
        save(image, *args, **options)

    monkeypatch.setattr(Image.Image, "save", counted)
    command = ["sample", str(tmp_path / "m.nits"), "-n", "6", "--seed", "0", "--quiet", "-o"]
    assert main([*command, str(tmp_path / "a.png"), "--grow"]) == 0
    assert len(written) == 5
    assert written[0] > written[-1]
    assert main([*command, str(tmp_path / "b.png")]) == 0
    a, b = (np.asarray(Image.open(tmp_path / name)) for name in ("a.png", "b.png"))
    assert np.array_equal(a, b)
    assert a.shape == (2 * 6 + 2, 3 * 7 + 2)  # a row for each of two labels


def test_grow_needs_a_grid(
    labelled: NITSImages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labelled.save(tmp_path / "m.nits")
    assert main(["sample", str(tmp_path / "m.nits"), "-n", "2", "-o", "x.npy", "--grow"]) == 2
    assert "--grow writes a grid, a .png file, but -o is x.npy." in capsys.readouterr().err


def test_images_in_a_terminal() -> None:
    """Two rows of pixels in a line: the upper colours a half block, the lower stands behind it."""
    image = np.array([[0, 255], [255, 0], [7, 8]], np.uint8)
    text = growing.blocks(image, 80)
    assert text.plain == "▀▀\n▀▀\n"
    styles = [span.style for span in text.spans]
    assert [s.color.triplet.red for s in styles] == [0, 255, 7, 8]
    assert [s.bgcolor.triplet.red for s in styles] == [255, 0, 7, 8]
    assert growing.blocks(image, 1).plain == "▀\n▀\n"


def test_the_first_images_stand_below_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(growing, "SECONDS", 0.0)
    with growing.Growing(3, quiet=False, write=lambda images: None) as bar:
        bar.add(np.zeros((3, 4, 4), np.uint8), 1.5)
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(bar.bar.get_renderable())
        assert "▀▀▀▀" in console.export_text()
