"""Generated tables, whose density is known: nats of our defaults and of simple rivals.

    python benchmarks/suite_generated.py [--only NAME …] [--quick] [--model nits|rivals]
        → benchmarks/results/suite-generated-NAME.json

Rivals learn from all rows once a validation has chosen among their settings, and are kept as those
of suite.py are. Means over blocks of test rows are kept, too, from which differences of two models
on the same rows have their standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from generated_tables import SIZES, TEST_ROWS, Generated, generated
from numpy.typing import NDArray
from results import RESULTS, ROOT, Record
from sklearn.covariance import LedoitWolf
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import ShuffleSplit
from sklearn.neighbors import KernelDensity
from suite import OURS, fitted, measure
from suite_densities import (
    BANDWIDTHS,
    COMPONENTS,
    KERNELS,
    mean_of,
    on_base,
    out_of_fold,
    standardized,
    step_of,
)

Values = NDArray[np.float64]
BLOCKS = 100
QUICK_TEST = 400
AT_ONCE = 2000
"""Test rows that are scored together."""

FEW = 1000
"""Tables of at most so many rows choose by five validations instead of one."""

PATIENCE = 2
"""So many settings in a row that are no better end the search."""


class Shrunk:
    """A Gaussian whose covariance is shrunk as Ledoit and Wolf do.

    scale: What the columns are multiplied by before; shrinking depends on it.
    """

    def __init__(self, scale: Any = 1.0) -> None:
        self.scale = scale

    def fit(self, x: Values) -> Shrunk:
        """Estimates the mean and the covariance."""
        found = LedoitWolf().fit(x * self.scale)
        self.mean_, self.factor_ = found.location_, np.linalg.cholesky(found.covariance_)
        return self

    def score_samples(self, x: Values) -> Values:
        """Returns log-densities."""
        z = np.linalg.solve(self.factor_, (x * self.scale - self.mean_).T)
        volume = np.log(np.diag(self.factor_)).sum() - (np.log(self.scale) * np.ones(len(z))).sum()
        return np.asarray(-(z**2 + math.log(2 * math.pi)).sum(0) / 2 - volume)


class Choice(NamedTuple):
    """A density, what to call its setting, and its mean log-density of validation rows."""

    label: str
    estimator: Any
    score: float = -math.inf


Settings = Callable[[Values], Iterable[Choice]]
"""From the columns' scale to what may be chosen, in the order of the search."""


def gaussians(scale: Values) -> Iterator[Choice]:
    """Yields the shrunk Gaussian of standardized columns, and that of the table's."""
    yield Choice("standardized", Shrunk())
    yield Choice("in the table's units", Shrunk(scale))


def mixtures(scale: Values) -> Iterator[Choice]:
    """Yields Gaussian mixtures with more and more components."""
    for k in COMPONENTS:
        yield Choice(f"{k} components", GaussianMixture(k, random_state=0, max_iter=200))


def kernels(scale: Values) -> Iterator[Choice]:
    """Yields kernel densities, narrower and narrower."""
    for width in reversed(BANDWIDTHS):
        yield Choice(f"bandwidth {width:g}", KernelDensity(bandwidth=width, rtol=1e-4))


def searched(choices: Iterable[Choice], rows: Values) -> Choice:
    """Returns the best by validation, before some that were no better."""
    folds = ShuffleSplit(5 if len(rows) <= FEW else 1, test_size=0.1, random_state=0)
    best, worse = Choice("none", None), 0
    for choice in choices:
        made = choice._replace(score=validated(choice.estimator, rows, folds))
        worse = 0 if made.score > best.score else worse + 1
        best = max(best, made, key=lambda one: one.score)
        if worse == PATIENCE:
            break
    return best


def validated(estimator: Any, rows: Values, folds: ShuffleSplit) -> float:
    """Returns the mean log-density of rows that it was not trained on."""
    scores = [
        estimator.fit(rows[train]).score_samples(rows[rest]) for train, rest in folds.split(rows)
    ]
    return float(np.mean(scores))


