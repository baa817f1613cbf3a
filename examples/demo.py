"""Fits the joint density of household power readings, and shows how good it is.

Run by `make demo`. Prints held-out log-likelihoods beside a Gaussian's and a Gaussian mixture's on
the same rows, draws samples, and writes out/demo.png, data against samples, and out/report.html:
how far a model of the table as it is can be trusted.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas
import torch
from rich.console import Console
from rich.table import Table
from sklearn.mixture import GaussianMixture

import nits

HERE = Path(__file__).parent
OUT = HERE.parent / "out"
COLUMNS = (
    "active_power",
    "voltage",
    "sub_metering_1",
    "sub_metering_2",
    "sub_metering_3",
    "minute",
)
# Readings are rounded. So that they have a density, uniform noise as wide as the last digit is
# added, as in the published protocol.
STEPS = (0.001, 0.01, 1.0, 1.0, 1.0, 1.0)
MINUTES = 1.25
STEPS_OF_REPORT = 300


def load(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns training and test rows, standardized, and the mean and scale that were used."""
    table = np.genfromtxt(HERE / "data" / "power.csv.gz", delimiter=",", names=True)
    rows = np.stack([table[name] for name in COLUMNS], 1)
    rng = np.random.default_rng(seed)
    rows = rows + rng.random(rows.shape) * STEPS
    train, test = rows[: len(rows) * 9 // 10], rows[len(rows) * 9 // 10 :]
    mean, scale = train.mean(0), train.std(0)
    return (train - mean) / scale, (test - mean) / scale, mean, scale


def support(train: np.ndarray) -> list[nits.heads.Continuous]:
    """Returns one head per column; its support is the training range, 2 % wider at both ends."""
    low, high = train.min(0), train.max(0)
    margin = 0.02 * (high - low)
    return [
        nits.heads.Continuous(float(a), float(b))
        for a, b in zip(low - margin, high + margin, strict=True)
    ]


def mixture(train: np.ndarray, components: tuple[int, ...]) -> GaussianMixture:
    """Returns the Gaussian mixture that is best on the last tenth of the training rows."""
    cut = len(train) * 9 // 10
    fits = [GaussianMixture(k, random_state=0, reg_covar=1e-5).fit(train[:cut]) for k in components]
    best = max(fits, key=lambda m: m.score(train[cut:]))
    return GaussianMixture(best.n_components, random_state=0, reg_covar=1e-5).fit(train)


def held_out(log_prob: np.ndarray) -> str:
    """Returns mean ± two standard errors over rows inside the support, and how many are outside."""
    inside = np.isfinite(log_prob)
    error = 2 * log_prob[inside].std() / inside.sum() ** 0.5
    note = "" if inside.all() else f" ({(~inside).sum()} rows outside the support)"
    return f"{log_prob[inside].mean():.3f} ± {error:.3f}{note}"


def draw(rows: np.ndarray, samples: np.ndarray, path: Path) -> None:
    """Writes pairs of columns, data on the left and samples on the right."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    pairs = [(0, 1), (5, 0), (0, 4)]
    figure, axes = plt.subplots(len(pairs), 2, figsize=(8, 10), layout="constrained")
    for (i, j), (left, right) in zip(pairs, axes, strict=True):
        for ax, table, title in ((left, rows, "data"), (right, samples, "samples")):
            ax.scatter(
                table[:, i],
                table[:, j],
                s=2,
                alpha=0.35,
                linewidths=0,
                color="C0" if table is rows else "C1",
            )
            ax.set(xlabel=COLUMNS[i], ylabel=COLUMNS[j], title=title)
            ax.set_xlim(np.quantile(rows[:, i], [0, 1]))
            ax.set_ylim(np.quantile(rows[:, j], [0, 0.999]))
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)


def report(path: Path) -> None:
    """Fits the readings as they are, and writes a report on that model, judged by other rows."""
    table = pandas.read_csv(HERE / "data" / "power.csv.gz")
    cut = len(table) * 9 // 10
    model = nits.NITSDensity(max_steps=STEPS_OF_REPORT, random_state=0).fit(table[:cut])
    model.report(table[:cut], held_out=table[cut:]).save(path)


def main() -> None:
    """Runs the demo."""
    console = Console()
    train, test, mean, scale = load()
    rows, unseen = (torch.tensor(t, dtype=torch.float32) for t in (train, test))
    console.print(f"{len(train)} training and {len(test)} test rows of {len(COLUMNS)} columns")

    begun = time.monotonic()
    model = nits.NITS.mlp(support(train), hidden=128, blocks=2, dropout=0.1)
    history = nits.fit(model, rows, max_minutes=MINUTES, recipe=nits.Recipe(batch_size=512))
    seconds = time.monotonic() - begun
    with torch.no_grad():
        scores = {"NITS-MLP": model.log_prob(unseen).numpy()}
    begun = time.monotonic()
    samples = model.sample(len(test) * 3, generator=0).numpy() * scale + mean
    drawn = time.monotonic() - begun
    independent = nits.NITS.independent(support(train))
    nits.fit(independent, rows, max_steps=150, progress=False, compile=False)
    with torch.no_grad():
        scores["independent columns (PNNs)"] = independent.log_prob(unseen).numpy()
    best = mixture(train, (5, 15, 30))
    scores[f"Gaussian mixture, {best.n_components} components"] = best.score_samples(test)
    scores["Gaussian"] = mixture(train, (1,)).score_samples(test)

    table = Table(
        "model", "held-out log-likelihood, nats per row", title="standardized household power"
    )
    for name, score in scores.items():
        table.add_row(name, held_out(score))
    console.print(table)
    console.print(
        f"trained {history.step[-1]} steps in {seconds:.0f} s; "
        f"drew {len(samples)} rows in {drawn:.1f} s"
    )
    draw(np.concatenate([train, test])[: len(samples)] * scale + mean, samples, OUT / "demo.png")
    console.print(f"data against samples: {OUT / 'demo.png'}")
    report(OUT / "report.html")
    console.print(
        f"a report on the table as it is, to be opened in a browser: {OUT / 'report.html'}"
    )


if __name__ == "__main__":
    main()
