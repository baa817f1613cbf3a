"""The command line: a mistake is one line, and what stops it leaves nothing half-written.

Data go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import current_thread, main_thread


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb; returns 2, with one line on stderr, if the user made a mistake or stopped it."""
    try:
        from nits import atomic
        from nits.cli import outputs, verbs  # so late, because an interrupt may come meanwhile

        args = verbs.parser().parse_args(argv)
        with _terminable():
            outputs.refuse_inputs(args)
            command = import_module(f"nits.cli.commands.{args.verb}")
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)
                warnings.showwarning = _notice
                code = int(command.run(args))
            if sys.stdout is not None:
                with atomic.naming("standard output"):
                    sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        print("error: interrupted; nothing was written.", file=sys.stderr)
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
    except RuntimeError as error:
        if type(error).__name__ != "RankLost":  # known by its name: torch is slow to import
            raise
        print(f"error: {_one_line(error)}", file=sys.stderr)
    return 2


@contextmanager
def _terminable() -> Iterator[None]:
    """Has SIGTERM, with which systems and `timeout` end processes, do what Ctrl-C does."""
    if current_thread() is not main_thread():
        yield
        return
    from nits.training.interrupts import as_interrupt

    before = signal.signal(signal.SIGTERM, as_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _forget_stdout() -> None:
    """Has what is left for a reader who has gone go nowhere, so that Python does not complain."""
    with suppress(OSError, ValueError):  # which a stdout that is no file raises
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _notice(message: Warning | str, *_: object, **__: object) -> None:
    """Shows a warning as one line."""
    print(f"note: {_one_line(message)}", file=sys.stderr)


def _one_line(error: BaseException | str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'nits[table,plot,report]'."
    from nits.printable import printable

    words = str(error)
    if isinstance(error, OSError) and words.startswith("[Errno"):
        named = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        words = f"{named}{error.strerror}."
    return printable(" ".join(words.split())) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
