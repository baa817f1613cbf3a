"""Words, ticks and axes of a report."""

import numpy as np
import pandas
import pytest

from mixed_table import mixed
from nits.report import axes, split, ticks, words
from nits.report.charts.svg import Chart
from nits.tables import schema, zones


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (1234.4, "1234"),
        (12345.0, "12,345"),
        (-0.25, "−0.25"),
        (1e-6, "1e−6"),
        (2.5e12, "2.5e12"),
        (np.inf, "∞"),
        (-np.inf, "−∞"),
        (np.nan, "–"),
        (100.0, "100"),
    ],
)
def test_numbers(x: float, text: str) -> None:
    assert words.number(x) == text


def test_shares_never_look_like_none() -> None:
    assert words.percent(0.1234) == "12.3\u00a0%"
    assert words.percent(0.0) == "0.0\u00a0%"
    assert words.percent(1e-6) == "<\u00a00.1\u00a0%"


def test_values() -> None:
    assert words.value(None) == "missing"
    assert words.value(True) == "yes"
    assert words.value(np.datetime64("2024-03-01T00:00:00")) == "2024-03-01"
    assert words.value(np.datetime64("2024-03-01T12:30:05")) == "2024-03-01 12:30:05"
    assert words.value(np.timedelta64(90, "s")) == "0:01:30"
    assert words.value(12_345) == "12,345"
    assert words.value(2013) == "2013"


def test_phrases() -> None:
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(["a", "b", "c", "d"]) == "a, b and 2 more"
    assert words.several(1, "row") == "1 row"
    assert words.several(1200, "row") == "1,200 rows"
    assert words.short("abcdef", 4) == "abc…"


def test_texts_of_a_table_show_no_control_characters() -> None:
    assert words.visible("a\u00a0%, \u202f‘é’ 🙂") == "a\u00a0%, \u202f‘é’ 🙂"
    assert words.visible("\x1b[31mred\n\u202egnp") == r"\x1b[31mred\n\u202egnp"
    chart = Chart(100, 100, "the\x1b label")
    chart.text(1, 1, "a\u202e<b>")
    assert r"a\u202e&lt;b&gt;</text>" in chart.svg()
    assert r'aria-label="the\x1b label"' in chart.svg()


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 1e4), (0.999, 1.001), (-8.0, -7.0)])
def test_ticks_are_round_inside_and_apart(low: float, high: float) -> None:
    found = ticks.of_numbers(low, high, lambda x: (x - low) / (high - low))
    places = [tick.place for tick in found]
    assert 2 <= len(found) <= 7
    assert all(0 <= place <= 1 for place in places)
    assert np.diff(places).min() >= ticks.APART - 1e-9
    for tick in found:
        value = float(tick.label.replace("−", "-").replace(",", ""))
        assert value == pytest.approx(low + tick.place * (high - low), abs=1e-3 * (high - low))


def test_a_logarithm_has_powers_of_ten() -> None:
    found = ticks.of_numbers(0.01, 1e4, lambda x: (np.log10(x) + 2) / 6)
    values = [float(tick.label.replace(",", "")) for tick in found]
    assert values == [10.0 ** round(np.log10(value)) for value in values]
    assert len(values) >= 4


@pytest.mark.parametrize(
    ("days", "label"), [(0.1, "01-01 "), (5, "01-0"), (400, "2024-0"), (9000, "20")]
)
def test_times_have_calendar_ticks(days: float, label: str) -> None:
    start = int(np.datetime64("2024-01-01", "ns").astype(np.int64))
    width = int(days * 86400e9)
    found = ticks.of_times(start, start + width, "M8[ns]", lambda x: (x - start) / width)
    assert 1 <= len(found) <= ticks.MOST_TIMES + 1
    assert any(tick.label.startswith(label) for tick in found)


