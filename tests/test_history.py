"""The figures of a run: kept, written, read and drawn."""

from __future__ import annotations

import pytest

import nits
from nits.training.history import History
from two_columns import QUICK, rows, small


def test_history_keeps_and_plots_every_figure() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    history = nits.fit(small(), rows(), max_steps=30, recipe=QUICK, progress=False)
    figures = history.to_dict()
    assert History.from_dict(figures) == history
    lengths = {
        len(getattr(history, name)) for name in ("step", "epoch", "seconds", "train", "validation")
    }
    assert lengths == {len(history.learning_rate)} == {len(history.rows_per_second)}
    ax = history.plot()
    assert [line.get_label() for line in ax.lines][:2] == [
        "training",
        "validation, averaged weights",
    ]
