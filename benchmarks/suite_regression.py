"""Regression on published splits: the target's density given the features, all by default.

    python benchmarks/suite_regression.py [--only NAME …] [--splits N] [--model NAME …]
        → benchmarks/results/suite-regression-NAME.json

Tables are the files NITS_DATA/regression/NAME.npz. Each split is kept at once and not measured
again without `--again`, so a run that was stopped goes on, and two processes may share the work by
tables. `--quick` tries two splits with a few steps and writes to out/.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from numpy.typing import NDArray
from results import RESULTS, ROOT, Record, circumstances, write
from suite import OURS, QUICK_STEPS, kept, parts_told
from suite_densities import on_base, out_of_fold, step_of

import nits

Values = NDArray[np.float64]
TARGET, SPLITS, QUICK_SPLITS = "target", 20, 2
LEVELS = (np.arange(200) + 0.5) / 200
"""Quantiles from which the CRPS is computed."""

INTERVAL = (0.05, 0.95)


class Split(NamedTuple):
    """Rows of features and the target; to learn from, and to be tested on.

    step: The step of the target's values, 0 if they are real numbers.
    """

    train: Any
    test: Any
    step: float

    @property
    def parts(self) -> tuple[Values, Values, Values, Values]:
        """Features and targets of train, then of test."""
        x, y, at, target = (
            value
            for part in (self.train, self.test)
            for value in (part.drop(columns=TARGET).to_numpy(), part[TARGET].to_numpy())
        )
        return x, y, at, target


def split(path: Path, number: int) -> Split:
    """Returns a published split of a file."""
    with np.load(path) as file:
        x, y, rows = file["x"], file["y"].ravel(), file[f"test_{number}"]
    table = pandas.DataFrame(x, columns=[f"x{i}" for i in range(1, x.shape[1] + 1)])
    table[TARGET] = y
    test = np.isin(np.arange(len(y)), rows)
    return Split(table[~test], table[test], step_of(y))


def rmse(predicted: Values, y: Values) -> float:
    """Returns the root of the mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def crps(quantiles: Values, y: Values) -> float:
    """Returns the mean of ∫ |F(t) − 1{y ≤ t}|² dt, which is twice the mean pinball loss.

    quantiles: Those at LEVELS, shape (N, len(LEVELS)).
    """
    off = y[:, None] - quantiles
    return float(2 * np.maximum(LEVELS * off, (LEVELS - 1) * off).mean())


def covered(above: Values, mass: Values) -> float:
    """Returns how much of the targets' places lies in the middle 90 %.

    A target has the places from F(y) − p(y) to F(y): the whole interval counts, so that a number
    on its edge is neither inside nor outside.

    above, mass: F(y) and p(y).
    """
    low, high = INTERVAL
    part = np.minimum(above, high) - np.maximum(above - mass, low)
    inside = np.where(mass > 0, part / np.maximum(mass, 1e-300), (low <= above) & (above <= high))
    return float(np.clip(inside, 0.0, 1.0).mean())


def ours(data: Split, quick: bool) -> Record:
    """Returns the figures of our model with its defaults."""
    context = [name for name in data.train if name != TARGET]
    steps, start = QUICK_STEPS if quick else None, time.perf_counter()
    model = nits.NITSDensity(context=context, random_state=0, max_steps=steps).fit(data.train)
    seconds, y = time.perf_counter() - start, data.test[TARGET].to_numpy()
    shares = model.score_samples(data.test, per_column=True)
    base = {TARGET: data.step}
    values = on_base(shares, model.schema_.columns, data.test, base, data.train)
    ends = model.predict_quantiles(data.test, INTERVAL)
    above = model.cdf(data.test)
    mass = np.exp(values) if data.step else np.zeros(len(y))
    inside = values[values != -np.inf]
    return {
        "nll": -float(inside.mean()),
        "rows_outside": len(values) - len(inside),
        "crps": crps(model.predict_quantiles(data.test, LEVELS), y),
        "rmse": rmse(model.predict_mean(data.test), y),
        "coverage": covered(above, mass),
        "in_interval": float(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean()),
        "seconds": seconds,
        "out_of_fold": out_of_fold(model, shares.sum(1)),
        **parts_told(model),
    }


