"""Model files and checkpoints that somebody has changed, with a checksum that fits.

Each case changes a good file by its seed: a number, a list, a name or a tensor becomes something
else, or the bytes do. Reading must refuse it in one line, or give a model that scores and draws; it
may take neither long nor much memory, and damaged bytes must always be refused.
"""

from __future__ import annotations

import copy
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file

import nits
from mixed_table import mixed, small
from nits.model import storage
from nits.training import checkpoint as files
from two_columns import QUICK, rows
from two_columns import small as two_columns

HOSTILE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 17, 30_000, 2**31, 2**63, 10**30, -(2**40), 0.5, -1.5,
    1e308, "", "x", "inf", "nan", "\x1b[31m", [], {}, [[]], [1, 2], [None], {"a": 1}, ["a"],
    [2**31], [[[[[[]]]]]], "9" * 400,
]  # fmt: skip

TENSORS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda t: torch.full_like(t, torch.nan) if t.is_floating_point() else t + 2**40,
    lambda t: torch.full_like(t, torch.inf) if t.is_floating_point() else -t - 1,
    lambda t: t.flatten()[:0],
    lambda t: t.flatten()[:1],
    lambda t: t.unsqueeze(0),
    lambda t: t.double(),
    lambda t: t.to(torch.int8),
    lambda t: t * 1e30 if t.is_floating_point() else t * 0,
    lambda t: torch.zeros(3, 0, 2),
]


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


