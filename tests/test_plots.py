"""What `nits plot` draws: names on every line, labels that do not meet, atoms that are no fault."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas
import pytest

from mixed_table import mixed, small
from nits.cli import plots
from nits.report import calibration, dependence, marginals
from nits.report.subject import Subject
from report_tables import beside, fitted

NAME = "$x_1$ & <b>"
"""Which a figure must not take for a formula."""


@pytest.fixture(scope="module")
def subject() -> Subject:
    table = mixed(200).rename(columns={"rain": NAME})
    source = np.random.default_rng(0)
    table["country"] = [f"The Republic of Country {k}" for k in source.integers(0, 30, 200)]
    return Subject.of(fitted(table), table)


def boxes(figure: Any, labels: list[Any]) -> list[Any]:
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    return [label.get_window_extent(renderer) for label in labels if label.get_text()]


def test_labels_of_thirty_countries_do_not_overlap(subject: Subject) -> None:
    figure = plots.marginals(marginals.measured(subject))
    axis = next(axis for axis in figure.axes if axis.get_title() == "country")
    labels = axis.get_yticklabels()
    found = boxes(figure, labels)
    assert 10 <= len(found) <= 30
    for above, below in pairwise(found):
        assert above.y0 >= below.y1 - 1 or below.y0 >= above.y1 - 1
    assert any(label.get_text().endswith("others") for label in labels)


def test_every_calibration_line_has_a_name(subject: Subject) -> None:
    found = calibration.measured(subject)
    figure = plots.calibration(found)
    titles = [axis.get_title() for axis in figure.axes if axis.lines]
    assert sorted(titles) == sorted(subject.model.schema_.names)
    assert NAME in titles
    assert f"worst: {found.worst.name}" in figure.get_suptitle()
    boxes(figure, [])


def test_pairs_are_drawn_beside_samples(subject: Subject) -> None:
    found = dependence.measured(subject)
    figure = plots.pairs(found)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["table", "samples"] * len(found.pairs)


def test_one_column_has_no_pairs() -> None:
    assert plots.pairs(None).axes


def test_a_column_of_holes_can_be_drawn() -> None:
    table = pandas.DataFrame({"a": np.arange(40.0) ** 1.1, "b": np.arange(40) % 7})
    model = small().fit(table.assign(a=table["a"].where(table.index % 2 == 0)))
    empty = table.assign(a=np.nan)
    found = marginals.measured(beside(model, empty, table))
    assert found.columns[0].axis is None
    assert plots.marginals(found).axes


def test_control_characters_of_a_name_are_escaped() -> None:
    source = np.random.default_rng(0)
    table = pandas.DataFrame({"a\x1b[31m": source.normal(size=80), "b\x07": source.normal(size=80)})
    found = calibration.measured(Subject.of(fitted(table), table))
    figure = plots.calibration(found)
    texts = [figure.get_suptitle(), *(axis.get_title() for axis in figure.axes)]
    assert all(text.isprintable() for text in texts)
    assert "\\x1b[31m" in " ".join(texts)
