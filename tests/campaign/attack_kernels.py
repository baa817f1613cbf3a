"""Built kernels that somebody has put into the cache, or that were cut short there.

What is there must not be loaded unless this user built it and it is whole: then it is built again,
or slower kernels are used, with one notice. A library of the attack leaves a mark if it is loaded.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from campaign.forked import at_once
from campaign.steps import Failure
from nits.kernels import native
from nits.kernels.native import library
from nits.pnn.plain import parameters

COMPILER = """#!/bin/sh
# Builds a library at once: the one that this machine's compiler has built before.
case "$*" in *--version*) echo quick; exit 0;; esac
if [ -e "$NITS_CACHE/full" ]; then echo "error: No space left on device" >&2; exit 1; fi
while [ $# -gt 1 ]; do shift; done
case "$1" in *.so) cp "$QUICK_BUILT" "$1";; *) : > "$1";; esac
"""

FOREIGN = """
#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void mark(void) { creat(getenv("ATTACK_MARK"), 0600); }
"""

STRANGER = 12345
"""The number of another user, to whom root can give files."""

HIDDEN = (4, 4)

_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class Machine(NamedTuple):
    """A folder with a compiler, a whole library, and one that leaves a mark."""

    place: Path
    whole: bytes
    foreign: bytes


@cache
def machine() -> Machine:
    """Makes what all cases share."""
    _folders.append(tempfile.TemporaryDirectory(prefix="nits-campaign-"))
    place = Path(_folders[-1].name)
    (place / "compiler").write_text(COMPILER)
    (place / "compiler").chmod(0o700)
    (place / "foreign.c").write_text(FOREIGN)
    compiler = shutil.which("gcc") or "cc"
    target = str(place / "foreign.so")
    subprocess.run(
        [compiler, "-shared", "-fPIC", str(place / "foreign.c"), "-o", target], check=True
    )
    built = at_once([lambda: _built(place)])[0]
    (place / "whole.so").write_bytes(built)
    return Machine(place, built, Path(target).read_bytes())


def _built(place: Path) -> bytes:
    """Returns the library that this machine's own compiler builds."""
    os.environ["NITS_CACHE"] = str(place / "real")
    library.loaded.cache_clear()
    if library.loaded() is None:
        raise RuntimeError("the kernels cannot be built here")
    (found,) = (place / "real" / "native").glob("*.so")
    return found.read_bytes()


def run(case: int) -> str:
    """Runs a case and returns "passed" if kernels were built again, "refused" if not used."""
    rng = np.random.default_rng([22, case])
    attack = ATTACKS[case % len(ATTACKS)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        good = at_once([lambda: _used(place)])[0]
        if good["notices"] or not good["loaded"]:
            raise Failure(f"kernels that are whole are not loaded: {good}")
        (kept,) = (place / "native").glob("*.so")
        attack(kept, rng)
        found = at_once([lambda: _used(place)] * 2)  # two at once want to build them
        later = at_once([lambda: _used(place)])[0]
        if (place / "mark").exists():
            raise Failure(f"{attack.__name__}: a foreign library was loaded")
    for one in (*found, later):
        if one["numbers"] != good["numbers"] and one["loaded"]:
            raise Failure(f"{attack.__name__}: other numbers")
        if len(one["notices"]) != (0 if one["loaded"] else 1):
            raise Failure(f"{attack.__name__}: {one}")
    return "passed" if later["loaded"] else "refused"


def _used(place: Path) -> dict[str, Any]:
    """Returns what a process that uses the kernels sees; it is this one, which ends then."""
    new_machine(place)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = library.loaded() is not None
        numbers = _numbers() if loaded else []
    return {"loaded": loaded, "numbers": numbers, "notices": [str(one.message) for one in caught]}


def new_machine(place: Path) -> None:
    """Has this process build kernels that go to a folder, as if for the first time."""
    os.environ["NITS_CACHE"] = str(place)
    os.environ["CXX"] = f"'{machine().place / 'compiler'}' -m64"
    os.environ["QUICK_BUILT"] = str(machine().place / "whole.so")
    os.environ["ATTACK_MARK"] = str(place / "mark")
    library.loaded.cache_clear()


def _numbers() -> list[float]:
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(1, parameters(HIDDEN), 8, generator=generator)
    ends = torch.full((1, 1), -np.inf), torch.full((1, 1), np.inf)
    found: list[float] = native.log_prob(theta, (torch.zeros(1, 8),), *ends, HIDDEN).tolist()[0]
    return found


def _replaced(kept: Path, data: bytes) -> None:
    kept.unlink()
    kept.write_bytes(data)
    kept.chmod(0o700)


def _rightly_named(kept: Path, data: bytes) -> Path:
    """Writes a library whose checksum is the one in its name."""
    start = kept.name.rsplit("-", 1)[0]
    kept.unlink()
    found = kept.with_name(f"{start}-{hashlib.sha256(data).hexdigest()[:32]}.so")
    found.write_bytes(data)
    found.chmod(0o700)
    return found


def cut_short(kept: Path, rng: np.random.Generator) -> None:
    _replaced(kept, machine().whole[: int(rng.integers(len(machine().whole)))])


def changed(kept: Path, rng: np.random.Generator) -> None:
    data = bytearray(machine().whole)
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    _replaced(kept, bytes(data))


def foreign(kept: Path, rng: np.random.Generator) -> None:
    _replaced(kept, machine().foreign)


def of_another_user(kept: Path, rng: np.random.Generator) -> None:
    _given_away(_rightly_named(kept, machine().foreign))


def writable_by_others(kept: Path, rng: np.random.Generator) -> None:
    _rightly_named(kept, machine().foreign).chmod(int(rng.choice([0o720, 0o702, 0o777])))


def a_link(kept: Path, rng: np.random.Generator) -> None:
    found = _rightly_named(kept, machine().foreign)
    other = found.parent.parent / "elsewhere.so"
    found.rename(other)
    found.symlink_to(other)


def in_an_open_folder(kept: Path, rng: np.random.Generator) -> None:
    _rightly_named(kept, machine().foreign)
    kept.parent.chmod(int(rng.choice([0o770, 0o777, 0o702])))


def in_a_folder_of_another_user(kept: Path, rng: np.random.Generator) -> None:
    _rightly_named(kept, machine().foreign)
    if not _given_away(kept.parent):
        kept.parent.chmod(0o777)


def older(kept: Path, rng: np.random.Generator) -> None:
    """Kernels of older sources have another digest in their name."""
    old = kept.with_name(f"kernels-{rng.bytes(8).hex()}-0.so")
    kept.rename(old)
    _rightly_named(old, machine().foreign)


def no_file(kept: Path, rng: np.random.Generator) -> None:
    kept.unlink()
    os.mkfifo(kept) if rng.random() < 0.5 else kept.mkdir()


def on_a_full_disk(kept: Path, rng: np.random.Generator) -> None:
    """What was cut short cannot be built again."""
    cut_short(kept, rng)
    (kept.parent.parent / "full").touch()


def _given_away(path: Path) -> bool:
    if os.getuid() == 0:
        os.chown(path, STRANGER, STRANGER)
        return True
    path.chmod(0o777)
    return False


ATTACKS: tuple[Callable[[Path, np.random.Generator], None], ...] = (
    cut_short,
    changed,
    foreign,
    of_another_user,
    writable_by_others,
    a_link,
    in_an_open_folder,
    in_a_folder_of_another_user,
    older,
    no_file,
    on_a_full_disk,
)