@cache
def folder() -> Path:
    """Returns a folder with a good file of each sort."""
    _folders.append(tempfile.TemporaryDirectory(prefix="nits-campaign-"))
    place = Path(_folders[-1].name)
    table = mixed(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small(members=3, max_steps=2, hidden=8).fit(table).save(place / "members.nits")
        small(context=["city"], max_steps=2).fit(table).save(place / "given.nits")
        small(context=["city", "rain"], trees=True, max_steps=2).fit(table).save(
            place / "trees.nits"
        )
        small(answers="any", outliers=True, max_steps=2).fit(table).save(place / "any.nits")
        small(whiten=True, max_steps=2).fit(table[["rain"]].assign(y=table["rain"] ** 2)).save(
            place / "whitened.nits"
        )
        images = np.random.default_rng(0).integers(0, 256, (8, 4, 4), np.uint8)
        convolution, window = nits.weights.ConvSize(4, 2, (1,)), nits.weights.WindowSize(2, 6, 1)
        for name, size in (("images", convolution), ("windows", window)):
            nits.NITSImages(size=size, pnn=(4,), max_steps=1).fit(images).save(
                place / f"{name}.nits"
            )
    heads = [nits.heads.Continuous(), nits.heads.Integer(0, 9), nits.heads.Categorical(3)]
    one = nits.NITS.mlp(heads, hidden=8, blocks=1)
    nits.Mixture([one, nits.NITS.independent(heads)]).save(place / "density.nits")
    two = [nits.NITS.mlp(heads, hidden=6, blocks=1) for _ in range(2)]
    nits.Tempered(two, power=0.3, of_columns=[[1, 2, 3], [3, 2, 1]]).save(place / "tempered.nits")
    grey = nits.NITS.conv((1, 3, 3), nits.heads.Quantized(0.0, 1.0, 4, (4,)), size=window)
    turned = nits.Symmetric(grey, nits.images.symmetries(3, 3))
    turned.save(place / "symmetric.nits")
    nits.fit(
        two_columns(), rows(), max_steps=2, recipe=QUICK, progress=False,
        checkpoint=place / "run.safetensors",
    )  # fmt: skip
    return place


SORTS = (
    *("members", "given", "trees", "any", "whitened"),
    *("images", "windows", "density", "tempered", "symmetric", "run"),
)


def changed(tree: Any, chance: random.Random) -> Any:
    """Returns a tree of JSON with something in it that should not be there."""
    tree = copy.deepcopy(tree)
    places = list(_places(tree))
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        holder, key = chance.choice(places)
        how = chance.random()
        if how < 0.1 and isinstance(holder, dict):
            holder.pop(key, None)
        elif how < 0.2 and isinstance(holder, list):
            holder.append(copy.deepcopy(chance.choice(HOSTILE)))
        elif how < 0.25:
            _nested(holder, key)
        elif how < 0.35:
            other, name = chance.choice(places)
            if _has(other, name):
                _put(holder, key, copy.deepcopy(other[name]))
        else:
            _put(holder, key, copy.deepcopy(chance.choice(HOSTILE)))
    return tree


def _places(tree: Any) -> Any:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _put(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, dict) or _has(holder, key):
        holder[key] = value


def _nested(holder: Any, key: Any) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    _put(holder, key, deep)


def _tensors(tensors: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    tensors = dict(tensors)
    name = chance.choice(sorted(tensors))
    if chance.random() < 0.2:
        tensors[chance.choice(["x", "model.x", ""]) + name] = tensors.pop(name)
    else:
        tensors[name] = chance.choice(TENSORS)(tensors[name]).contiguous()
    return tensors


class Outcome(NamedTuple):
    """What became of a file: refused or accepted, and what was wrong about that, if anything."""

    refused: bool
    wrong: str | None


def attack(seed: int) -> Outcome:
    """Runs one case."""
    chance = random.Random(seed)
    sort = chance.choice(SORTS)
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(place) / "case"
        if chance.random() < 0.3:
            _damaged(sort, path, chance)
            return _judged(path, sort, must_refuse=True)
        (_crafted_run if sort == "run" else _crafted_model)(sort, path, chance)
        return _judged(path, sort, must_refuse=False)


def _good(sort: str) -> Path:
    return folder() / ("run.safetensors" if sort == "run" else f"{sort}.nits")


def _damaged(sort: str, path: Path, chance: random.Random) -> None:
    """Writes a file with other bytes, and its old checksum."""
    data = bytearray(_good(sort).read_bytes())
    how = chance.random()
    at = chance.randrange(len(data))
    if how < 0.5:
        data[at] ^= 1 << chance.randrange(8)
    elif how < 0.7:
        del data[at:]
    elif how < 0.8:
        data[at:at] = chance.randbytes(chance.randrange(1, 50))
    elif how < 0.9:
        data[:8] = chance.randbytes(8)
    else:
        data = bytearray(chance.randbytes(chance.randrange(200)))
    path.write_bytes(data)


def _crafted_model(sort: str, path: Path, chance: random.Random) -> None:
    tensors, about = storage.read(_good(sort))
    if chance.random() < 0.75:
        about = changed(about, chance)
    else:
        tensors = _tensors(tensors, chance)
    words = json.dumps(about, sort_keys=True)
    metadata = {"format": "nits", "version": "1", "about": words}
    save_file(tensors, path, {**metadata, "sha256": storage.digest(tensors, words)})


def _crafted_run(sort: str, path: Path, chance: random.Random) -> None:
    states, record = files.read(_good(sort))
    if chance.random() < 0.6:
        record = changed(record, chance)
    else:
        group = chance.choice(sorted(states))
        states[group] = _tensors(states[group], chance)
    files.write(path, states, record)


def _judged(path: Path, sort: str, *, must_refuse: bool) -> Outcome:
    same = path.read_bytes() == _good(sort).read_bytes()
    try:
        model = _read(path, sort)
    except (ValueError, FileNotFoundError) as error:
        one_line = "\n" not in str(error) and len(str(error)) < 1000
        return Outcome(True, None if one_line else f"a message of several lines: {error}")
    except Exception as error:
        return Outcome(True, f"reading raised {type(error).__name__}: {error}")
    if must_refuse and not same and not _alike(model, sort):
        return Outcome(False, "a damaged file was accepted, with other numbers")
    try:
        _use(model)
    except (ValueError, TypeError) as error:
        return Outcome(True, None if "\n" not in str(error) else f"several lines: {error}")
    except Exception as error:
        return Outcome(False, f"using it raised {type(error).__name__}: {error}")
    return Outcome(False, None)


def _read(path: Path, sort: str) -> Any:
    if sort == "run":
        return nits.fit(
            two_columns(), rows(), max_steps=4, recipe=QUICK, progress=False, resume=path
        )
    return nits.load(path)


def _alike(model: Any, sort: str) -> bool:
    """Returns whether a model has the bits of the good one: its file differs where nothing is."""
    if sort == "run":
        return False
    states = [
        getattr(each, "model_", each).state_dict() for each in (model, nits.load(_good(sort)))
    ]
    return all(torch.equal(states[0][name], states[1][name]) for name in states[1])


def _use(model: Any) -> None:
    if isinstance(model, nits.NITSDensity):
        if model.context_schema_.columns:
            model.score_samples(mixed(3))
        else:
            drawn = model.sample(3, random_state=0)
            model.score_samples(drawn)
            if model.companion_ is not None:
                model.given(city="Rome").sample(2, random_state=0)
                model.outlier_scores(drawn)
    elif isinstance(model, nits.NITSImages):
        model.score_samples(np.zeros((1, 4, 4), np.uint8))
    elif not isinstance(model, nits.History):
        model.log_prob(model.sample(2))