def test_durations_have_a_unit() -> None:
    hour = int(3600e9)
    found = ticks.of_durations(0, 10 * hour, "m8[ns]", lambda x: x / (10 * hour))
    assert found[0].label == "0 h"
    assert all(tick.label.endswith(" h") for tick in found)


def test_bars_of_many_levels_have_one_for_the_others() -> None:
    source = np.random.default_rng(0)
    table = pandas.DataFrame({"country": [f"country {k}" for k in source.geometric(0.1, 500)]})
    frame = zones.read(table)
    column = schema.infer(frame)[0].columns[0]
    axis = axes.axis(column, frame.columns["country"])
    assert isinstance(axis, axes.Bars)
    assert len(axis) == axes.MOST_BARS
    assert axis.labels[-1].endswith(" others")
    bins = axis.bins(frame.columns["country"])
    counts = np.bincount(bins, minlength=len(axis))
    assert counts.sum() == 500
    assert (np.diff(counts[:-1]) <= 0).all()


def test_bins_of_a_grid_hold_whole_steps() -> None:
    """A grid of 0.1 with more steps than bins: no value lies on an edge."""
    source = np.random.default_rng(0)
    table = pandas.DataFrame({"x": np.round(source.gamma(4, 20, 800), 1)})
    frame = zones.read(table)
    column = schema.infer(frame, kinds={"x": "integer"})[0].columns[0]
    axis = axes.axis(column, frame.columns["x"])
    assert isinstance(axis, axes.Amounts)
    at = axes.placed(column, axis.scale, table["x"].to_numpy(), axis.reach)
    inner = axis.edges[1:-1]
    assert np.abs(at[:, None] - inner).min() > 1e-5


@pytest.mark.parametrize("start", ["1677-09-21T00:13", "2262-04-11T23:00"])
def test_the_first_and_last_nanoseconds_have_an_axis(start: str) -> None:
    """With its margin the axis would begin before the first, or end after the last."""
    seconds = np.random.default_rng(0).integers(0, 2800, 120) * 10**9
    frame = zones.read(pandas.DataFrame({"x": np.datetime64(start, "ns") + seconds}))
    column = schema.infer(frame)[0].columns[0]
    assert len(axes.axis(column, frame.columns["x"]).ticks) >= 2


def test_every_kind_of_column_has_an_axis() -> None:
    frame = zones.read(mixed(200))
    for column in schema.infer(frame)[0].columns:
        values = frame.columns[column.name]
        axis = axes.axis(column, values)
        bins = axis.bins(values)
        assert (bins[values.missing] == axes.NOWHERE).all()
        assert (bins < len(axis)).all()
        inside = ~values.missing
        if column.kind != "categorical":
            inside &= ~np.isin(axes.plain(column, values), axes.apart(column, values))
        assert (bins[inside] != axes.NOWHERE).mean() > 0.98
        assert (np.diff(axis.edges) > 0).all()
        assert len(axis.ticks) >= 2


def test_frequent_values_that_a_scale_has_no_place_for_have_their_own() -> None:
    frame = zones.read(mixed(300))
    column = next(c for c in schema.infer(frame)[0].columns if c.name == "rain")
    values = frame.columns["rain"]
    axis = split.axis(column, values, 30, 12)
    assert isinstance(axis, split.Split)
    assert axis.ticks[0].label == "0"
    bins = axis.bins(values)
    assert ((bins == 0) == (values.array == 0)).all()
    assert not (bins == 1).any()
    assert (bins != axes.NOWHERE).mean() > 0.98
    assert len(axis.edges) == len(axis) + 1
    assert (np.diff(axis.edges) > 0).all()
    assert axis.edges[-1] == 1


def test_text_in_a_chart_is_escaped() -> None:
    chart = Chart(100, 50, '"<b>')
    chart.text(1, 2, "<script>&")
    found = str(chart.svg())
    assert "&lt;script&gt;&amp;" in found
    assert 'aria-label="&#34;&lt;b&gt;"' in found
