"""Columns' probabilities: mass one, calibrated tails, what was never seen, and sampled values."""

import math
import re
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from numpy.typing import NDArray

from hostile_checks import tail_masses
from mixed_table import small
from nits import NITS, NITSDensity
from nits.heads import Categorical, Continuous, Inflated, Integer
from nits.tables.columns import Categories, Codes, Gridded, Ordered, Real
from nits.tables.columns.column import LOWER, UPPER, Facts, facts_of
from nits.tables.frames import Values

N = 400


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


def fitted(values: Any, **options: Any) -> NITSDensity:
    """A model of one column, trained so briefly that its probabilities are far from the data's."""
    frame = pandas.DataFrame({"a": values})
    return NITSDensity(**{"max_steps": 3, "random_state": 0, **options}).fit(frame)


def probability(model: NITSDensity, values: Any) -> NDArray[np.float64]:
    return np.exp(model.score_samples(pandas.DataFrame({"a": values})))


def unseen(model: NITSDensity, values: Any) -> list[bool]:
    found: list[bool] = model.unseen(pandas.DataFrame({"a": values}))[:, 0].tolist()
    return found


def holed(values: Any) -> Any:
    return pandas.Series(values).mask(np.arange(len(values)) % 8 == 0)


def the(model: NITSDensity) -> Any:
    return model.schema_.columns[0]


rng = draws()
REALS: dict[str, tuple[Any, type[Any]]] = {
    "normal": (rng.normal(170, 10, N), Real),
    "log-normal": (rng.lognormal(3, 2, N), Real),
    "heavy tails": (rng.standard_t(1.5, N), Real),
    "a share": (rng.beta(0.4, 0.6, N), Real),
    "zeros": (np.where(rng.random(N) < 0.4, 0.0, rng.gamma(2.0, 3.0, N)), Real),
    "holes": (holed(rng.normal(170, 10, N)), Real),
    "zeros and holes": (holed(np.where(rng.random(N) < 0.4, 0.0, rng.gamma(2, 3, N))), Real),
    "1e-200": (rng.normal(size=N) * 1e-200, Real),
    "1e200": (rng.lognormal(0, 2, N) * 1e200, Real),
}


def edges_of(model: NITSDensity) -> list[NDArray[np.float64]]:
    """Returns points between which to integrate: the body, and each tail to 1e-9 of its mass."""
    ruler = the(model).ruler
    ends = np.array([ruler.least, ruler.greatest])
    low, high = ruler.scale.to(ruler.numbers(ends))
    found = [np.linspace(low, high, 20_001)]
    for side, law in ((LOWER, ruler.lower), (UPPER, ruler.upper)):
        if law.share:
            reach = min(21 / law.rate, law.room)
            end = ruler.ends[0] if side == LOWER else ruler.ends[1]
            found.append(np.sort(end + side * np.linspace(0, reach, 4001)))
    return [ruler.scale.back(places) for places in found]


@pytest.mark.parametrize("name", REALS)
def test_densities_atoms_holes_and_the_unseen_are_one_in_all(name: str) -> None:
    values, kind = REALS[name]
    model = fitted(values)
    column = the(model)
    assert type(column) is kind
    total = column.unseen
    for edges in edges_of(model):
        middle = edges[1:] / 2 + edges[:-1] / 2
        middle = middle[~np.isin(middle, column.atoms)]
        density = model.score_samples(pandas.DataFrame({"a": middle}))
        total += np.exp(density + np.log(np.diff(edges))).sum()
    if column.atoms:
        total += probability(model, list(column.atoms)).sum()
    if column.optional:
        total += probability(model, [np.nan])[0]
    assert total == pytest.approx(1, abs=2e-4)


GRIDS: dict[str, tuple[Any, type[Any], Any]] = {
    "counts": (rng.poisson(40, N), Gridded, np.arange(0, 400)),
    "tenths": (np.round(rng.normal(5, 3, N), 1), Gridded, np.arange(-600, 700) / 10),
    "both signs": (np.round(rng.normal(0, 30, N)).astype(int), Gridded, np.arange(-900, 900)),
    "gains": (
        np.where(rng.random(N) < 0.7, 0, np.round(rng.gamma(2, 60, N))).astype(int),
        Gridded,
        np.arange(0, 6000),
    ),
    "holes": (holed(rng.poisson(40, N)).astype("Int64"), Gridded, np.arange(0, 400)),
    "small integers": (rng.integers(-128, 127, N).astype(np.int8), Gridded, np.arange(-128, 128)),
    "codes": (rng.choice([3, 17, 40], N, p=[0.6, 0.1, 0.3]), Codes, [3, 17, 40]),
    "codes and holes": (holed(rng.choice([3, 17, 40], N)), Codes, [3, 17, 40]),
    "dice": (rng.poisson(1.0, N), Codes, np.arange(0, 60)),
    "names": (rng.choice(["a", "b", "c"], N), Categories, ["a", "b", "c"]),
    "names and holes": (holed(rng.choice(["a", "b"], N)), Categories, ["a", "b"]),
    "yes or no": (rng.random(N) < 0.3, Categories, [True, False]),
}


