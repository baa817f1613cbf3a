"""The explorer's answers: panels, conditions, rows, chances and a row of one's own."""

import csv
import io
import math
from typing import Any

import numpy as np
import pandas
import pytest

from mixed_table import mixed, small
from nits.explore import shapes, told
from nits.explore.session import Session
from nits.explore.views import Axis, Listing, spelled
from nits.tables.estimator import NITSDensity
from nits.tables.questions.conditions import Range, Value, missing


@pytest.fixture(scope="module")
def session() -> Session:
    table = mixed()
    table.loc[0, "city"] = "<b>Rome</b>"
    return Session(small().fit(table), table, title="mixed", base=8192)


def panel(session: Session, name: str) -> int:
    return [view.column.name for view in session.views].index(name)


def test_numbers_have_axes_and_names_have_levels(session: Session) -> None:
    kinds = {view.column.name: type(view) for view in session.views}
    assert kinds["size"] is Axis
    assert kinds["city"] is Listing
    assert kinds["member"] is Listing
    what = {view.column.name: view.what for view in session.views if isinstance(view, Axis)}
    assert what["seen"] == "time"
    assert what["price"] == "number"


def test_every_panel_has_all_of_the_probability(session: Session) -> None:
    for found in (session.panels({}), session.panels({"price": {"range": ["2.5", "4"]}})):
        for shape in found.shapes:
            whole = sum(shape.density) + sum(shape.bars) + shape.missing[0] + sum(shape.outside)
            assert whole == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(
    "given",
    [
        {"price": {"range": ["2.5", "4"]}},
        {"city": {"levels": [1]}, "size": {"missing": False}},
        {"seen": {"range": ["2024-01-03", "2024-01-09T12:00:00"]}},
        {"member": {"levels": [0]}, "price": {"range": [None, "3.5"]}},
        {"size": {"value": "50"}},
    ],
)
def test_panels_agree_with_the_model_itself(session: Session, given: dict[str, Any]) -> None:
    found = session.panels(given, fine=True)
    answer = session._answer(given)
    rain = found.shapes[panel(session, "rain")]
    truth = answer.mean("rain")
    assert rain.mean is not None
    near = 5 * math.hypot(rain.mean[1], float(truth.error)) + 1e-6
    assert abs(rain.mean[0] - float(truth.estimate)) < near
    city = found.shapes[panel(session, "city")]
    if "city" not in given:
        proba, own = answer.proba("city"), np.array(city.bars)
        assert own / own.sum() == pytest.approx(list(proba.values()), abs=0.08)


def test_evidence_is_the_probability_of_the_conditions(session: Session) -> None:
    found = session.panels({"price": {"range": ["2.5", "4"]}, "member": {"levels": [1]}})
    truth = session.estimator.probability("2.5 <= price <= 4 and member == True")
    assert not found.is_density
    near = 5 * math.hypot(found.evidence[1], float(truth.error))
    assert abs(found.evidence[0] - float(truth.estimate)) < near
    assert session.panels({"size": {"value": "50"}}).is_density


def test_a_level_of_a_pool_has_its_share_of_it() -> None:
    rng = np.random.default_rng(0)
    names = rng.choice(["a", "b", "c", "d"], 400, p=[0.6, 0.2, 0.15, 0.05])
    table = pandas.DataFrame({"x": rng.normal(size=400), "c": names})
    session = Session(small(pool_below=100).fit(table), base=4096)
    levels = session.views[1].levels  # type: ignore[union-attr]
    found = session.panels({"c": {"levels": [levels.index("d")]}})
    truth = session.plain[1].bars[levels.index("d")]
    assert found.evidence[0] == pytest.approx(truth, rel=0.15)
    assert found.shapes[1].bars[levels.index("d")] == pytest.approx(1)


