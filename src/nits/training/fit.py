"""Maximum likelihood: `fit` trains a model on rows and returns what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from nits import kernels
from nits.model.density import Density
from nits.training import checkpoint as files
from nits.training import interrupts, memory, resuming, subnormal
from nits.training.crew import INTERRUPTED, Crew
from nits.training.history import History
from nits.training.loop import Loop
from nits.training.progress import Bar, Reporter, Silent
from nits.training.ranks import RankLost
from nits.training.recipe import Budget, Recipe
from nits.training.rows import Array, Rows, checked, inside, refuse_degenerate, split
from nits.training.streamed import Streamed


def fit(  # noqa: PLR0913 - one function is the interface; the numbers of the method are in Recipe
    model: Density,
    data: Array | Rows,
    *,
    validation: Array | Rows | float = 0.1,
    context: Array | None = None,
    sample_weight: Array | None = None,
    recipe: Recipe | None = None,
    max_epochs: int | None = None,
    max_steps: int | None = None,
    max_minutes: float | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_minutes: float = 3.0,
    resume: str | Path | None = None,
    seed: int = 0,
    compile: bool | None = None,
    progress: bool | Reporter = True,
) -> History:
    """Trains the model by maximum likelihood, in place, and returns the figures of the run.

    data: Rows, shape (N, D); a tensor or an array, which may be memory-mapped. Standardize the
        columns first: float32 has few digits for values far from 1. Or `nits.Rows`, which have
        their context and weights.
    validation: Rows by which the best weights are chosen, as `nits.Rows` if they have a context or
        weights, or a share of the data to hold out for this.
    max_epochs, max_steps, max_minutes: The budget, at the end of which a cosine schedule reaches
        its floor; 100 epochs by default.
    checkpoint: File to write every `checkpoint_minutes`, on Ctrl-C and at the end.
    resume: A checkpoint of the same run, which goes on from there.
    compile: False to train by plain tensor operations, True to have torch.compile make kernels
        where our own cannot be used; by default if it pays. `nits.kernels` rules for scoring, too.
    progress: Whether to show a bar, or what is told of the progress in its place.

    >>> import nits, torch
    >>> model = nits.NITS.mlp(2, hidden=16, blocks=1)
    >>> history = nits.fit(model, torch.randn(500, 2), max_steps=20, seed=1, progress=False)
    >>> history.step[-1]
    20
    """
    recipe = recipe or Recipe()
    if max_epochs is None and max_steps is None and max_minutes is None:
        max_epochs = 100
    budget = Budget(max_epochs, max_steps, max_minutes)
    if checkpoint is not None:
        files.try_out(Path(checkpoint))
    rows = _rows(data, context, sample_weight)
    place = None if checkpoint is None else Path(checkpoint)
    with _reporter(progress) as reporter, subnormal.flushed():
        loop = opened(model, rows, validation, (recipe, budget, seed), reporter)
        with memory.returned():
            loop.prepare(resume)
        with memory.kept():
            save_every, crew = 60 * checkpoint_minutes, Crew([loop])
            trained(crew, [place], reporter, save_every=save_every, compile=compile)
        history = loop.history
    del loop, crew  # which are several times as large as the model
    memory.give_back()
    return history


def opened(
    model: Density,
    rows: Rows,
    validation: Array | Rows | float,
    plan: tuple[Recipe, Budget, int],
    reporter: Reporter,
) -> Loop:
    """Checks what a run needs, and returns it, ready to be prepared.

    plan: Recipe, budget and seed.
    """
    rows = checked(model, rows)
    refuse_degenerate(model, rows)
    train, held_out = _validation(model, rows, validation, plan[2])
    train, left_out = _inside(model, train, "training", reporter)
    held_out = None if held_out is None else _inside(model, held_out, "validation", reporter)[0]
    loop = Loop(model, train, held_out, *plan)
    loop.history.outside = left_out
    return loop


def trained(
    crew: Crew,
    places: Sequence[Path | None],
    reporter: Reporter,
    *,
    save_every: float,
    compile: bool | None = None,
    until: int | None = None,
) -> None:
    """Trains runs that are prepared, keeps those that have a place, and ends them.

    until: Steps after which they are not ended, but have only caught up.
    """
    loops = list(crew.loops)
    first = loops[0].ranks.rank == 0

    def save() -> None:
        for loop, place in zip(loops, places, strict=True):
            if place is not None and loop.whole and first:
                resuming.save(loop, place)

    with _kernels(loops[0], compile) as ran:
        try:
            with interrupts.waiting() as waiting, _kept(loops[0], places[0]):
                kept = save if first and any(places) else None
                crew.run(reporter, waiting, kept, save_every, until)
        except KeyboardInterrupt:
            for loop in crew.loops:
                loop.history.stopped = INTERRUPTED
            reporter.interrupted()
        finally:
            crew.leave(crew.loops)
            for loop in loops:
                loop.feed.close()
        for loop in loops:
            loop.agree()
        save()
        for loop in loops:
            loop.history.kernels = sorted({*loop.history.kernels, *ran})
            if until is None or loop.history.stopped:
                loop.finish()


@contextmanager
def _kept(loop: Loop, place: Path | None) -> Iterator[None]:
    """Saves what this rank has, which all had, if another one ends in the middle.

    Signals must wait meanwhile: torchrun sends one to all ranks that are left.
    """
    try:
        yield
    except RankLost as error:
        if place is None:
            raise RankLost(f"{error}; without a checkpoint nothing is left of it.") from None
        if loop.whole:
            resuming.save(loop, place)
        raise RankLost(
            f"{error}; all {loop.step} steps are in {place}, from which any ranks go on."
        ) from None


def _reporter(progress: bool | Reporter) -> Reporter:
    if isinstance(progress, bool):
        return Bar() if progress else Silent()
    return progress


def _rows(data: Array | Rows, context: Array | None, weight: Array | None) -> Rows:
    if not isinstance(data, Rows):
        return Rows(data, context, weight)
    if context is not None or weight is not None:
        raise ValueError(
            "nits.Rows must have their context and weights, but data is nits.Rows and they were "
            "passed besides; put them into it."
        )
    return data


def _kernels(loop: Loop, wanted: bool | None) -> AbstractContextManager[set[str]]:
    """Lets kernels train, unless the user has ruled them out here or by `nits.kernels`."""
    if wanted is False:
        return kernels.using(native=False, compiled=False, training=True)
    ruled_out = kernels.current().compiled is False
    pays = loop.worth_compiling() if wanted is None else wanted
    return kernels.using(compiled=pays and not ruled_out, training=True)


def _validation(
    model: Density, rows: Rows, validation: Array | Rows | float, seed: int
) -> tuple[Rows, Rows | None]:
    if isinstance(validation, int | float):
        return split(rows, float(validation), seed)
    held_out = validation if isinstance(validation, Rows) else Rows(validation)
    return rows, checked(model, held_out, "validation")


def _inside(model: Density, rows: Rows, name: str, reporter: Reporter) -> tuple[Rows, int]:
    """Leaves out rows outside the support, and returns how many; their density is always zero."""
    possible = inside(model, rows)
    count = int((~possible).sum())
    if count and isinstance(rows, Streamed):
        raise ValueError(
            f"rows of a table in pieces must lie in the support, but {count} do not; widen low and "
            "high of the heads."
        )
    if count:
        reporter.notice(
            f"{count} of {len(rows)} {name} rows lie outside the support and are left out."
        )
    if count == len(rows):
        raise ValueError(
            f"all {count} {name} rows lie outside the support; widen low and high of the heads."
        )
    return (rows.view(possible.nonzero().flatten()) if count else rows), count