@pytest.mark.parametrize("name", GRIDS)
def test_probabilities_and_the_unseen_are_one_in_all(name: str) -> None:
    values, kind, every = GRIDS[name]
    model = fitted(values)
    column = the(model)
    assert type(column) is kind
    total = probability(model, every).sum() + column.unseen
    if column.optional:
        total += probability(model, pandas.Series([None], dtype=pandas.Series(values).dtype))[0]
    assert total == pytest.approx(1, abs=1e-5)


def test_ordered_values_are_one_in_all() -> None:
    values = draws().choice([1.0, 2.5, 9.0, 31.0], N)
    model = fitted(values, kinds={"a": "ordered"})
    column = the(model)
    assert type(column) is Ordered
    tails = sum(tail_masses(model))
    assert probability(model, list(column.listed)).sum() + tails + column.unseen == pytest.approx(1)


def test_pooled_categories_are_one_in_all() -> None:
    values = ["a"] * 200 + ["b"] * 150 + ["x", "y", "y", "z"] * 3
    model = fitted(values, pool_below=10)
    assert probability(model, ["a", "b", "x", "y", "z", "new"]).sum() == pytest.approx(1)


ROWS = {**{n: v for n, (v, _) in REALS.items()}, **{f"{n}, grid": v[0] for n, v in GRIDS.items()}}


@pytest.mark.parametrize("name", ROWS)
def test_training_rows_and_samples_are_possible_and_seen(name: str) -> None:
    """Neither fixed nor −inf; sampled rows have the type, and the holes, of the column."""
    values = pandas.Series(ROWS[name])
    model = fitted(values)
    coded = model.schema_.encode(_frame(values))
    assert not coded.fixed.any()
    assert not coded.unseen.any()
    assert np.isfinite(model.score_samples(values.to_frame("a"))).all()
    drawn = model.sample(300, random_state=0)
    assert drawn["a"].dtype == values.dtype
    assert drawn["a"].isna().any() == values.isna().any()
    assert not any(unseen(model, drawn["a"]))
    assert np.isfinite(model.score_samples(drawn)).all()
    complete = model.sample(300, random_state=0, complete=True)["a"]
    assert complete.notna().all()
    assert complete.dtype == values.dtype


def _frame(values: Any) -> Any:
    from nits.tables import frames

    return frames.read(pandas.DataFrame({"a": values}))


# Tails.


@pytest.mark.parametrize(
    ("values", "lower", "upper"),
    [
        (draws().normal(size=99), True, True),
        (draws().poisson(300, 99), True, True),
        (draws().exponential(size=99), False, True),
        (draws().beta(1, 1, 99), False, False),
        (np.minimum(draws().normal(size=199), 0.5), True, False),
        (draws().integers(0, 24, 999), False, False),
    ],
)
def test_tails_are_as_heavy_as_the_next_row(values: Any, lower: bool, upper: bool) -> None:
    """1/(n + 1) beyond an end without a limit, within four standard deviations; nothing beyond
    a limit: 0 for what is never negative, the cap for what is capped."""
    n, drawn = len(values), 100_000
    x = fitted(values).sample(drawn, random_state=1)["a"].to_numpy()
    share = 1 / (n + 1)
    slack = 4 * math.sqrt(share / drawn)
    below, above = (x < values.min()).mean(), (x > values.max()).mean()
    if lower:
        assert abs(below - share) < slack
    else:
        assert x.min() >= min(0, values.min())
    if upper:
        assert abs(above - share) < slack
    else:
        assert x.max() <= max(1, values.max())


def test_exceedance_counts_known_values_only() -> None:
    values = holed(draws().normal(size=160))
    x = fitted(values).sample(100_000, random_state=1)["a"]
    known = values.dropna()
    share = len(known) / len(values) / (len(known) + 1)
    for beyond in ((x < known.min()).mean(), (x > known.max()).mean()):
        assert abs(beyond - share) < 4 * math.sqrt(share / 100_000)


