"""The verbs of the command line and their options.

Data go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import argparse

from nits.cli import types


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all verbs."""
    whole = argparse.ArgumentParser(
        prog="nits",
        description="Exact densities of tables and images: learn one, score with it, draw from it.",
    )
    whole.add_argument("--version", action="version", version=_version())
    verbs = whole.add_subparsers(
        dest="verb", required=True, metavar="fit | score | sample | … | report"
    )
    _fit(verbs.add_parser("fit", help="learn the density of a table or of images"))
    _score(verbs.add_parser("score", help="log-density of every row, or of every image"))
    _sample(verbs.add_parser("sample", help="draw new rows or images"))
    _predict(verbs.add_parser("predict", help="what to expect of some columns, given the others"))
    _outliers(verbs.add_parser("outliers", help="how surprising every row is, and which entries"))
    _probability(verbs.add_parser("probability", help="how probable an event is under a model"))
    _impute(verbs.add_parser("impute", help="fill in the missing values of a table"))
    info = verbs.add_parser("info", help="what a model file holds")
    info.add_argument("model")
    _plot(verbs.add_parser("plot", help="draw figures of a model beside its data"))
    _explore(verbs.add_parser("explore", help="a page to explore a model in the browser"))
    _report(verbs.add_parser("report", help="write how far a model can be trusted, as a page"))
    return whole


def _version() -> str:
    from importlib.metadata import version

    return f"nits {version('nits')}"


def _fit(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "table",
        help=".csv, .csv.gz or .parquet, - for CSV on standard input, or a folder of PNG or JPEG; "
        "or a folder, a pattern such as 'folder/*.parquet' or an address of tables beyond memory",
    )
    verb.add_argument(
        "-o", "--output", required=True, help="file for the model, such as model.nits"
    )
    verb.add_argument(
        "--max-minutes",
        type=types.positive,
        help="time limit; by default there is a limit on steps",
    )
    verb.add_argument(
        "--max-steps", type=types.count, help="by default it depends on the size of the data"
    )
    _fit_columns(verb)
    verb.add_argument("--validation-fraction", type=float, default=0.1)
    verb.add_argument("--seed", type=types.seed, default=0)
    verb.add_argument("--quiet", action="store_true", help="show no progress")
    verb.add_argument(
        "--checkpoint",
        help="folder, or file for images, that keeps the fit as it goes; if it has one that was "
        "interrupted or killed, that goes on",
    )
    verb.add_argument(
        "--resume", action="store_true", help="go on from --checkpoint, which must exist"
    )
    _engine(verb)
    verb.add_argument(
        "--ranks",
        type=types.count,
        help="with --engine ray: processes that train each network together, by Ray Train",
    )
    _fit_images(verb)


def _fit_columns(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--context", type=types.names, default=[], help="columns to condition on, such as a,b"
    )
    verb.add_argument("--drop", type=types.names, default=[], help="columns to leave out")
    verb.add_argument(
        "--order",
        type=types.names,
        help="columns to model first, such as b,a; or search (the default), table, several, greedy",
    )
    verb.add_argument(
        "--members",
        type=types.count,
        help="networks to train and mix; by default by the table's size",
    )
    verb.add_argument(
        "--answers", choices=["any"], help="learn to answer with any columns given, too"
    )
    verb.add_argument(
        "--outliers",
        action=argparse.BooleanOptionalAction,
        help="learn to score outliers, too; by default with several members and no context",
    )
    verb.add_argument(
        "--trees",
        action=argparse.BooleanOptionalAction,
        help="have all networks, or none, read guesses of boosted trees; for a model with a "
        "context, of which by default some do",
    )
    verb.add_argument(
        "--mixing", choices=["rows"], help="mix members by whole rows, which are drawn fastest"
    )
    verb.add_argument("--kind", type=types.pair, action="append", default=[], metavar="COLUMN=KIND")
    verb.add_argument(
        "--support", type=types.support, action="append", default=[], metavar="COLUMN=LOW:HIGH"
    )
    verb.add_argument(
        "--whiten", action="store_true", help="for real columns that nearly determine one another"
    )
    verb.add_argument(
        "--pool-below", type=int, default=0, help="pool categories in fewer rows than this"
    )