def test_rows_and_panels_meet_their_conditions(session: Session) -> None:
    given = {"price": {"range": ["2.5", "4"]}, "city": {"levels": [2]}}
    found = session.panels(given)
    place, city = panel(session, "price"), panel(session, "city")
    name = spelled(session.views[city].levels[2])  # type: ignore[union-attr]
    assert all(2.5 <= float(row[place] or "nan") <= 4 for row in found.sample)
    assert {row[city] for row in found.sample} == {name}
    assert found.shapes[city].bars[2] == pytest.approx(1)
    told_of = session.views[place]
    low, high = told.within(told_of, [Range(2.5, 4, to_high=True)])  # type: ignore[misc]
    density = found.shapes[place].density
    assert sum(density[:low]) + sum(density[high + 1 :]) == 0


def test_few_rows_that_meet_conditions_are_weighted(session: Session) -> None:
    whole = session.panels({"price": {"range": ["3", "3.1"]}})
    assert whole.exact
    single = session.panels({"price": {"value": "3.1"}, "size": {"value": "50"}})
    assert not single.exact
    assert 0 < single.ess <= single.drawn
    more = session.panels({"price": {"value": "3.1"}, "size": {"value": "50"}}, fine=True)
    assert more.ess > single.ess


def test_holes_can_be_given(session: Session) -> None:
    found = session.panels({"size": {"missing": True}})
    shape = found.shapes[panel(session, "size")]
    assert shape.missing[0] == 1
    assert shape.mean is None
    assert {row[panel(session, "size")] for row in found.sample} == {None}
    known = session.panels({"size": {"missing": False}})
    assert known.shapes[panel(session, "size")].missing[0] == 0


def test_a_joint_picture_adds_up_to_its_columns(session: Session) -> None:
    pair = (panel(session, "member"), panel(session, "city"))
    found = session.panels({}, pair=pair).joint
    assert found is not None
    cells = np.array(found.cells, float)
    bars = np.array(session.plain[pair[0]].bars)
    assert cells.shape == (len(session.views[pair[1]].levels), 2)  # type: ignore[union-attr]
    assert cells.sum(0) / cells.sum() == pytest.approx(bars / bars.sum(), abs=0.01)


def test_smoothing_keeps_the_mass_and_stays_within(session: Session) -> None:
    counts = np.random.default_rng(0).random(128)
    found = shapes.smoothed(counts, 100.0, (20, 60))
    assert found.sum() == pytest.approx(counts[20:61].sum())
    assert not found[:20].any()
    assert not found[61:].any()
    rough = shapes.smoothed(counts, 1e9)
    assert np.abs(np.diff(rough)).sum() > np.abs(np.diff(shapes.smoothed(counts, 10.0))).sum()


def test_lines_are_smoothed_all_at_once_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    lines = rng.random((7, 48)) ** 4
    lines[2] = 0
    lines[3, 5:] = 0
    worth = np.array([2.0, 10.0, 50.0, 2.0, 1e3, 1e5, 3.0])
    found = shapes.smoothed_lines(lines, worth)
    each = np.stack([shapes.smoothed(c, ess) for c, ess in zip(lines, worth, strict=True)])
    assert found == pytest.approx(each, rel=1e-9, abs=1e-15)


def test_a_download_is_a_table_under_the_conditions(session: Session) -> None:
    text = session.rows_csv({"price": {"range": ["2.5", "4"]}}, 50).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 50
    assert list(rows[0]) == list(mixed().columns)
    assert all(2.5 <= float(row["price"]) <= 4 for row in rows)
    assert session.rows_csv({}, 5, seed=1) != session.rows_csv({}, 5, seed=2)


def test_text_that_a_spreadsheet_would_compute_is_guarded() -> None:
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"f": rng.choice(["=1+1", "b"], 200), "x": rng.normal(size=200)})
    text = Session(small().fit(table), base=1024).rows_csv({"f": {"levels": [0]}}, 2).decode()
    assert "'=1+1" in text


def test_a_chance_is_that_of_the_library(session: Session) -> None:
    found = session.chance({"member": {"levels": [1]}}, "price > 3")
    truth = session.estimator.given(member=True).probability("price > 3")
    assert found.probability == float(truth.estimate)
    assert session.chance({}, "size > 50").ess is None  # the first column: exact


