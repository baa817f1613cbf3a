"""How training runs take their steps, look at validation rows, report and are kept: one or more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nits.training.interrupts import Interrupts
from nits.training.loop import Loop
from nits.training.progress import Reporter

INTERRUPTED = "interrupted"
"""How a run has ended that Ctrl-C came to."""

SHOWN_SECONDS = 0.5
"""Between two reports of the progress."""


class Crew:
    """Runs that are trained side by side, step by step; see `Team` for one that shares the steps.

    All have one recipe and one budget, and have taken as many steps. Each leaves when its own
    validation has stalled, as if it had been alone.

    loops: Those that go on.
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = list(loops)

    def advance(self, progress: float) -> None:
        """Takes one step of each."""
        for loop in self.loops:
            loop.advance(progress)

    def validated(self) -> list[float | None]:
        """Returns the mean log-likelihoods of their validation rows."""
        return [loop.validated() for loop in self.loops]

    def leave(self, gone: Sequence[Loop]) -> None:
        """Has some go on no longer."""
        self.loops = [loop for loop in self.loops if loop not in gone]

    def run(
        self,
        reporter: Reporter,
        interrupts: Interrupts,
        save: Callable[[], None] | None,
        save_every: float,
        until: int | None = None,
    ) -> None:
        """Trains until the budget is used up, or validation has stalled for all.

        save: Keeps all runs, every so many seconds.
        until: Steps after which to return in any case.
        """
        for loop in self.loops:
            loop.begin()
        lead = self.loops[0]
        if lead.step == 0:
            for loop, value in zip(self.loops, self.validated(), strict=True):
                loop.evaluate_start(value)
        saved = shown = evaluated = lead.now()
        while self.loops and self.loops[0].step != until:
            lead = self.loops[0]
            lead.check(interrupts)
            now = lead.now()
            progress = max(loop.used(now) for loop in self.loops)
            if lead.recent and (progress >= 1 or lead.due(now - evaluated)):
                self._evaluate(now - evaluated)
                evaluated = now = lead.now()
            self._leave_at_the_end(progress)
            if not self.loops:
                break
            self.advance(min(progress, 1.0))
            if now - shown > SHOWN_SECONDS:
                with interrupts.noted():
                    reporter.update(progress, *self._figures(now - evaluated))
                shown = now
            if save is not None and now - saved > save_every:
                save()
                saved = now
        if until is None:
            reporter.update(1.0, *lead.figures(1.0))

    def _figures(self, seconds: float) -> tuple[float, float | None, float]:
        """Returns the figures of the first, and the rows per second of all."""
        train, validation, speed = self.loops[0].figures(seconds)
        return train, validation, speed * len(self.loops)

    def _evaluate(self, seconds: float) -> None:
        for loop, value in zip(self.loops, self.validated(), strict=True):
            loop.evaluate(seconds, value)

    def _leave_at_the_end(self, progress: float) -> None:
        """Has those leave that have stalled, and all when the budget is used up."""
        for loop in self.loops:
            if progress >= 1 and loop.step:  # one step is taken, however late it is
                loop.history.stopped = "budget"
        if gone := [loop for loop in self.loops if loop.history.stopped]:
            self.leave(gone)