def boosting(data: Split, quick: bool) -> Record:
    """Returns the error of scikit-learn's gradient boosting with its defaults."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    x, y, at, target = data.parts
    start = time.perf_counter()
    model = HistGradientBoostingRegressor(random_state=0).fit(x, y)
    seconds = time.perf_counter() - start
    return {"rmse": rmse(model.predict(at), target), "seconds": seconds}


def ngboost(data: Split, quick: bool) -> Record:
    """Returns the figures of NGBoost's normal distribution with its defaults."""
    from ngboost import NGBRegressor

    x, y, at, target = data.parts
    start, trees = time.perf_counter(), QUICK_STEPS if quick else 500
    model = NGBRegressor(n_estimators=trees, random_state=0, verbose=False).fit(x, y)
    seconds, found = time.perf_counter() - start, model.pred_dist(at).params
    return {**normal_figures(found["loc"], found["scale"], target, data.step), "seconds": seconds}


def normal_figures(mean: Values, deviation: Values, y: Values, step: float) -> Record:
    """Returns the figures of normal distributions; with a step, of the cells around its values."""
    law = torch.distributions.Normal(torch.from_numpy(mean), torch.from_numpy(deviation))
    at, quantiles = torch.from_numpy(y), torch.from_numpy(LEVELS)[:, None]
    above = law.cdf(at + step / 2)
    mass = above - law.cdf(at - step / 2)
    log_p = mass.clamp(min=1e-300).log() if step else law.log_prob(at)
    places = law.icdf(quantiles).t().numpy()
    if step:
        places = np.rint(places / step) * step
    ends = (-1.6448536269514722 * deviation, 1.6448536269514722 * deviation)
    return {
        "nll": -float(log_p.mean()),
        "rows_outside": 0,
        "crps": crps(places, y),
        "rmse": rmse(mean, y),
        "coverage": covered(above.numpy(), mass.numpy()),
        "in_interval": float(((mean + ends[0] <= y) & (y <= mean + ends[1])).mean()),
    }


MODELS: dict[str, tuple[str, Callable[[Split, bool], Record]]] = {
    "boosting": ("scikit-learn", boosting),
    "ngboost": ("ngboost", ngboost),
    OURS: ("scikit-learn", ours),
}
"""The package that a model needs, and its figures of a split."""


def measure(path: Path, file: Path, model: str, args: argparse.Namespace) -> None:
    """Measures the splits that are not there, and keeps each at once."""
    package, figures = MODELS[model]
    again = args.again
    for number in range(QUICK_SPLITS if args.quick else args.splits):
        before = kept(file, "regression").get(model, {}).get("results", {})
        done: Record = {} if again else before.get("splits", {})
        if str(number) in done:
            continue
        around = {**circumstances(), "package": {package: version(package)}}
        with warnings.catch_warnings():
            warnings.simplefilter("default" if model == OURS else "ignore")
            new = {**figures(split(path, number), args.quick), "commit": around["commit"]}
        part = {**around, "results": {"splits": {**done, str(number): new}}}
        write(file, {**kept(file, "regression"), model: part})
        again = False
        print(f"{file.stem}: {model}, split {number}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None, folder: Path | None = None) -> int:
    """Measures what the command line names."""
    there = [name for name in MODELS if name != "ngboost" or importlib.util.find_spec("ngboost")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tables; all by default")
    parser.add_argument("--splits", type=int, default=SPLITS, help="the first so many of 20")
    parser.add_argument("--model", nargs="+", choices=there, default=there, help="models")
    parser.add_argument("--again", action="store_true", help="also what has been measured")
    parser.add_argument("--quick", action="store_true", help="try two splits with a few steps")
    args = parser.parse_args(argv)
    every = sorted(Path(os.environ["NITS_DATA"]).glob("regression/*.npz"))
    paths = {path.stem: path for path in every}
    unknown = [name for name in args.only or () if name not in paths]
    if unknown:
        print(f"error: NITS_DATA must have a table {unknown[0]}, but has none.", file=sys.stderr)
        return 2
    place = folder or (ROOT / "out" / "suite" if args.quick else RESULTS)
    for name in args.only or paths:
        for model in args.model:
            measure(paths[name], place / f"suite-regression-{name}.json", model, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
