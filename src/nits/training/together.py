"""Training of several models at once: those of one shape share each step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from nits.model.density import Density
from nits.training import memory, subnormal
from nits.training import team as teams
from nits.training.crew import INTERRUPTED, Crew
from nits.training.fit import opened, trained
from nits.training.history import History
from nits.training.loop import Loop
from nits.training.progress import Reporter
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Rows
from nits.training.team import Team


class Run(NamedTuple):
    """One of the models, and what it learns from; see `nits.fit`.

    validation: Rows, or none.
    """

    model: Density
    rows: Rows
    validation: Rows | None
    recipe: Recipe
    budget: Budget
    seed: int
    checkpoint: Path | None = None
    resume: Path | None = None


def fit_together(
    runs: Sequence[Run], reporter: Reporter, *, checkpoint_minutes: float = 3.0
) -> list[History]:
    """Trains models in place, and returns the figures of each.

    Each has the bits that it would have with any others, or none, beside it.

    runs: With one budget. If it is in minutes, they are those of all runs together.
    """
    with subnormal.flushed():
        loops = []
        for run in runs:
            held_out = 0.0 if run.validation is None else run.validation
            plan = run.recipe, run.budget, run.seed
            loops.append(opened(run.model, run.rows, held_out, plan, reporter))
            with memory.returned():
                loops[-1].prepare(run.resume)
        places = {id(loop): run.checkpoint for loop, run in zip(loops, runs, strict=True)}
        with memory.kept():
            _Training(places, reporter, 60 * checkpoint_minutes).run(loops)
        histories = [loop.history for loop in loops]
    del loops  # which are several times as large as the models
    memory.give_back()
    return histories


class _Training(NamedTuple):
    places: dict[int, Path | None]
    reporter: Reporter
    save_every: float

    def run(self, loops: list[Loop]) -> None:
        """Trains all that are not at their end; those that a checkpoint has left behind first."""
        for loop in loops:
            if loop.history.stopped:
                loop.finish()
        going = [loop for loop in loops if not loop.history.stopped]
        if going:
            self._catch_up(going)
        if any(loop.history.stopped == INTERRUPTED for loop in going):
            for loop in going:
                loop.history.stopped = loop.history.stopped or INTERRUPTED
                loop.finish()
        elif going := [loop for loop in going if not loop.history.stopped]:
            self._together(going)

    def _catch_up(self, loops: list[Loop]) -> None:
        """Trains those that have taken fewer steps than others until they have taken as many."""
        furthest = max(loop.step for loop in loops)
        behind = sorted(
            (loop for loop in loops if loop.step < furthest), key=lambda loop: loop.step
        )
        for _, alike in groupby(behind, key=lambda loop: loop.step):
            self._together(list(alike), furthest)

    def _together(self, loops: list[Loop], until: int | None = None) -> None:
        keys = {teams.key(loop) for loop in loops}
        crew = Team(loops) if len(keys) == 1 and None not in keys else Crew(loops)
        places = [self.places[id(loop)] for loop in loops]
        trained(crew, places, self.reporter, save_every=self.save_every, until=until)
