"""The reference: every public name has a place and words, and every example in it runs."""

import doctest
import inspect
import re
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import nits

ROOMS = (".datasets", ".engines", ".heads", ".images", ".weights")
PACKAGES = tuple(f"nits{room}" for room in ("", *ROOMS))
NAMES = [f"{package}.{name}" for package in PACKAGES for name in import_module(package).__all__]
PAGES = sorted((Path(__file__).parent.parent / "docs" / "reference").glob("*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
PLACED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", TEXT, re.MULTILINE))

ABSTRACT = ("Edges", "Given", "Head", "PNNHead")
FROM_FILES = (
    *("bsds300", "cifar10", "fashion_mnist", "gas", "hepmass", "image_folder", "load"),
    *("miniboone", "mnist", "power", "table"),
)
NO_EXAMPLE = {
    *(f"nits.heads.{name}" for name in ABSTRACT),
    "nits.engines.Engine",
    *(f"nits.weights.{name}" for name in ("Replay", "Stepper", "WeightModel")),
    *(f"nits.datasets.{name}" for name in FROM_FILES),
}
"""What others build on, and what reads files that are not here."""


def found(name: str) -> Any:
    package, _, short = name.rpartition(".")
    return getattr(import_module(package), short)


OBJECTS = {name: found(name) for name in NAMES if not isinstance(found(name), ModuleType)}
DESCRIBED = {name: one for name, one in OBJECTS.items() if callable(one)}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_name_has_its_place(name: str) -> None:
    assert name in PLACED, f"add {name} to a page of docs/reference"


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_public_name_has_words(name: str) -> None:
    one = DESCRIBED[name]
    assert (one.__doc__ or "").strip(), name
    if not inspect.isclass(one):
        return
    for method, value in vars(one).items():
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not method.startswith("_") and inspect.isfunction(plain):
            assert inspect.getdoc(getattr(one, method)), f"{name}.{method} has no docstring"


def examples() -> dict[str, doctest.DocTest]:
    """Returns the examples of docstrings and of the reference's pages, by where they are."""
    parser, tests = doctest.DocTestParser(), {}
    for name, one in OBJECTS.items():
        text = inspect.getdoc(one) if callable(one) else None
        if text and ">>>" in text:
            tests[name] = parser.get_doctest(text, {}, name, inspect.getsourcefile(one), 0)
    for page in PAGES:
        blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for k, block in enumerate(blocks):
            name = f"{page.name} {k + 1}"
            tests[name] = parser.get_doctest(block, {}, name, str(page), 0)
    return tests


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs(name: str) -> None:
    torch.manual_seed(0)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = runner.run(EXAMPLES[name], out=told.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(told)


@pytest.mark.parametrize("name", [n for n in OBJECTS if n not in NO_EXAMPLE])
def test_every_public_name_is_used_in_an_example(name: str) -> None:
    sources = "\n".join(line.source for test in EXAMPLES.values() for line in test.examples)
    assert re.search(rf"\b{re.escape(name)}\b", sources), f"{name} is in no example"


def test_a_name_without_a_place_is_noticed() -> None:
    assert "nits.NITSDensity" in PLACED
    assert "nits.nothing" not in PLACED
    assert set(nits.__all__) - {"datasets", "heads", "images", "weights"} <= {
        name.removeprefix("nits.") for name in PLACED
    }