def _fit_images(verb: argparse.ArgumentParser) -> None:
    images = verb.add_argument_group("for a folder of images")
    images.add_argument("--size", help="tiny, small, window, paper-bsds300 or paper-cifar10")
    images.add_argument(
        "--pnn", type=types.widths, help="hidden layers of each channel's PNN, such as 16,16"
    )
    images.add_argument(
        "--dequantize", choices=["uniform"], help="model the density of pixels with added noise"
    )
    images.add_argument(
        "--precision", choices=["bfloat16"], help="of inner layers while they learn"
    )


def _score(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table", help="as of nits fit, also a folder, a pattern or an address")
    verb.add_argument(
        "-o",
        "--output",
        default="-",
        help="file for the scores, or with a slash at its end a folder like that of the tables; by "
        "default CSV on standard output",
    )
    verb.add_argument(
        "--per-column", action="store_true", help="write each column's log-density, too"
    )
    _engine(verb)
    _safe_csv(verb)
    verb.add_argument("--quiet", action="store_true")


def _predict(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model", help="of all columns, or one that was fitted with --context")
    verb.add_argument("table", help="with some of the columns, or with those of that context")
    verb.add_argument("-o", "--output", default="-", help="by default CSV on standard output")
    verb.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="to predict, may be repeated; by default those that the table lacks",
    )
    verb.add_argument(
        "--levels", type=types.levels, default=[0.05, 0.5, 0.95], help="quantiles, such as 0.1,0.9"
    )
    _safe_csv(verb)
    verb.add_argument("--quiet", action="store_true")


def _outliers(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table")
    verb.add_argument("-o", "--output", default="-", help="by default CSV on standard output")
    verb.add_argument(
        "--top", type=types.count, help="only so many rows, the most surprising first"
    )
    verb.add_argument("--per-column", action="store_true", help="write each entry's surprise, too")
    _safe_csv(verb)
    verb.add_argument("--quiet", action="store_true")


def _sample(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("-n", "--rows", type=types.count, required=True)
    verb.add_argument(
        "-o", "--output", default="-", help="file, or with a slash at its end a folder of Parquet"
    )
    verb.add_argument(
        "--partition-by",
        type=types.names,
        default=[],
        help="columns that tell the folders inside that folder, such as year,month",
    )
    _given(verb)
    verb.add_argument("--complete", action="store_true", help="draw no missing values")
    verb.add_argument(
        "--grow", action="store_true", help="write a grid of images again while it is drawn"
    )
    verb.add_argument("--seed", type=types.seed)
    _engine(verb)
    _safe_csv(verb)
    verb.add_argument("--quiet", action="store_true")


def _engine(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--engine",
        choices=["local", "ray"],
        help="where independent work runs: on the cores of this machine, or on a Ray cluster, that "
        "of RAY_ADDRESS or one of this machine",
    )
    verb.add_argument("--workers", type=types.count, help="pieces of such work at a time")


def _safe_csv(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--safe-csv",
        action="store_true",
        help="put an apostrophe before text that spreadsheets would take for a formula",
    )


def _given(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--given",
        action="append",
        default=[],
        metavar="CONDITION",
        help="such as education=Masters, age=30:40, 'delay > 30' or size=missing; of any columns",
    )


def _probability(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("event", help="such as \"delay > 30 and carrier == 'UA'\"")
    _given(verb)
    verb.add_argument("--particles", type=types.count, help="more are more precise, and slower")
    verb.add_argument("--seed", type=types.seed, default=0)


def _impute(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table")
    verb.add_argument("-o", "--output", default="-")
    how = verb.add_mutually_exclusive_group()
    how.add_argument(
        "--draws",
        type=types.count,
        help="tables to draw, one below the other with their number in a column 'draw'",
    )
    how.add_argument(
        "--by", choices=["mean", "median", "mode"], default="median", help="of one table"
    )
    verb.add_argument("--seed", type=types.seed)
    _safe_csv(verb)
    verb.add_argument("--quiet", action="store_true")


def _plot(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table")
    verb.add_argument("-o", "--output", required=True, help="folder for the figures")
    verb.add_argument("--seed", type=types.seed, default=0)


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
        "--rows", type=types.count, default=5000, help="rows of a longer table to look at; 5000"
    )
    verb.add_argument("--seed", type=types.seed, default=0)
    verb.add_argument("--quiet", action="store_true", help="show no progress")


def _explore(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("model")
    verb.add_argument("table", nargs="?", help="rows, or a folder of images, to pick from")
    verb.add_argument("--port", type=int, default=0, help="by default one that is free")
    verb.add_argument("--no-browser", action="store_false", dest="browser", help="open no browser")
