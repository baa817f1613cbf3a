"""Ctrl-C during training: it waits for the end of a step, so that no step is half taken.

So does SIGTERM, with which systems end processes, where `as_interrupt` handles it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


def as_interrupt(number: int, frame: FrameType | None) -> None:
    """Handles a signal as Python handles Ctrl-C."""
    raise KeyboardInterrupt


class Interrupts:
    """Remembers that Ctrl-C came.

    A second Ctrl-C does not wait: it raises KeyboardInterrupt wherever training is.
    """

    def __init__(self) -> None:
        self.came = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handles the signal."""
        if self.came:
            raise KeyboardInterrupt
        self.came = True

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Has an interrupt that the block raises wait for the next check, as Ctrl-C does."""
        try:
            yield
        except KeyboardInterrupt:
            self.came = True

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C came."""
        if self.came:
            self.came = False
            raise KeyboardInterrupt


@contextmanager
def waiting() -> Iterator[Interrupts]:
    """Has Ctrl-C wait for the next check, or for the end of the block.

    Nothing changes in threads that Ctrl-C does not reach, and if somebody else handles it.
    """
    found = Interrupts()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = (signal.default_int_handler, as_interrupt)
    handled = [number for number, handler in before.items() if handler in ours]
    if current_thread() is not main_thread() or not handled:
        yield found
        return
    for number in handled:
        signal.signal(number, found.note)
    try:
        yield found
        found.check()
    finally:
        for number in handled:
            signal.signal(number, before[number])
