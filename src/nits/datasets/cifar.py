"""CIFAR-10, from its published folders or archives, binary or Python, without unpacking to disk."""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nits.datasets.images import VALIDATION, Images, Labelled, check_md5, make_images, paired
from nits.datasets.source import image_source, lacking

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
Content = tuple[str, bytes]
"""The name of a file in messages, and its bytes."""

ORIGIN = "www.cs.toronto.edu/~kriz/cifar.html"

_RECONSTRUCT = np.empty(0).__reduce__()[0]
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""All names in the published pickles, as old and new versions of NumPy spell them."""


def read_binary(content: bytes, where: str) -> Labelled:
    """Returns the images and labels of a binary batch: a byte of label and 3,072 of pixels each."""
    row = 1 + PIXELS
    if not content or len(content) % row:
        raise ValueError(
            f"{where} must have a multiple of {row} bytes, but has {len(content)}; "
            "download it again."
        )
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, row)
    return paired(rows[:, 1:].reshape(-1, *SHAPE), rows[:, 0].astype(np.int64), where)


def read_pickle(content: bytes, where: str) -> Labelled:
    """Returns the images and labels of a Python batch, a pickle with no names but `ALLOWED`."""
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        # Strings that Python 2 wrote are bytes in Python 3.
        named = {
            key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()
        }
        data, labels = named["data"], np.array(named["labels"])
    except Exception as error:  # a broken pickle may raise anything
        raise ValueError(
            f"{where} must be a pickle of an array 'data' and a list 'labels' alone, but is not "
            f"({type(error).__name__}: {error}); download it again."
        ) from None
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        raise ValueError(
            f"{where} must have uint8 data of shape (N, {PIXELS}), but has not; download it again."
        )
    if labels.dtype.kind != "i" or labels.ndim != 1:
        raise ValueError(
            f"{where} must have a list of integers as labels, but has not; download it again."
        )
    return paired(data.reshape(-1, *SHAPE), labels.astype(np.int64), where)


class _Unpickler(pickle.Unpickler):
    """A reader of arrays and plain containers, which runs no other code."""

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a pickle names, if it is allowed."""
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not allowed")
        return ALLOWED[module, name]


@dataclass(frozen=True)
class Layout:
    """A published form of the batches: its folder, its archive, the MD5 of each file, a reader."""

    folder: str
    archive: str
    md5: dict[str, str]
    read: Callable[[bytes, str], Labelled]


BINARY_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
PYTHON_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
LAYOUTS = (
    Layout("cifar-10-batches-bin", "cifar-10-binary.tar.gz", BINARY_MD5, read_binary),
    Layout("cifar-10-batches-py", "cifar-10-python.tar.gz", PYTHON_MD5, read_pickle),
)
NAMES = tuple(name for layout in LAYOUTS for name in layout.md5)
PLACES = (*(layout.folder for layout in LAYOUTS), *(layout.archive for layout in LAYOUTS))
WANTED = f"{', '.join(PLACES[:-1])} or {PLACES[-1]}"


def cifar10(
    path: Path | None = None, *, validation: int = VALIDATION, check: bool = True
) -> Images:
    """Returns CIFAR-10, RGB photographs of 32 × 32 pixels.

    45,000 are to train on, 5,000 to validate and 10,000 to test.

    path: A published archive, a folder with the batches, or a folder with one of those; by default
        the environment variable NITS_DATA.
    validation: Images at the end of the 50,000 published ones that are validation images.
    check: Whether the batches must have the published MD5.
    """
    layout, files = _batches(_located(image_source(path, "", WANTED, ORIGIN)))
    batches = []
    for name, md5 in layout.md5.items():
        where, content = files.pop(name)
        if check:
            check_md5(content, md5, where)
        batches.append(layout.read(content, where))
    *train, test = batches
    pixels, labels = (np.concatenate(arrays) for arrays in zip(*train, strict=True))
    return make_images("cifar10", (pixels, labels), test, validation)


def _located(path: Path) -> Path:
    """Returns the archive or the folder with the batches."""
    if path.is_file() or any((path / name).is_file() for name in NAMES):
        return path
    for place in PLACES:
        if (path / place).exists():
            return path / place
    raise lacking(str(path), WANTED, "none of them is there", ORIGIN)


def _batches(path: Path) -> tuple[Layout, dict[str, Content]]:
    """Returns the layout of the files that exist, and their content by name."""
    files = _archived(path) if path.is_file() else _stored(path)
    layout = max(LAYOUTS, key=lambda each: len(each.md5.keys() & files.keys()))
    absent = [name for name in layout.md5 if name not in files]
    if absent:
        raise lacking(str(path), ", ".join(layout.md5), f"{absent[0]} is missing", ORIGIN)
    return layout, files


def _stored(path: Path) -> dict[str, Content]:
    paths = [path / name for name in NAMES if (path / name).is_file()]
    return {each.name: (str(each), each.read_bytes()) for each in paths}


def _archived(path: Path) -> dict[str, Content]:
    files = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                stream = archive.extractfile(member) if name in NAMES and member.isfile() else None
                if stream is not None:
                    files[name] = (f"{path}: {member.name}", stream.read())
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise ValueError(
            f"{path} must be a whole tar.gz archive, but is not ({error}); download it again."
        ) from None
    return files