def test_a_value_beyond_the_range_is_neither_unseen_nor_impossible() -> None:
    model = fitted(draws().normal(size=N))
    beyond = [-4.0, 4.0, 5.0, 50.0]
    assert unseen(model, beyond) == [False] * 4
    found = probability(model, beyond)
    assert (found > 0).all()
    assert (np.diff(found[1:]) < 0).all()


def test_a_value_beyond_a_limit_that_was_found_is_unseen() -> None:
    model = fitted(draws().exponential(size=N))
    assert unseen(model, [-1.0, 0.5]) == [True, False]
    assert probability(model, [-1.0])[0] == pytest.approx(1 / (N + 2))


def test_a_value_beyond_the_users_limit_is_impossible() -> None:
    model = fitted(draws().random(N), support={"a": (0.0, 1.0)})
    assert probability(model, [-0.1, 1.1]).tolist() == [0, 0]
    assert unseen(model, [-0.1, 1.1]) == [False, False]
    whole = fitted(draws().poisson(30, N), support={"a": (0, 60)})
    assert probability(whole, [-1, 61]).tolist() == [0, 0]
    assert probability(whole, [0, 60]).min() > 0
    drawn = whole.sample(20_000, random_state=0)["a"]
    assert drawn.min() >= 0
    assert drawn.max() <= 60


# What was never seen.


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        (draws().poisson(40, N), 40.5),
        (np.round(draws().normal(5, 3, N), 1), 5.05),
        (draws().choice([3, 17, 40], N), 4),
        (draws().choice(["a", "b"], N), "z"),
        (draws().choice(["a", "b"], N), None),
        (draws().random(N) < 0.5, None),
        (draws().normal(size=N), None),
        (draws().poisson(40, N).astype(float), None),
        (draws().choice([3.0, 17.0, 40.0], N), None),
        (draws().normal(size=N), math.inf),
        (
            np.datetime64("2024-01-01") + draws().integers(0, 900, N),
            pandas.Timestamp("2025-01-01 12:00"),
        ),
    ],
)
def test_the_unseen_is_finite_and_flagged(values: Any, odd: Any) -> None:
    model = fitted(values)
    known = pandas.Series(values)[0]
    table = pandas.Series([known, odd], dtype=object)
    if isinstance(known, pandas.Timestamp):
        table = table.astype("datetime64[ns]")
    assert unseen(model, table) == [False, True]
    assert probability(model, table)[1] == pytest.approx(1 / (N + 2))


def test_off_the_grid_and_beyond_the_range_is_rarer_still() -> None:
    model = fitted(draws().poisson(40, N))
    beyond = the(model).ruler.greatest + np.array([3.0, 3.5])
    on, off = probability(model, beyond)
    assert unseen(model, beyond) == [False, True]
    assert 0 < off < on / N


def test_atoms_are_told_from_neighbours_that_float32_is_too_coarse_for() -> None:
    """The neighbours have densities, the atom a probability, and samples hit it exactly."""
    atom = 1.000000001
    x = np.where(np.arange(N) % 4 == 0, atom, draws().normal(1, 0.5, N))
    x[1:9] = atom + np.array([-3, -2, -1, 1, 2, 3, 4, 5]) * 1e-12
    model = fitted(x)
    column = the(model)
    assert column.atoms == (atom,)
    coded = model.schema_.encode(_frame(x))
    places = column.places()
    assert np.array_equal(np.isin(coded.numbers[:, 0], places), x == atom)
    drawn = model.sample(2000, random_state=0)["a"].to_numpy()
    assert (drawn == atom).mean() > 0.1
    near = np.abs(drawn - atom) < 1e-7
    assert (drawn[near] == atom).all()


def test_atoms_that_float32_cannot_tell_apart_are_two() -> None:
    pair = (1e9, 1e9 + 1e-6)
    x = np.concatenate([np.repeat(pair, 100), 1e9 + draws().normal(0, 1e4, 300)])
    model = fitted(x)
    assert set(pair) <= set(the(model).atoms)
    drawn = model.sample(5000, random_state=0)["a"].to_numpy()
    assert all((drawn == one).mean() > 0.02 for one in pair)


# Types.


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "Int8", "uint64"])
def test_small_integers_never_wrap(dtype: str) -> None:
    ends = np.iinfo(dtype.lower())
    span = min(200, int(ends.max) - int(ends.min))
    k = draws().integers(0, span, N)
    top = np.array([int(ends.max) - int(one) for one in k], dtype=dtype.lower())
    values = pandas.Series(top).astype(dtype)
    drawn = fitted(values).sample(20_000, random_state=0)["a"]
    assert drawn.dtype == values.dtype
    assert int(drawn.max()) <= int(ends.max)
    assert int(drawn.min()) > int(ends.max) - 3 * span


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_over_the_whole_of_their_type_are_sampled_over_all_of_it(dtype: str) -> None:
    ends = np.iinfo(dtype)
    values = draws().integers(ends.min, ends.max, N, dtype=dtype)
    drawn = fitted(values, max_steps=60).sample(4000, random_state=0)["a"].to_numpy()
    assert drawn.dtype == values.dtype
    share = drawn.astype(float) / 2.0**64 - float(ends.min) / 2.0**64
    assert (np.histogram(share, 4, (0, 1))[0] > 500).all()


