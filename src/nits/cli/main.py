"""The command line: nits fit, score, sample, info, plot and report.

Data go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb; returns 2, with one line on stderr, if the user made a mistake or stopped it."""
    args = parser().parse_args(argv)
    try:
        command = import_module(f"nits.cli.commands.{args.verb}")
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _notice
            return int(command.run(args))
    except KeyboardInterrupt:
        print("error: interrupted; nothing was written.", file=sys.stderr)
    except BrokenPipeError:
        return 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
    return 2


def _notice(message: Warning | str, *_: object, **__: object) -> None:
    """Shows a warning as one line."""
    print(f"note: {_one_line(message)}", file=sys.stderr)


def _one_line(error: BaseException | str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'nits[table,plot,report]'."
    return " ".join(str(error).split()) or type(error).__name__


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all verbs."""
    whole = argparse.ArgumentParser(
        prog="nits",
        description="Exact densities of tables and images: learn one, score with it, draw from it.",
    )
    whole.add_argument("--version", action="version", version=_version())
    verbs = whole.add_subparsers(
        dest="verb", required=True, metavar="fit | score | sample | info | plot | report"
    )
    _fit(verbs.add_parser("fit", help="learn the density of a table or of images"))
    _score(verbs.add_parser("score", help="log-density of every row, or of every image"))
    _sample(verbs.add_parser("sample", help="draw new rows or images"))
    info = verbs.add_parser("info", help="what a model file holds")
    info.add_argument("model")
    _plot(verbs.add_parser("plot", help="draw figures of a model beside its data"))
    _report(verbs.add_parser("report", help="write how far a model can be trusted, as a page"))
    return whole


def _version() -> str:
    from importlib.metadata import version

    return f"nits {version('nits')}"


def _fit(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "table",
        help=".csv, .csv.gz or .parquet, - for CSV on standard input, or a folder of PNG or JPEG",
    )
    verb.add_argument(
        "-o", "--output", required=True, help="file for the model, such as model.nits"
    )
    verb.add_argument(
        "--max-minutes", type=_positive, help="time limit; by default there is a limit on steps"
    )
    verb.add_argument(
        "--max-steps", type=_count, help="by default it depends on the size of the data"
    )
    verb.add_argument(
        "--context", type=_names, default=[], help="columns to condition on, such as a,b"
    )
    verb.add_argument("--drop", type=_names, default=[], help="columns to leave out")
    verb.add_argument(
        "--order", type=_names, help="columns in the order to model them, such as b,a; or greedy"
    )
    verb.add_argument(
        "--members", type=_count, help="networks to train and mix; by default by the table's size"
    )
    verb.add_argument("--kind", type=_pair, action="append", default=[], metavar="COLUMN=KIND")
    verb.add_argument(
        "--support", type=_support, action="append", default=[], metavar="COLUMN=LOW:HIGH"
    )
    verb.add_argument(
        "--whiten", action="store_true", help="for real columns that nearly determine one another"
    )
    verb.add_argument(
        "--pool-below", type=int, default=0, help="pool categories in fewer rows than this"
    )
    verb.add_argument("--validation-fraction", type=float, default=0.1)
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--quiet", action="store_true", help="show no progress")
    images = verb.add_argument_group("for a folder of images")
    images.add_argument("--size", help="tiny, small, paper-bsds300 or paper-cifar10")
    images.add_argument(
        "--pnn", type=_widths, help="hidden layers of each channel's PNN, such as 16,16"
    )
    images.add_argument(
        "--dequantize", choices=["uniform"], help="model the density of pixels with added noise"
    )
    images.add_argument("--checkpoint", help="file to write every three minutes and to resume from")


def _score(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table")
    verb.add_argument(
        "-o", "--output", default="-", help="file for the scores; by default CSV on standard output"
    )
    verb.add_argument(
        "--per-column", action="store_true", help="write each column's log-density, too"
    )
    verb.add_argument("--quiet", action="store_true")


def _sample(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("-n", "--rows", type=_count, required=True)
    verb.add_argument("-o", "--output", default="-")
    verb.add_argument("--given", type=_pair, action="append", default=[], metavar="COLUMN=VALUE")
    verb.add_argument("--complete", action="store_true", help="draw no missing values")
    verb.add_argument("--seed", type=int)
    verb.add_argument("--quiet", action="store_true")


def _plot(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table")
    verb.add_argument("-o", "--output", required=True, help="folder for the figures")
    verb.add_argument("--seed", type=int, default=0)


def _report(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table", help="rows, or a folder of images, to hold the model against")
    verb.add_argument("-o", "--output", required=True, help="file for the page: report.html")
    verb.add_argument(
        "--held-out",
        metavar="TABLE",
        help="rows that the model did not learn from, by which it is judged",
    )
    verb.add_argument(
        "--rows", type=_count, default=5000, help="rows of a longer table to look at; 5000"
    )
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--quiet", action="store_true", help="show no progress")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, but is {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, but is {text}")
    return value


def _widths(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must look like COLUMN=VALUE, but is {text!r}")
    return name, value


def _support(text: str) -> tuple[str, tuple[float, float]]:
    name, ends = _pair(text)
    low, colon, high = ends.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must look like COLUMN=LOW:HIGH, but is {text!r}")
    return name, (float(low or "-inf"), float(high or "inf"))


if __name__ == "__main__":
    sys.exit(main())
