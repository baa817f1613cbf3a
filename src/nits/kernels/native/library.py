"""Builds the C++ kernels once, with this machine's compiler and for its CPU, and loads them.

What is loaded is code, so only what `nits.kernels.native.kept` vouches for is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nits.kernels import openmp
from nits.kernels.native import kept
from nits.places import cache_root

SOURCES = (
    *("vector.h", "pnn.h", "gradient.h", "density.h", "mass.h", "quantile.h"),
    *("products.h", "causal.h", "trunk.h", "kernels.cpp"),
)
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-Wno-psabi",
)


class NotBuiltError(Exception):
    """The kernels cannot be built on this machine."""


@cache
def loaded() -> ctypes.CDLL | None:
    """Returns the library, built if necessary; None without g++ or GNU OpenMP, as outside Linux."""
    compiler = shlex.split(os.environ.get("CXX", "")) or _default_compiler()
    gomp = openmp.path()
    if not compiler or gomp is None:
        return None
    try:
        place = kept.folder(cache_root() / "native")
        name = f"kernels-{_key(compiler, gomp)}"
        found = kept.opened(place, name)
        if found is None:
            with kept.locked(place):
                found = kept.opened(place, name)  # by another process in the meantime
                if found is None:
                    build(place, name, compiler, gomp)
                    found = kept.opened(place, name)
        return found
    except (NotBuiltError, OSError, ValueError) as error:
        warnings.warn(
            f"the kernels in C++ could not be built or kept ({error}), so slower ones are used; "
            "check g++, or the compiler that CXX names.",
            stacklevel=2,
        )
        return None


def _default_compiler() -> list[str]:
    found = shutil.which("g++")
    return [] if found is None else [found]


def build(place: Path, name: str, compiler: Sequence[str], gomp: str) -> None:
    """Compiles the kernels, whole or not at all, and links them with torch's OpenMP."""
    source = Path(__file__).parent / "kernels.cpp"
    with tempfile.TemporaryDirectory(dir=place, prefix=kept.BUILDING) as temporary:
        compiled = Path(temporary) / "kernels.o"
        linked = Path(temporary) / "kernels.so"
        _run(*compiler, *FLAGS, "-fopenmp", "-c", str(source), "-o", str(compiled))
        _run(*compiler, "-shared", str(compiled), gomp, "-o", str(linked))
        kept.keep(linked, place, name)


def _run(*command: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        lines = run.stderr.strip().splitlines() or [f"{command[0]} ended with {run.returncode}"]
        raise NotBuiltError(next((line for line in lines if "error" in line), lines[-1]))


def _key(compiler: Sequence[str], gomp: str) -> str:
    """Returns a digest of all that decides what is built: sources, compiler, flags and CPU."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    version = subprocess.run(
        [*compiler, "--version"], capture_output=True, text=True, check=False
    ).stdout
    for part in (*compiler, version, gomp, *FLAGS, platform.machine(), _features()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _features() -> str:
    """Returns the instruction sets of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
