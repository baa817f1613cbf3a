"""Applies small patches that break the code, and shows that a test fails for each: `make mutate`.

Every file of tests/mutations is a unified diff. Lines above it say what it breaks and which tests
must notice, as arguments of pytest:

    # Gradients are not clipped.
    # tests: tests/test_loop.py -k clipped

The tests must pass without the patch and fail with it. Arguments choose patches by how their names
begin: `python tests/mutate.py 02 11`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "pyproject.toml")
WORKERS = 2
FAILED = 1  # what pytest returns if tests ran and some failed


class Outcome(NamedTuple):
    """What became of a mutation."""

    name: str
    caught: bool
    by: str  # the test that failed, or why none did
    seconds: float


def main(arguments: list[str]) -> int:
    """Tries the mutations and prints a table; returns 1 if one survives or does not apply."""
    patches = sorted((ROOT / "tests" / "mutations").glob("*.patch"))
    chosen = [p for p in patches if not arguments or p.name.startswith(tuple(arguments))]
    if not chosen:
        print(f"error: no mutation begins with {' or '.join(arguments)}.", file=sys.stderr)
        return 2
    width = max(len(patch.stem) for patch in chosen)
    print(f"{'mutation':{width}}  caught  seconds  by")
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(WORKERS) as pool:
        outcomes = []
        for found in pool.map(lambda patch: tried(patch, cache), chosen):
            outcomes.append(found)
            caught = "yes" if found.caught else "NO"
            print(f"{found.name:{width}}  {caught:6}  {found.seconds:7.1f}  {found.by}", flush=True)
    count = sum(found.caught for found in outcomes)
    print(f"{count} of {len(outcomes)} mutations caught")
    return int(count < len(outcomes))


def tried(patch: Path, cache: str) -> Outcome:
    """Runs a mutation's tests in a copy of the tree, without the patch and with it."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        caught, by = verdict(patch, Path(folder), cache)
    return Outcome(patch.stem, caught, by, time.monotonic() - begun)


def copied(folder: Path) -> None:
    """Copies what the tests need."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)


def verdict(patch: Path, folder: Path, cache: str) -> tuple[bool, str]:
    """Returns whether the tests notice the patch, and which one does or why none does."""
    header = re.search(r"^# tests: (.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    if header is None:
        return False, "the patch has no line '# tests: …'"
    tests = shlex.split(header[1])
    before = pytest(tests, folder, cache)
    if before.returncode:
        return False, f"the tests fail without the patch: {summary(before)}"
    alone = {"GIT_CEILING_DIRECTORIES": str(folder.parent)}  # part of no repository
    applied = run(["git", "apply", "--verbose", "--recount", "-C0", str(patch)], folder, alone)
    if applied.returncode:
        return False, f"the patch does not apply:\n{applied.stderr.strip()}"
    after = pytest(tests, folder, cache)
    return after.returncode == FAILED, summary(after)


def pytest(tests: list[str], folder: Path, cache: str) -> subprocess.CompletedProcess[str]:
    """Runs tests on the copy up to the first that fails; kernels that it builds go to the cache."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return run(command, folder, {"PYTHONPATH": "src", "NITS_CACHE": cache, "OMP_NUM_THREADS": "1"})


def run(
    command: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )


def summary(finished: subprocess.CompletedProcess[str]) -> str:
    """Returns the test that failed, or pytest's last line."""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", finished.stdout, re.MULTILINE)
    return failed[1] if failed else (finished.stdout + finished.stderr).strip().split("\n")[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
