"""A folder of picture files, and what the package offers for images."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nits import datasets
from nits.datasets import image_folder

COUNT = 23
Pixels = NDArray[np.uint8]


def pictures(count: int, *size: int) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (count, *size), dtype=np.uint8)


def write(folder: Path, images: Pixels, ending: str = ".png") -> Path:
    """Writes images of shape (H, W) or (H, W, 3)."""
    image = pytest.importorskip("PIL.Image")
    for index, pixels in enumerate(images):
        image.fromarray(pixels).save(folder / f"{index:03d}{ending}")
    return folder


def test_rgb_files_are_shuffled_and_cut(tmp_path: Path) -> None:
    pixels = pictures(COUNT, 5, 7, 3)
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / "below.png").mkdir()
    images = image_folder(write(tmp_path, pixels))
    order = np.random.default_rng(0).permutation(COUNT)
    expected = np.split(pixels[order].transpose(0, 3, 1, 2), [19, 21])
    assert images.name == tmp_path.name
    assert (images.train_labels, images.validation_labels, images.test_labels) == (None, None, None)
    for part, reference in zip(
        (images.train, images.validation, images.test), expected, strict=True
    ):
        assert part.dtype == np.uint8
        assert not part.flags.writeable
        np.testing.assert_array_equal(part, reference)


def test_grey_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    pixels = pictures(8, 5, 7)
    images = image_folder(write(tmp_path, pixels), validation=1, test=0, seed=None)
    np.testing.assert_array_equal(images.train[:, 0], pixels[:7])
    np.testing.assert_array_equal(images.validation[:, 0], pixels[7:])
    assert images.test.shape == (0, 1, 5, 7)


@pytest.mark.parametrize("ending", [".jpg", ".JPEG"])
def test_jpeg_files(tmp_path: Path, ending: str) -> None:
    flat = np.full((10, 8, 8), 100, dtype=np.uint8)
    images = image_folder(write(tmp_path, flat, ending))
    assert [len(part) for part in (images.train, images.validation, images.test)] == [8, 1, 1]
    assert (images.train == 100).all()


@pytest.mark.parametrize(("shape", "words"), [((6, 5), "1 × 6 × 5"), ((5, 6, 3), "3 × 5 × 6")])
def test_images_must_be_alike(tmp_path: Path, shape: tuple[int, ...], words: str) -> None:
    image = pytest.importorskip("PIL.Image")
    write(tmp_path, pictures(3, 5, 6))
    image.fromarray(pictures(1, *shape)[0]).save(tmp_path / "other.png")
    message = (
        r"other\.png must have the .* width of 000\.png, 1 × 5 × 6, "
        f"but has {words}; make all images alike"
    )
    with pytest.raises(ValueError, match=message):
        image_folder(tmp_path)


@pytest.mark.parametrize("ending", [".png", ".jpg"])
def test_unreadable_files(tmp_path: Path, ending: str) -> None:
    write(tmp_path, pictures(2, 20, 20), ending)
    path = tmp_path / f"001{ending}"
    for content in (b"no image", path.read_bytes()[:-200], b""):
        path.write_bytes(content)
        with pytest.raises(
            ValueError,
            match=rf"001{ending} must be a PNG or JPEG image, but cannot be read \(\w+\);",
        ):
            image_folder(tmp_path)


@pytest.mark.parametrize("mode", ["RGBA", "P", "1", "I;16"])
def test_other_modes_are_refused(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("PIL.Image").new(mode, (4, 4)).save(tmp_path / "odd.png")
    message = (
        r"odd\.png must be grey or RGB with 8 bits per channel, "
        f"but has Pillow's mode {mode}; convert it"
    )
    with pytest.raises(ValueError, match=message):
        image_folder(tmp_path)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"must hold \.png, \.jpg, \.jpeg images, but holds none; correct"
    ):
        image_folder(tmp_path)
    with pytest.raises(
        FileNotFoundError,
        match=r"must be a folder of images, but there is no folder .*gone; correct",
    ):
        image_folder(tmp_path / "gone")


@pytest.mark.parametrize(("validation", "test"), [(2, 2), (-1, 0), (0, -1)])
def test_parts_must_fit(tmp_path: Path, validation: int, test: int) -> None:
    write(tmp_path, pictures(4, 3, 3))
    message = (
        f"together less than the 4 images, but are {validation} and {test}; "
        "by default each is a tenth"
    )
    with pytest.raises(ValueError, match=message):
        image_folder(tmp_path, validation=validation, test=test)


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "any.png").touch()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"need Pillow, .*; run pip install 'nits\[images\]'\."):
        image_folder(tmp_path)


def test_the_package_offers_images_without_importing_pillow() -> None:
    for name in ("cifar10", "mnist", "fashion_mnist", "image_folder", "Images"):
        assert name in datasets.__all__
        assert callable(getattr(datasets, name))
    program = "import sys, nits.datasets; sys.exit('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
