"""Times with a zone are seen as clocks on the wall show them, and come back in their zone."""

from typing import Any

import numpy as np
import pandas
import pytest

from mixed_table import small
from nits.tables import zones

DAYS = pandas.date_range("2021-01-01", periods=400, freq="D", tz="Europe/Oslo")


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_midnights_are_whole_days_all_year_and_come_back(form: str) -> None:
    table: Any = pandas.DataFrame({"when": DAYS})
    if form != "pandas":
        import pyarrow

        table = pyarrow.Table.from_pandas(table)
    if form == "polars":
        import polars

        table = polars.from_arrow(table)
    frame = zones.read(table)
    when = frame.columns["when"].array
    assert (when == when.astype("datetime64[D]")).all()
    back = zones.write(frame)
    assert back.equals(table)


def test_offsets_and_utc_stay_as_they_are() -> None:
    for zone in ("UTC", "+02:00"):
        times = pandas.Series(pandas.date_range("2021-01-01", periods=3, tz=zone))
        frame = zones.read(pandas.DataFrame({"when": times}))
        expected = times.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        assert (frame.columns["when"].array == expected).all()


def test_an_hour_that_comes_twice_is_the_first_and_a_hole_stays_one() -> None:
    times = pandas.Series(
        pandas.to_datetime(["2021-10-31T00:30Z", "2021-10-31T01:30Z", None]).tz_convert(
            "Europe/Oslo"
        )
    )
    frame = zones.read(pandas.DataFrame({"when": times}))
    shown = frame.columns["when"].array
    assert shown[0] == shown[1] == np.datetime64("2021-10-31T02:30")
    back = zones.write(frame)["when"]
    assert back[0] == back[1] == times[0]
    assert back.isna().tolist() == [False, False, True]


def test_samples_are_midnights_of_the_zone() -> None:
    table = pandas.DataFrame({"when": DAYS.repeat(2)})
    model = small(max_steps=3).fit(table)
    assert model.schema_.columns[0].reason.startswith("days")
    drawn = model.sample(300, random_state=0)["when"]
    assert drawn.dtype == table["when"].dtype
    assert (drawn.dt.hour == 0).all()
    given = model.sample(2, random_state=0, given={"when": DAYS[180]})
    assert (given["when"] == DAYS[180]).all()