def numbers(settings: Sequence[Settings], train: Any, test: Any) -> tuple[Values, str]:
    """Returns the nats of a table's rows without holes or categories, and what was chosen."""
    steps = [step_of(train[name].to_numpy()) for name in train]
    scaled = standardized(train, test, steps, KERNELS)
    found = [searched(one(scaled.scale), scaled.train) for one in settings]
    best = max(found, key=lambda one: one.score)
    best.estimator.fit(scaled.train)
    parts = np.array_split(scaled.test, max(1, len(test) // AT_ONCE))
    return np.concatenate(list(map(best.estimator.score_samples, parts))) + scaled.shift, best.label


def joint(settings: Sequence[Settings], train: Any, test: Any) -> tuple[Values, list[str]]:
    """Returns the nats under one density for each combination of categories and of holes.

    The combination has its share of the training rows as its probability.
    """
    values, labels = np.full(len(test), -np.inf), list[str]()
    keys, test_keys = kinds_of(train), kinds_of(test)
    for key in sorted(set(keys)):
        own, rest = train[keys == key], test[test_keys == key]
        values[test_keys == key] = math.log(len(own) / len(train))
        known = own.select_dtypes("number").dropna(axis=1).columns
        if len(known) and len(rest):
            found, label = numbers(settings, own[known], rest[known])
            values[test_keys == key] += found
            labels.append(label)
    return values, labels


def kinds_of(table: Any) -> NDArray[Any]:
    """Returns for each row its categories and which of its numbers are missing, as one string."""
    texts = table.select_dtypes(exclude="number").astype(str)
    holes = table.select_dtypes("number").isna().astype(int).astype(str)
    return np.array([" ".join(row) for row in np.c_[texts.to_numpy(), holes.to_numpy()]])


def independent(train: Any, test: Any) -> tuple[Values, list[str]]:
    """Returns the nats under a product of densities of single columns."""
    values, labels = np.zeros(len(test)), list[str]()
    for name in train:
        found, label = joint((mixtures, kernels), train[[name]], test[[name]])
        values, labels = values + found, [*labels, *label]
    return values, labels


RIVALS: dict[str, Callable[[Any, Any], tuple[Values, list[str]]]] = {
    "gaussian": partial(joint, (gaussians,)),
    "gaussian_mixture": partial(joint, (mixtures,)),
    "kernel_density": partial(joint, (kernels,)),
    "independent": independent,
}


def figures(values: Values) -> Record:
    """Returns the mean of finite nats, those of blocks of rows, and how many rows are outside."""
    outside = int((values == -np.inf).sum())
    blocks = [float(part.mean()) for part in np.array_split(values, BLOCKS)]
    kept = [None if math.isinf(block) else round(block, 6) for block in blocks]
    return {
        **mean_of(values[values != -np.inf]),
        "rows": len(values),
        "rows_outside": outside,
        "blocks": kept,
    }


def rival(name: str, table: Generated) -> Record:
    """Returns the figures of a rival."""
    start = time.process_time()
    values, labels = RIVALS[name](table.train, table.test)
    counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
    return {**figures(values), "chosen": counts, "seconds": time.process_time() - start}


def truth(table: Generated) -> Record:
    """Returns the figures of the density that the rows were drawn from."""
    return {
        **figures(table.truth),
        "training_rows": len(table.train),
        "columns": table.train.shape[1],
    }


def ours(table: Generated, name: str, quick: bool) -> Record:
    """Returns our figures, on the base measure of the rivals."""
    model, found = fitted(table.train, name, quick)
    shares = model.score_samples(table.test, per_column=True)
    numeric = table.train.select_dtypes("number")
    steps = {column: step_of(numeric[column].dropna().to_numpy()) for column in numeric}
    values = on_base(shares, model.schema_.columns, table.test, steps, table.train)
    return {**found, **figures(values), "out_of_fold": out_of_fold(model, shares.sum(1))}


def main(argv: list[str] | None = None, folder: Path | None = None) -> int:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SIZES, default=[*SIZES], help="tables")
    parser.add_argument("--quick", action="store_true", help="a few rows and steps; writes to out/")
    parser.add_argument("--model", choices=(OURS, "rivals"), help="both by default")
    args = parser.parse_args(argv)
    place = folder or (ROOT / "out" / "suite" if args.quick else RESULTS)
    for name in args.only:
        table = generated(name, QUICK_TEST if args.quick else TEST_ROWS)
        if args.quick:
            table = table._replace(train=table.train[:QUICK_TEST])
        parts = {
            "truth": partial(truth, table),
            **{one: partial(rival, one, table) for one in RIVALS},
            OURS: partial(ours, table, name, args.quick),
        }
        measure(place / f"suite-generated-{name}.json", "generated", parts, args.model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
