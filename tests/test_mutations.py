"""Patches that break the code on purpose, for `make mutate`: they apply to it as it is."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATCHES = sorted((ROOT / "tests" / "mutations").glob("*.patch"))


def test_there_are_mutations() -> None:
    assert PATCHES


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: str(patch.stem))
def test_a_mutation_applies(patch: Path) -> None:
    command = ["git", "apply", "--check", str(patch)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
