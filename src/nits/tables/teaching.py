"""What becomes of the tasks of members: networks are trained, simple densities start from rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nits.model.density import Density
from nits.tables import resume
from nits.tables.sharing import Team
from nits.tables.tasks import Learned, Task
from nits.training import ranks
from nits.training.checkpoint import NoCheckpointError, try_out
from nits.training.crew import INTERRUPTED
from nits.training.likelihood import SCORED_AT_ONCE, start_from_data
from nits.training.progress import Reporter
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows
from nits.training.together import Run, fit_together


def ended(result: Learned) -> bool:
    """Returns whether a member has learned to the end, and was not interrupted."""
    return result.history is None or result.history["stopped"] != INTERRUPTED


def taught(task: Task, reporter: Reporter) -> Learned:
    """Trains a network, or starts a simple density from the rows, unless a checkpoint has it."""
    return taught_together((task,), reporter)[0]


def taught_together(team: Team, reporter: Reporter) -> list[Learned]:
    """Does the tasks of a team: see `taught`."""
    group = ranks.current()
    group.together()  # no rank writes before all have looked
    found = [resume.known(task) for task in team]
    begun = [resume.begun(task) for task in team]
    group.together()
    left = [k for k, known in enumerate(found) if known is None]
    if left:
        learned = _taught([team[k] for k in left], [begun[k] for k in left], reporter)
        for k, result in zip(left, learned, strict=True):
            found[k] = result
            if ended(result) and group.rank == 0:
                resume.keep(team[k], result)
    return [result for result in found if result is not None]


def _taught(
    tasks: Sequence[Task], begun: Sequence[Path | None], reporter: Reporter
) -> list[Learned]:
    if tasks[0].recipe is None:
        return [_started(task) for task in tasks]
    runs = [_run_of(task, place) for task, place in zip(tasks, begun, strict=True)]
    histories = fit_together(runs, reporter, checkpoint_minutes=resume.MINUTES)
    return [
        Learned(task.density, history.to_dict(), _scores(task.density, _kept(task)))
        for task, history in zip(tasks, histories, strict=True)
    ]


def _started(task: Task) -> Learned:
    """Starts a simple density from the rows."""
    start_from_data(task.density, task.rows.view(task.fitted))
    return Learned(task.density.eval(), None, _scores(task.density, _kept(task)))


def _kept(task: Task) -> Rows:
    """Returns the rows that a member holds out."""
    return task.rows.view(task.held_out)


def _run_of(task: Task, begun: Path | None) -> Run:
    """Returns how a network is trained, without a checkpoint if none can be written."""
    place = task.place
    try:
        if place is not None:
            try_out(place)
    except NoCheckpointError as error:  # what other members have learned shall not be lost
        warnings.warn(f"{error} The work goes on without it; make room.", stacklevel=2)
        place = None
    held_out = _kept(task)
    return Run(
        task.density,
        task.rows.view(task.fitted),
        held_out if len(held_out) else None,
        task.recipe or Recipe(),
        Budget(None, task.max_steps, task.max_minutes),
        task.seed,
        place,
        begun,
    )


def _scores(density: Density, rows: Rows) -> NDArray[np.float64]:
    with torch.no_grad():
        batches = rows.batches(SCORED_AT_ONCE, density.like)
        parts = [density.log_prob(batch.x, batch.context).double() for batch in batches]
    return torch.cat(parts).cpu().numpy() if parts else np.empty(0)
