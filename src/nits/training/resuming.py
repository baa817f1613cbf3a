"""How a checkpoint keeps the state of a training run, and which run may go on from it."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nits.training import checkpoint as files
from nits.training import stopping
from nits.training.checkpoint import State
from nits.training.history import History

if TYPE_CHECKING:
    from nits.training.loop import Loop

GROUPS = ("model", "average", "best", "optimizer")

OTHER_ROWS = (
    "the checkpoint {place} was made from other {what}, but this run has as many; "
    "resume with the rows of the first run, in the same order."
)


def save(loop: Loop, place: Path) -> None:
    """Writes a checkpoint, if that is possible; what was learned is not lost with it."""
    states = {
        "model": loop.model.state_dict(),
        "average": loop.average.state_dict(),
        "best": loop.best_weights.state(),
        "optimizer": files.optimizer_state(loop.optimizer),
    }
    record = {
        "fingerprint": _fingerprint(loop),
        "step": loop.step,
        "seconds": loop.seconds,
        "recent": loop.recent,
        "bad": loop.bad,
        "best": None if loop.best == -math.inf else loop.best,
        "history": loop.history.to_dict(),
    }
    with files.dispensable(place):
        files.write(place, states, record)


def load(loop: Loop, place: Path) -> None:
    """Restores the state of a checkpoint of the same run."""
    states, record = files.read(place)
    if set(states) - set(GROUPS) or "model" not in states or "step" not in record:
        raise ValueError(f"{place} is no checkpoint of a training run; pass a file that fit wrote.")
    _refuse_other_runs(loop, place, record["fingerprint"])
    with files.described(place):
        _restore(loop, states, record)


def _fingerprint(loop: Loop) -> dict[str, Any]:
    """Returns what must be the same for a run to go on; the budget may be another."""
    held_out = loop.held_out
    return {
        "rows": len(loop.train),
        "seed": loop.seed,
        "recipe": repr(loop.recipe),
        "columns": loop.model.columns,
        "training rows": loop.train.digest(),
        "validation rows": None if held_out is None else held_out.digest(),
    }


def _refuse_other_runs(loop: Loop, place: Path, was: dict[str, Any]) -> None:
    for name, value in _fingerprint(loop).items():
        if was.get(name) == value:
            continue
        if name.endswith(" rows"):
            raise ValueError(OTHER_ROWS.format(place=place, what=name))
        raise ValueError(
            f"the checkpoint was made with {name}={str(was.get(name))[:400]}, "
            f"but this run has {value}; "
            "resume with the arguments of the first run."
        )


def _restore(loop: Loop, states: dict[str, State], record: dict[str, Any]) -> None:
    history = History.from_dict(_history(record["history"]))
    step, bad = (files.count(record[name], name) for name in ("step", "bad"))
    recent = [files.number(value, "recent") for value in record["recent"]]
    seconds = files.number(record["seconds"], "seconds")
    best = -math.inf if record["best"] is None else files.number(record["best"], "best")
    for name in ("model", "average", "best"):
        files.refuse_nan(states[name], {n for n, _ in loop.model.named_parameters()})
        _fit_together(loop.model.state_dict(), states[name])
    loop.model.load_state_dict(states["model"])
    loop.average.load_state_dict(states["average"])
    loop.best_weights.take(states["best"])
    files.load_optimizer(loop.optimizer, states.get("optimizer", {}))
    loop.step, loop.bad, loop.recent, loop.seconds, loop.best = step, bad, recent, seconds, best
    loop.history = history
    loop.counted = stopping.counted(history, stopping.settled(loop.recipe))
    stalled = not recent and stopping.stalled(history, loop.recipe)
    loop.history.stopped = "patience" if stalled else ""


def _fit_together(expected: State, found: dict[str, Tensor]) -> None:
    """Refuses tensors of other names, shapes or types than those of the model."""
    shapes = [
        {name: (tuple(t.shape), t.dtype) for name, t in state.items()}
        for state in (expected, found)
    ]
    if shapes[0] != shapes[1]:
        odd = next(iter(set(shapes[0].items()) ^ set(shapes[1].items())))[0]
        raise ValueError(f"its weights are not those of this model: {odd}")


def _history(figures: dict[str, Any]) -> dict[str, Any]:
    """Checks the figures of a history: each of the kind that it has in a new one."""
    blank = History()
    known = {field.name: getattr(blank, field.name) for field in fields(History)}
    for name, value in figures.items():
        if name not in known:
            raise ValueError(f"a history has no {name!r}")
        if name == "kernels":
            files.words(value, name)
        elif isinstance(known[name], list):
            _ = [files.number(item, name) for item in files.listed(value, name)]
        elif isinstance(known[name], str):
            files.words([value], name)
        elif isinstance(known[name], int):
            files.count(value, name)
        elif value is not None:
            files.number(value, name)
    return figures
