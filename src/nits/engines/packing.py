"""Tasks in a file whose arrays every process maps instead of copying them.

Arrays and tensors are written as they lie in memory, each once, however many tasks hold it. Whoever
reads the file maps it: all processes share its pages, which are read when they are touched, and
what one of them writes into its arrays the others do not see.
"""

from __future__ import annotations

import io
import mmap
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

ALIGNMENT = 64
"""Arrays begin at multiples of this many bytes, as the widest instructions of a CPU want."""


def write(place: Path, content: Any) -> None:
    """Writes anything that can be pickled: arrays to the file `place`, the rest beside it."""
    rest = io.BytesIO()
    arrays: list[pickle.PickleBuffer] = []
    _Pickler(rest, protocol=5, buffer_callback=arrays.append).dump(content)
    with place.open("wb") as file:
        spans = [_append(file, array.raw()) for array in arrays]
        file.write(b"\0")  # an empty file cannot be mapped
    _beside(place).write_bytes(pickle.dumps((rest.getvalue(), spans)))


def read(place: Path) -> Any:
    """Returns what `write` wrote, with mapped arrays."""
    rest, spans = pickle.loads(_beside(place).read_bytes())
    with place.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    return pickle.loads(rest, buffers=[whole[start:stop] for start, stop in spans])


def _beside(place: Path) -> Path:
    return place.with_suffix(".pickle")


def _append(file: BinaryIO, array: memoryview) -> tuple[int, int]:
    """Writes an array at the end of a file, and returns where it begins and ends."""
    file.write(bytes(-file.tell() % ALIGNMENT))
    start = file.tell()
    file.write(array)
    return start, file.tell()


class _Pickler(pickle.Pickler):
    """Leaves the numbers of tensors and of memory-mapped arrays to whoever writes the arrays."""

    def reducer_override(self, item: Any) -> Any:
        if type(item) is np.memmap:
            return np.asarray, (item.view(np.ndarray),)
        if type(item) is Tensor and _is_plain(item):
            return torch.from_numpy, (item.numpy(),)
        return NotImplemented


def _is_plain(tensor: Tensor) -> bool:
    """Returns whether an array can hold the tensor: numbers in memory, without a gradient."""
    usual = tensor.dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)
    in_memory = tensor.device.type == "cpu" and tensor.layout == torch.strided
    return usual and in_memory and not tensor.requires_grad