def test_a_row_has_the_librarys_numbers(session: Session) -> None:
    table = mixed().iloc[[4]]
    found = session.row(session.picked(5))
    assert found.log_density == pytest.approx(session.estimator.score_samples(table)[0], abs=1e-4)
    each = session.estimator.outlier_scores(table, per_column=True)[0]
    assert [entry.surprise for entry in found.entries] == pytest.approx(each.tolist(), abs=1e-3)
    assert found.entries[2].likely[0][0] in ("Lima", "Oslo", "Rome")
    low, middle, high = (float(text) for text, _ in found.entries[6].likely)
    assert low <= middle <= high


def test_what_is_likely_instead_follows_the_other_entries() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    table = pandas.DataFrame({"x": x, "y": x + 0.1 * rng.normal(size=600)})
    session = Session(NITSDensity(max_steps=200, random_state=0, hidden=32).fit(table), base=1024)
    found = session.row({"x": "-1.5", "y": "1.5"})
    likely = {entry.name: float(entry.likely[1][0]) for entry in found.entries}
    assert likely["y"] == pytest.approx(-1.5, abs=0.5)
    assert likely["x"] > 0.7
    surprise = {entry.name: entry.surprise for entry in found.entries}
    assert (surprise["y"] or math.inf) > 5


def test_durations_are_given_in_seconds() -> None:
    rng = np.random.default_rng(0)
    wait = pandas.to_timedelta(rng.random(300) * 3600, unit="s")
    table = pandas.DataFrame({"wait": wait, "x": rng.normal(size=300)})
    session = Session(small().fit(table), base=1024)
    found = session.panels({"wait": {"range": ["600", "1200"]}})
    low, _, high = found.shapes[0].quantiles or (0, 0, 0)
    assert 600 <= low <= high <= 1200


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "must be an object by column"),
        ({"nothing": {"value": "1"}}, "has no column 'nothing'"),
        ({"price": 3}, "must have one condition"),
        ({"price": {"value": "1", "range": [1, 2]}}, "must have one condition"),
        ({"price": {"value": "x" * 300}}, "must be given a value"),
        ({"price": {"value": "soon"}}, "must be given a number"),
        ({"price": {"range": ["4", "2"]}}, "must not end before it begins"),
        ({"price": {"range": ["4"]}}, "must be a pair"),
        ({"price": {"levels": [0]}}, "must have a range, a value"),
        ({"city": {"levels": []}}, "at least one level"),
        ({"city": {"levels": [True]}}, "levels of 'city' are 0 to"),
        ({"city": {"levels": [99]}}, "levels of 'city' are 0 to"),
        ({"count": {"missing": True}}, "cannot be missing"),
        ({"seen": {"value": "yesterday"}}, "must be given a time"),
    ],
)
def test_what_cannot_be_given_is_refused_in_a_sentence(
    session: Session, given: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        session.panels(given)


def test_conditions_are_those_of_the_library(session: Session) -> None:
    found = told.conditions(session.views, {"price": {"value": 3.5}, "size": {"missing": True}})
    assert found == {"price": [Value(3.5)], "size": [missing]}


def test_rows_and_events_that_make_no_sense_are_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="the table has rows 1 to 400"):
        session.picked(0)
    with pytest.raises(ValueError, match="a download has 1 to"):
        session.rows_csv({}, 10**9)
    with pytest.raises(ValueError, match="an event must be a text"):
        session.chance({}, " ")
    with pytest.raises(ValueError, match="has no column 'z'"):
        session.row({"z": "1"})


def test_a_model_with_a_context_is_refused() -> None:
    model = small(context=["city"]).fit(mixed())
    with pytest.raises(ValueError, match="takes a joint model, but this one was fitted given city"):
        Session(model)


def test_a_table_must_have_the_models_columns(session: Session) -> None:
    with pytest.raises(ValueError, match="must have the model's column 'price'"):
        Session(session.estimator, mixed().drop(columns="price"))