APART = np.array([0, 3, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)


@pytest.mark.parametrize("kinds", [None, "categorical", "ordered"])
@pytest.mark.parametrize("pool_below", [0, 100])
def test_integers_on_both_sides_of_two_to_the_63_keep_all_digits(
    kinds: str | None, pool_below: int
) -> None:
    values = draws().choice(APART, N, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    model = fitted(values, kinds=kinds, pool_below=pool_below)
    assert set(model.sample(2000, random_state=0)["a"]) == set(APART.tolist())
    assert unseen(model, APART) == [False] * 5
    assert unseen(model, APART[3:] - np.uint64(2)) == [True, True]
    assert probability(model, APART).sum() == pytest.approx(1, abs=0.02)


def test_types_limit_what_the_user_leaves_open() -> None:
    values = np.minimum(draws().exponential(18, N), 125).astype(np.int8)
    drawn = fitted(values, support={"a": (0, math.inf)}).sample(50_000, random_state=0)["a"]
    assert drawn.dtype == values.dtype
    assert drawn.max() == 127


below = draws().poisson(300, N)
below -= below.min()
BEYOND: dict[str, Any] = {
    "decades": draws().lognormal(0, 120, N),
    "wide integers": np.ceil(draws().lognormal(5, 4, N)).astype(np.int64),
    "halves in float16": (draws().poisson(40, N) / 2).astype(np.float16),
    "up to 2^63": np.uint64(2**63 - 1) - below.astype(np.uint64),
    "near 2^62": 2**62 + draws().poisson(300, N),
    "dice": draws().poisson(1.0, N),
    "dice, as floats": draws().poisson(1.0, N) * 1.0,
    "days": np.datetime64("2024-01-01", "D") + draws().integers(0, 900, N),
    "tenths in float32": np.round(draws().normal(5, 3, N), 1).astype(np.float32),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_drawn_beyond_an_end_lies_there_and_can_be_scored(name: str) -> None:
    model = fitted(BEYOND[name])
    column, u = the(model), draws().random(500)
    assert any(column.beyond[:2])
    for side, end in zip((LOWER, UPPER), column.beyond[:2], strict=True):
        if end:
            drawn = column.drawn_beyond(side, u)
            coded = column.encode(Values(drawn, np.zeros(500, bool), column.dtype))
            assert coded.fixed.all()
            number = np.float32(column.end(side))  # which later columns read
            assert (coded.numbers.astype(np.float32) == number).all()
            assert (coded.side == side).all()
            assert not coded.unseen.any()
            assert np.isfinite(coded.log_prob).all()
    rows = model.sample(20_000, random_state=0)
    assert rows["a"].dtype == pandas.Series(BEYOND[name]).dtype
    assert not model.unseen(rows).any()
    assert np.isfinite(model.score_samples(rows)).all()
    values = pandas.Series(BEYOND[name])
    outside = (rows["a"] < values.min()) | (rows["a"] > values.max())
    assert 0 < outside.mean() < 2 * sum(tail_masses(model))


def test_times_and_durations_keep_type_and_zone() -> None:
    start = pandas.Timestamp("2024-01-01", tz="Europe/Oslo")
    table = pandas.DataFrame(
        {
            "at": start + pandas.to_timedelta(draws().integers(0, 90_000, N), unit="s"),
            "wait": pandas.to_timedelta(draws().integers(0, 900, N), unit="s"),
            "old": pandas.Series(np.datetime64("0900-01-01", "s") + draws().integers(0, 10**9, N)),
        }
    )
    model = NITSDensity(max_steps=3, random_state=0).fit(table)
    drawn = model.sample(2000, random_state=0)
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    assert (drawn["wait"] >= pandas.Timedelta(0)).all()
    assert (drawn["at"].dt.microsecond == 0).all()
    assert drawn["old"].max() < pandas.Timestamp("1100-01-01")
    assert np.isfinite(model.score_samples(drawn)).all()
    assert not model.unseen(drawn).any()


def test_ordered_categoricals_keep_levels_and_order() -> None:
    levels = [f"level {i}" for i in range(9)]
    values = pandas.Categorical(draws().choice(levels[1:], N), levels, ordered=True)
    model = fitted(values)
    drawn = model.sample(50, random_state=0)["a"]
    assert drawn.dtype == values.dtype
    assert "level 0" not in set(drawn)
    assert unseen(model, pandas.Categorical(["level 1"], levels, ordered=True)) == [False]
    assert np.isfinite(np.log(probability(model, pandas.Categorical(["level 0"], levels)))).all()


# Given values, and entries that are set.


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        (draws().choice(["a", "b"], N), "z"),
        (draws().choice(["a", "b"], N), None),
        (draws().poisson(40, N), 40.5),
        (draws().exponential(size=N), -1.0),
        (draws().normal(size=N), math.nan),
    ],
)
def test_what_a_column_cannot_have_cannot_be_given(values: Any, odd: Any) -> None:
    message = f"the value given for 'a' must be one that the column can have, but is {odd!r}; see"
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted(values).sample(2, given={"a": odd})


def test_a_hole_can_be_given_where_there_were_some() -> None:
    table = pandas.DataFrame({"a": holed(draws().normal(size=N)), "b": draws().normal(size=N)})
    model = NITSDensity(max_steps=3, random_state=0).fit(table)
    drawn = model.sample(20, random_state=0, given={"a": None})
    assert drawn["a"].isna().all()
    assert drawn["b"].notna().all()
    known = model.sample(20, random_state=0, given={0: 0.125})
    assert (known["a"] == 0.125).all()


def test_rows_are_filled_within_ends() -> None:
    """Entries that are not set are drawn inside; set ones stay, wherever they stand."""
    torch.manual_seed(0)
    heads = [
        Continuous(-3, 3, (4,)),
        Inflated(Integer(0, 20, 10.0, 3.0, (4,)), (-1.0,)),
        Categorical(4),
    ]
    model = NITS.mlp(heads, hidden=8, blocks=1)
    within = [(-math.inf, 0.5), (-1.0, math.inf), (-math.inf, 2.0)]
    given = torch.full((4000, 3), math.nan)
    given[::2, 1] = 7.0
    u = torch.rand(4000, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        free, x = model.filled(u, given), model.filled(u, given, None, within)
    assert (x[::2, 1] == 7).all()
    assert x[:, 0].max() <= 0.5 < free[:, 0].max()
    assert x[:, 1].min() >= 0
    assert free[:, 1].min() == -1
    assert x[:, 2].max() <= 2 < free[:, 2].max()
    with torch.no_grad():
        law = model.conditionals(x[:1])[0]
        expected = law.cdf(torch.tensor([-0.5])) / law.cdf(torch.tensor([0.5]))
    assert abs(float((x[:, 0] <= -0.5).float().mean()) - float(expected)) < 4 * 0.5 / 4000**0.5


def test_decimals_of_a_files_type_never_have_more_digits() -> None:
    prices = [Decimal(int(k)) / 100 for k in np.random.default_rng(0).integers(9000, 10_000, 300)]
    table = pyarrow.table({"price": pyarrow.array(prices, pyarrow.decimal128(4, 2))})
    drawn = small(max_steps=3).fit(table).sample(20_000, random_state=0)
    assert drawn.schema == table.schema
    assert max(drawn["price"].to_pylist()) <= Decimal("99.99")


def test_a_new_category_is_as_likely_as_those_that_occurred_once() -> None:
    many = draws().zipf(1.6, 3000)
    words = [f"w{k}" for k in many]
    table = pandas.DataFrame({"a": words, "b": draws().normal(size=len(words))})
    model = NITSDensity(max_steps=2, random_state=0, kinds={"a": "categorical"}).fit(table)
    counts = pandas.Series(words).value_counts()
    share = float((counts == 1).sum()) / len(words)
    later = {f"w{k}" for k in np.random.default_rng(1).zipf(1.6, 30_000)}
    assert 0.02 < share < 0.3
    assert later - set(words)
    assert the(model).unseen == pytest.approx(share, rel=0.01)
    plain = NITSDensity(max_steps=2, random_state=0).fit(table[["b"]])
    assert the(plain).unseen == pytest.approx(1 / 3002)


@pytest.mark.parametrize(("name", "count"), [("columns", 0), ("rows", -1), ("singles", -3)])
def test_counts_of_a_file_must_be_counts(name: str, count: int) -> None:
    record = asdict(Facts("a", "int64", 10))
    assert facts_of(record) == Facts("a", "int64", 10)
    with pytest.raises(ValueError, match=f"^{name} of a column must be at least "):
        facts_of({**record, name: count})
