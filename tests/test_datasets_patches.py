"""BSDS300: patches are where they were drawn from, and prepared as stated."""

import os
from pathlib import Path

import numpy as np
import pytest

from nits.datasets import patches
from nits.datasets.patches import bsds300, draw, grey, residuals
from nits.datasets.split import Split

SIZES = (300, 60, 80)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Writes 23 train and 2 test images of one grey each, 10 × 12 or 12 × 10; greys are 4 apart."""
    image = pytest.importorskip("PIL.Image")
    for part, count, first in (("train", 23, 10), ("test", 2, 200)):
        folder = tmp_path / "BSDS300" / "images" / part
        folder.mkdir(parents=True)
        for i in range(count):
            size = (10, 12) if i % 2 else (12, 10)
            image.new("RGB", size, (first + 4 * i,) * 3).save(folder / f"{i:03d}.jpg", quality=100)
    return tmp_path


def test_shapes_names_and_range(root: Path) -> None:
    split = bsds300(root, cache=root / "cache", sizes=SIZES)
    assert [part.shape for part in (split.train, split.validation, split.test)] == [
        (n, 63) for n in SIZES
    ]
    assert split.columns[0] == "pixel_0_0"
    assert split.columns[-1] == "pixel_7_6"
    # A flat image leaves noise only, which is less than one grey level from its mean.
    assert all(np.abs(part).max() < 1 / 256 for part in (split.train, split.validation, split.test))


def test_validation_images_are_their_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def spy(images: list[patches.Pixels], n: int, rng: np.random.Generator) -> patches.Pixels:
        seen.append({int(image[0, 0]) for image in images})
        return draw(images, n, rng)

    monkeypatch.setattr(patches, "draw", spy)
    bsds300(root, cache=root / "cache", sizes=SIZES)
    train, validation, test = seen
    assert (len(train), len(validation), len(test)) == (3, 20, 2)
    assert not train & validation
    assert not test & (train | validation)


def test_a_part_depends_on_the_seed_and_not_on_other_sizes(root: Path) -> None:
    def test_rows(sizes: tuple[int, int, int], seed: int = 0) -> Split:
        return bsds300(root, cache=root / "cache", sizes=sizes, seed=seed)

    first = test_rows(SIZES)
    np.testing.assert_array_equal(first.test, test_rows((10, 10, SIZES[2])).test)
    assert not np.array_equal(first.test, test_rows(SIZES, seed=1).test)


def test_draw_returns_windows_from_everywhere() -> None:
    # Each pixel tells its image, row and column, so a patch tells where it came from.
    images = [
        (100 * k + 10 * np.arange(9)[:, None] + np.arange(10)).astype(np.uint8)[: 9 - k]
        for k in range(2)
    ]
    got = draw(images, 500, np.random.default_rng(0)).reshape(-1, 8, 8)
    places = set()
    for patch in got:
        k, place = divmod(int(patch[0, 0]), 100)
        top, left = divmod(place, 10)
        np.testing.assert_array_equal(patch, images[k][top : top + 8, left : left + 8])
        places.add((k, top, left))
    assert places == {(0, t, c) for t in range(2) for c in range(3)} | {(1, 0, c) for c in range(3)}


def test_residuals_are_dequantized_centred_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "BLOCK", 7)
    pixels = np.random.default_rng(3).integers(0, 256, (20, 64)).astype(np.uint8)
    got = residuals(pixels, np.random.default_rng(4))
    noise = np.random.default_rng(4).random((20, 64))
    for row, patch, u in zip(got, pixels, noise, strict=True):
        z = [(int(p) + v) / 256 for p, v in zip(patch, u, strict=True)]
        np.testing.assert_allclose(row, [v - sum(z) / 64 for v in z[:63]], rtol=1e-5, atol=1e-7)


def test_grey_is_the_stated_mixture(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (8, 8), (200, 100, 50)).save(tmp_path / "flat.png")
    assert (grey(tmp_path / "flat.png") == round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)).all()


def test_errors_say_what_to_do(root: Path) -> None:
    with pytest.raises(
        ValueError, match=r"sizes must be three positive integers, but is \(1, 0, 1\)"
    ):
        bsds300(root, sizes=(1, 0, 1))
    for path in sorted((root / "BSDS300/images/train").iterdir())[20:]:
        path.unlink()
    with pytest.raises(ValueError, match="more than 20 training images, but there are 20"):
        bsds300(root, cache=root / "cache", sizes=SIZES)
    for path in (root / "BSDS300/images/test").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError, match="must hold jpg images, but holds none"):
        bsds300(root, cache=root / "cache", sizes=SIZES)


def test_without_pillow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ImportError, match=r"need Pillow, .*; run pip install 'nits\[images\]'\."):
        grey(tmp_path / "any.jpg")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NITS_DATA"), reason="NITS_DATA is not set")
def test_published_bsds300(tmp_path: Path) -> None:
    split = bsds300(cache=tmp_path)
    assert [len(part) for part in (split.train, split.validation, split.test)] == list(
        patches.SIZES
    )
    assert np.abs(split.train).max() < 1
    np.testing.assert_allclose(split.train.mean(0, dtype=np.float64), 0, atol=1e-3)
