"""The checkpoint of a fit to a table: a folder with a file about the fit, and one of each member.

While a member learns, its file is a checkpoint of its training; when it has learned, what it has
learned. So a fit that was interrupted or killed goes on where it was, and ends with the same model
as one that was not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from sklearn.utils import check_random_state

from nits.tables.tasks import Learned, Task
from nits.training import checkpoint as files
from nits.training import ranks
from nits.training.rows import Rows

if TYPE_CHECKING:
    from nits.tables.defaults import Plan
    from nits.tables.estimator import NITSDensity

ABOUT = "fit.safetensors"
"""The file about the fit."""

MINUTES = 1.0
"""From one checkpoint of a member to the next."""

FREE = ("checkpoint", "engine", "random_state", "verbose")
"""Parameters that may differ from one run to the next; of `random_state` the seed counts."""


class Kept(NamedTuple):
    """Where a fit is kept.

    fingerprint: A digest of its rows, columns, parameters and seed.
    """

    folder: Path
    fingerprint: str

    def placed(self, tasks: list[Task], after: int = 0) -> list[Task]:
        """Returns the tasks with a file for each; `after` so many of them."""
        return [
            task._replace(place=self.folder / f"member-{k:02}.safetensors", course=self.fingerprint)
            for k, task in enumerate(tasks, after)
        ]


def chosen(estimator: NITSDensity) -> int:
    """Returns the seed of a fit: that of the checkpoint, if the user has named none."""
    named = estimator.random_state
    known = seed(estimator.checkpoint) if named is None else None
    fresh = int(check_random_state(named).randint(2**31 - 1))
    return ranks.current().agreed(fresh if known is None else known)


def seed(checkpoint: str | Path | None) -> int | None:
    """Returns the seed of the fit that a checkpoint is of; None if there is none yet."""
    if checkpoint is None or not (Path(checkpoint) / ABOUT).is_file():
        return None
    place = Path(checkpoint) / ABOUT
    about = _about(place)
    with files.described(place):
        return files.count(about["seed"], "seed")


def opened(estimator: NITSDensity, rows: Rows, plan: Plan, seed: int) -> Kept | None:
    """Returns where to keep a fit, and refuses a folder of something else, or of another fit."""
    if estimator.checkpoint is None:
        return None
    folder = Path(estimator.checkpoint)
    found = _fingerprint(estimator, rows, plan, seed)
    if (folder / ABOUT).is_file():
        _refuse_others(folder, _about(folder / ABOUT), found)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"checkpoint must be a folder that a fit made, or a new one, but {folder} is "
            "something else; name another."
        )
    else:
        files.write(folder / ABOUT, {}, {"fingerprint": found})
    words = json.dumps(found, sort_keys=True)
    return Kept(folder, hashlib.sha256(words.encode()).hexdigest())


def _about(place: Path) -> dict[str, Any]:
    about: dict[str, Any] = files.read(place)[1]["fingerprint"]
    return about


def _fingerprint(
    estimator: NITSDensity, rows: Rows, plan: Plan, seed: int
) -> dict[str, int | str | dict[str, str]]:
    parameters = estimator.get_params(deep=False)
    columns = [estimator.schema_.to_dict(), estimator.context_schema_.to_dict()]
    words = json.dumps([columns, estimator.order_, repr(plan)], default=str)
    return {
        "seed": seed,
        "parameters": {name: repr(parameters[name]) for name in parameters if name not in FREE},
        "rows": rows.digest(),
        "columns": hashlib.sha256(words.encode()).hexdigest(),
    }


def _refuse_others(folder: Path, was: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuses the checkpoint of another fit."""
    with files.described(folder / ABOUT):
        names = dict(was["parameters"])
    for name, value in {"seed": found["seed"], **found["parameters"]}.items():
        before = names.get(name) if name != "seed" else was.get("seed")
        if before != value:
            raise ValueError(
                f"the checkpoint {folder} is of a fit with {name}={before}, but this one has "
                f"{value}; resume with the parameters of the first, or name another folder."
            )
    if was != found:
        raise ValueError(
            f"the checkpoint {folder} is of a fit to another table; resume with the rows of the "
            "first, in the same order, or name another folder."
        )


def known(task: Task) -> Learned | None:
    """Returns what a member has learned in an earlier run, if it had come to its end."""
    if task.place is None or not task.place.is_file():
        return None
    states, record = files.read(task.place)
    if record["fingerprint"].get("fit") is None:
        return None  # it was learning
    with files.described(task.place):
        if record["fingerprint"]["fit"] != task.course:
            raise ValueError("it is of another fit")
        files.refuse_nan(states["model"], {name for name, _ in task.density.named_parameters()})
        task.density.load_state_dict(states["model"])
        scores = states["held_out"]["scores"]
        if scores.shape != task.held_out.shape or scores.dtype != torch.float64:
            raise ValueError("it has other scores")
        return Learned(task.density.eval(), record["history"], scores.numpy())


def begun(task: Task) -> Path | None:
    """Returns the checkpoint that a member's training goes on from, if there is one."""
    return task.place if task.place is not None and task.place.is_file() else None


def keep(task: Task, result: Learned) -> None:
    """Writes what a member has learned."""
    if task.place is not None:
        states = {
            "model": result.density.state_dict(),
            "held_out": {"scores": torch.from_numpy(result.scores)},
        }
        record = {"fingerprint": {"fit": task.course}, "history": result.history}
        with files.dispensable(task.place):
            files.write(task.place, states, record)
