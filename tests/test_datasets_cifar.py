"""CIFAR-10 on small batches of both published forms, in folders and in archives."""

import hashlib
import io
import os
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.datasets import Images, cifar, cifar10

NAMES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
ROWS = 4
Pixels = NDArray[np.uint8]
Labels = list[int]


def batch(index: int) -> tuple[Pixels, Labels]:
    rng = np.random.default_rng(index)
    return rng.integers(0, 256, (ROWS, 3072), dtype=np.uint8), [
        int(i) for i in rng.integers(0, 10, ROWS)
    ]


def binary(pixels: Pixels, labels: Labels) -> bytes:
    return b"".join(
        bytes([label]) + row.tobytes() for row, label in zip(pixels, labels, strict=True)
    )


def text(value: str) -> bytes:
    return b"U" + bytes([len(value)]) + value.encode()


def python2(pixels: Pixels, labels: Labels) -> bytes:
    """Writes, opcode by opcode, the pickle that Python 2 and old NumPy published."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + b"K\x00\x85" + text("b")
    )
    kind = b"cnumpy\ndtype\n" + text("u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + text("|") + b"NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    shape = b"K" + bytes([len(pixels)]) + b"M" + struct.pack("<H", 3072) + b"\x86"
    raw = b"T" + struct.pack("<i", pixels.nbytes) + pixels.tobytes()
    data = array + b"\x87R" + b"(K\x01" + shape + kind + b"\x89" + raw + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    label = text("batch_label") + text("training batch 1 of 5")
    return b"\x80\x02}(" + label + text("labels") + numbers + text("data") + data + b"u."


def python3(pixels: Pixels, labels: Labels) -> bytes:
    return pickle.dumps({"data": pixels, "labels": labels}, protocol=4)


def python3_bytes(pixels: Pixels, labels: Labels) -> bytes:
    return pickle.dumps({b"data": pixels, b"labels": labels}, protocol=4)


def write(root: Path, encode: Callable[[Pixels, Labels], bytes]) -> Path:
    """Writes six batches into the published folder, and returns it."""
    ending, folder = (
        (".bin", "cifar-10-batches-bin") if encode is binary else ("", "cifar-10-batches-py")
    )
    (root / folder).mkdir()
    for index, name in enumerate(NAMES):
        (root / folder / f"{name}{ending}").write_bytes(encode(*batch(index)))
    return root / folder


def pack(folder: Path) -> Path:
    """Replaces a folder by its archive, test batch first, with a file that is not looked at."""
    name = "cifar-10-binary.tar.gz" if folder.name.endswith("bin") else "cifar-10-python.tar.gz"
    (folder / "readme.html").write_text("read me")
    with tarfile.open(folder.parent / name, "w:gz") as archive:
        for path in sorted(folder.iterdir(), reverse=True):
            archive.add(path, f"{folder.name}/{path.name}")
            path.unlink()
    folder.rmdir()
    return folder.parent / name


def check(images: Images) -> None:
    pixels = np.concatenate([batch(i)[0] for i in range(6)]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([batch(i)[1] for i in range(6)])
    parts = np.split(pixels, [17, 20]), np.split(labels, [17, 20])
    assert images.name == "cifar10"
    got = (images.train, images.validation, images.test)
    got_labels = (images.train_labels, images.validation_labels, images.test_labels)
    for part, part_labels, x, y in zip(got, got_labels, *parts, strict=True):
        assert part_labels is not None
        assert part.dtype == np.uint8
        assert part_labels.dtype == np.int64
        assert not part.flags.writeable
        assert not part_labels.flags.writeable
        np.testing.assert_array_equal(part, x)
        np.testing.assert_array_equal(part_labels, y)


ENCODERS = [binary, python2, python3, python3_bytes]


@pytest.mark.parametrize("encode", ENCODERS)
def test_folder_and_archive(tmp_path: Path, encode: Callable[[Pixels, Labels], bytes]) -> None:
    folder = write(tmp_path, encode)
    check(cifar10(folder, validation=3, check=False))
    archive = pack(folder)
    check(cifar10(archive, validation=3, check=False))
    check(cifar10(archive.rename(tmp_path / "renamed"), validation=3, check=False))
    assert [path.name for path in tmp_path.iterdir()] == ["renamed"]


@pytest.mark.parametrize("encode", [binary, python2])
def test_under_nits_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encode: Callable[..., bytes]
) -> None:
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    folder = write(tmp_path, encode)
    check(cifar10(validation=3, check=False))
    pack(folder)
    check(cifar10(validation=3, check=False))


def test_colours_and_rows_lie_where_they_should(tmp_path: Path) -> None:
    folder = write(tmp_path, binary)
    row = np.zeros(3072, dtype=np.uint8)
    row[1024 + 32 * 5 + 7] = 200  # green, row 5, column 7
    (folder / "test_batch.bin").write_bytes(b"\x03" + row.tobytes())
    images = cifar10(folder, validation=0, check=False)
    assert images.test[0, 1, 5, 7] == 200
    assert np.count_nonzero(images.test) == 1
    assert len(images.validation) == 0


def test_md5_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, binary)
    message = (
        r"data_batch_1\.bin must have the published MD5 5dd7e06a\w+, but has \w{32}; "
        "download it again, or pass"
    )
    with pytest.raises(ValueError, match=message):
        cifar10(folder, validation=3)
    for path in folder.iterdir():
        monkeypatch.setitem(cifar.BINARY_MD5, path.name, hashlib.md5(path.read_bytes()).hexdigest())
    check(cifar10(folder, validation=3))
    with pytest.raises(
        ValueError, match=r"python\.tar\.gz: .*/data_batch_1 must have the published MD5 c99cafc"
    ):
        cifar10(pack(write(tmp_path, python2)))


class Malicious:
    """What runs a command when it is read by an ordinary unpickler."""

    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple[Callable[[str, int], int], tuple[str, int]]:
        return os.open, (str(self.touched), os.O_CREAT)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    folder, touched = write(tmp_path, python2), tmp_path / "touched"
    content = pickle.dumps({"data": batch(0)[0], "labels": [Malicious(touched)]}, protocol)
    content = pickle.dumps(Malicious(touched), protocol) if protocol < 4 else content
    (folder / "data_batch_2").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"data_batch_2 must be a pickle .* names \w+\.open, which is not allowed"
    ):
        cifar10(folder, check=False)
    assert not touched.exists()
    os.close(pickle.loads(content)["labels"][0] if protocol == 4 else pickle.loads(content))
    assert touched.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"\x80\x02cbuiltins\neval\n.",
            r"names builtins\.eval, which is not allowed\); download it again",
        ),
        (b"\x80\x02cnumpy\nload\n.", r"names numpy\.load, which is not allowed"),
        (
            b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
            r"names numpy\.ndarray\.dump, which is not allowed",
        ),
        (
            b"no pickle",
            r"must be a pickle of an array 'data' and a list 'labels' alone, "
            r"but is not \(.*\); download",
        ),
        (b"", r"must be a pickle .* but is not \(EOFError: .*\)"),
        (pickle.dumps([1]), r"must be a pickle .* but is not \(AttributeError: "),
        (pickle.dumps({"data": 1}), r"must be a pickle .* but is not \(KeyError: 'labels'\)"),
        (
            pickle.dumps({"data": 1, "labels": [1]}),
            r"must have uint8 data of shape \(N, 3072\), but has not",
        ),
        (
            python3(np.zeros((1, 9), dtype=np.uint8), [1]),
            r"must have uint8 data of shape \(N, 3072\), but has",
        ),
        (
            pickle.dumps({"data": batch(0)[0], "labels": ["a"]}),
            "must have a list of integers as labels, but has",
        ),
        (
            python3(batch(0)[0], [1, 2]),
            "must have one label per image, but has 2 for 4; download it again",
        ),
        (
            python3(batch(0)[0], [1, 2, 3, -4]),
            "must have labels from 0 to 9, but has -4; download it again",
        ),
    ],
)
def test_bad_pickles(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write(tmp_path, python2)
    (folder / "data_batch_5").write_bytes(content)
    with pytest.raises(ValueError, match=r"data_batch_5 .*" + message):
        cifar10(folder, check=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            binary(*batch(0))[:-1],
            "must have a multiple of 3073 bytes, but has 12291; download it again",
        ),
        (b"", "must have a multiple of 3073 bytes, but has 0; download it again"),
        (b"\x0a" + bytes(3072), "must have labels from 0 to 9, but has 10; download it again"),
    ],
)
def test_bad_binaries(tmp_path: Path, content: bytes, message: str) -> None:
    folder = write(tmp_path, binary)
    (folder / "test_batch.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"test_batch\.bin " + message):
        cifar10(folder, check=False)


def test_bad_archives(tmp_path: Path) -> None:
    whole = pack(write(tmp_path, binary)).read_bytes()
    for name, content in (("cut", whole[: len(whole) // 2]), ("none", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"{name} must be a whole tar\.gz archive, but is not .*; download it"
        ):
            cifar10(tmp_path / name, check=False)
    with tarfile.open(tmp_path / "empty", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("readme.html"), io.BytesIO())
    with pytest.raises(
        FileNotFoundError, match=r"empty must hold data_batch_1\.bin, .*1\.bin is missing; get"
    ):
        cifar10(tmp_path / "empty")


def test_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = (
        "must hold cifar-10-batches-bin, cifar-10-batches-py, "
        r"cifar-10-binary\.tar\.gz or cifar-10-python"
    )
    remedy = (
        r"; get them from www\.cs\.toronto\.edu/~kriz/cifar\.html, "
        r"then pass path= or set NITS_DATA\."
    )
    monkeypatch.delenv("NITS_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=f"NITS_DATA names {wanted}.*, but neither is set{remedy}"
    ):
        cifar10()
    monkeypatch.setenv("NITS_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{wanted}.*, but none of them is there{remedy}"):
        cifar10()
    with pytest.raises(
        FileNotFoundError, match=f"gone {wanted}.*, but there is no such path{remedy}"
    ):
        cifar10(tmp_path / "gone")
    (write(tmp_path, binary) / "data_batch_3.bin").unlink()
    with pytest.raises(
        FileNotFoundError,
        match=rf"batches-bin must hold .*, but data_batch_3\.bin is missing{remedy}",
    ):
        cifar10()


def test_validation_leaves_something_to_train_on(tmp_path: Path) -> None:
    folder = write(tmp_path, binary)
    for validation in (20, -1):
        message = (
            f"at least 0 and less than the 20 training images, but is {validation}; "
            "0 leaves all for training"
        )
        with pytest.raises(ValueError, match=message):
            cifar10(folder, validation=validation, check=False)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NITS_DATA"), reason="NITS_DATA is not set")
def test_published_cifar10() -> None:
    try:
        images = cifar10()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert [len(part) for part in (images.train, images.validation, images.test)] == [
        45_000,
        5_000,
        10_000,
    ]
    assert images.test_labels is not None
    assert np.bincount(images.test_labels).tolist() == [1000] * 10
