"""The public names: each can be imported, and none is imported before it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import nits

PACKAGES = ("nits", "nits.datasets", "nits.heads", "nits.images", "nits.weights")
NAMES = [(package, name) for package in PACKAGES for name in import_module(package).__all__]


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_can_be_imported(package: str, name: str) -> None:
    assert getattr(import_module(package), name) is not None


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("AdamW", "nits.training.optimizers"),
        ("History", "nits.training.history"),
        ("Rows", "nits.training.rows"),
        ("ScheduleFree", "nits.training.optimizers"),
        ("images.to_images", "nits.images.rows"),
        ("images.to_rows", "nits.images.rows"),
    ],
)
def test_users_can_import_what_they_need(name: str, module: str) -> None:
    package, _, short = f"nits.{name}".rpartition(".")
    assert short in import_module(package).__all__
    assert getattr(import_module(package), short) is getattr(import_module(module), short)


def test_types_of_the_public_names_are_known_to_checkers() -> None:
    """What `__getattr__` finds, a type checker reads from the imports under TYPE_CHECKING."""
    tree = ast.parse(Path(nits.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    declared = {alias.asname or alias.name for node in imports for alias in node.names}
    assert set(nits.__all__) <= declared


def test_importing_nits_imports_nothing_heavy() -> None:
    heavy = ("torch", "numpy", "sklearn", "nits.images", "nits.training")
    code = f"import sys, nits; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="module 'nits' has no attribute 'nothing'"):
        nits.nothing  # noqa: B018 - asking is the test
