"""Decisions: what columns of every sort are taken for, that they can be scored at all, and why."""

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nits.tables.evidence import choice as evidence
from nits.tables.evidence import grids
from nits.tables.evidence.choice import decide
from nits.tables.evidence.decisions import Decision, Gridded, Levels, Ordered, Real
from nits.tables.evidence.records import Record
from nits.tables.evidence.samples import Sample
from nits.tables.evidence.scales import Asinh, Linear, Log, Logit

rng = np.random.default_rng(0)
N = 4000
CELSIUS = np.round(rng.normal(12, 9, N), 1)


def draws() -> np.random.Generator:
    """The same numbers whichever tests are run."""
    return np.random.default_rng(1)


def z_scores(k: NDArray[Any]) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = (k - k.mean()) / k.std()
    return scores


def gains(capped: int = 99_999) -> NDArray[np.int64]:
    """A census's capital gains: zero for 92 %, any sum for most others, and a cap."""
    some = np.minimum(np.round(np.exp(rng.normal(8, 1.5, N))), capped)
    found = np.where(rng.random(N) < 0.92, 0, some).astype(np.int64)
    found[rng.random(N) < 0.005] = capped
    return found


DISCRETE: dict[str, NDArray[Any]] = {
    "gains": gains(),
    "hour": rng.integers(0, 24, N),
    "hour, 60 rows": rng.integers(0, 24, 60),
    "month": rng.integers(1, 13, N),
    "day": rng.integers(1, 32, N),
    "year": rng.choice(np.arange(2013, 2018), N, p=[0.2, 0.25, 0.25, 0.25, 0.05]),
    "0 or 1": (rng.random(N) < 0.01).astype(float),
    "rating": rng.choice([1, 2, 4, 5], 200, p=[0.1, 0.2, 0.4, 0.3]),
    "counts": rng.poisson(3, N),
    "multiples of ten": np.round(rng.gamma(4, 30, N), -1),
    "quarters at 1.5e6": 1.5e6 + np.round(rng.normal(0, 400, N)) / 4,
    "1e-7 to 5e-7": rng.integers(1, 6, N) * 1e-7,
    "z-scored counts": z_scores(rng.poisson(400, N)),
    "z-scored counts in float32": z_scores(rng.poisson(400, N)).astype(np.float32),
    "tenths in float32": np.round(rng.normal(20, 8, N), 1).astype(np.float32),
    "tenths of degrees F": np.round(1.8 * CELSIUS + 32, 1),
    "degrees F": np.round(1.8 * np.round(CELSIUS) + 32),
    "prices": np.round(rng.gamma(2, 20, N)) + 0.99,
    "zip codes": rng.choice(rng.integers(1000, 99_999, 300), N, p=rng.dirichlet(np.ones(300))),
    "near 2^62": 2**62 + rng.poisson(300, N),
    "dates": np.datetime64("2020-01-01", "s") + rng.integers(0, 700, N).astype("timedelta64[D]"),
}
REAL: dict[str, NDArray[Any]] = {
    "two decimals, 60 rows": np.round(rng.normal(size=60), 2),
    "60 rows": rng.normal(size=60),
    "60 rows, exponential": rng.exponential(size=60),
    "normal": rng.normal(3, 2, N),
    "float32": rng.normal(3, 2, N).astype(np.float32),
    "uniform": rng.random(N),
    "Cauchy": rng.standard_cauchy(N),
    "log-normal": np.exp(3 * rng.normal(size=N)),
    "Pareto": rng.pareto(1.0, N) + 1,
    "outlier": np.append(rng.normal(size=N), 2e9),
    "1e-300": 1e-300 * rng.normal(size=N),
    "1e300": 1e300 * rng.normal(size=N),
    "largest floats": 1.7e308 * rng.uniform(-1, 1, N),
    "denormal": 5e-324 * np.round(rng.gamma(4, 1e6, N)),
    "a few denormal": 1e-318 * rng.normal(0.97, 0.1, 100),
    "one value twice": np.append(rng.normal(size=N), [0.123456789101112] * 2),
    "wide integers": np.round(np.exp(rng.normal(12, 3, N))).astype(np.int64),
    "moments": np.datetime64("2020-01-01", "ns") + (rng.random(N) * 1e17).astype("timedelta64[ns]"),
}
DECISIONS: dict[str, Decision] = {}


def decided(name: str) -> Decision:
    if name not in DECISIONS:
        DECISIONS[name] = decide((DISCRETE | REAL)[name])
    return DECISIONS[name]


def represented(decision: Decision, values: NDArray[Any]) -> bool:
    """Whether each training value is one of the discrete values, and comes back as it was."""
    kind = decision.kind
    if isinstance(kind, Gridded):
        k, on = kind.grid.encode(values)
        again = kind.grid.decode(k)
        near = np.abs(again.astype(float) - grids.integers(values).astype(float))
        return bool(on.all()) and bool((near <= kind.grid.tolerance(again.astype(float))).all())
    if isinstance(kind, Levels | Ordered):
        listed = np.array(kind.values, dtype=grids.integers(values).dtype)
        return bool(grids.place(listed, values)[1].all())
    return False


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_columns_hold_every_training_value(name: str) -> None:
    assert represented(decided(name), DISCRETE[name])


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_have_no_atoms(name: str) -> None:
    kind = decided(name).kind
    assert isinstance(kind, Real)
    assert kind.atoms == ()


@pytest.mark.parametrize("name", [*DISCRETE, *REAL])
def test_every_score_is_finite_and_every_value_has_a_place_on_the_scale(name: str) -> None:
    decision, values = decided(name), grids.integers((DISCRETE | REAL)[name])
    assert all(math.isfinite(score) for score in decision.scores.values())
    assert decision.scale is not None
    u = decision.scale.to((values.astype(object) - decision.base).astype(np.float64))
    assert np.isfinite(u).all()
    assert decision.ends[0] <= u.min() <= u.max() <= decision.ends[1]
    assert decision.low <= values.min().item() <= values.max().item() <= decision.high
    assert decision.rows == len(values)


@pytest.mark.parametrize("name", [*DISCRETE, *REAL])
def test_tails_have_one_row_in_n_plus_one_or_nothing(name: str) -> None:
    decision = decided(name)
    for tail in (decision.lower, decision.upper):
        assert tail.share in (0, 1 / (decision.rows + 1))


@pytest.mark.parametrize(
    ("name", "kind", "low", "high"),
    [
        ("hour", Levels, 0, 23),
        ("month", Levels, 1, 12),
        ("day", Levels, 1, 31),
        ("year", Levels, 2013, 2017),
        ("0 or 1", Levels, 0, 1),
        ("rating", Levels, 1, 5),
        ("1e-7 to 5e-7", Levels, 1e-7, 5e-7),
        ("gains", Gridded, 0, 99_999),
    ],
)
def test_closed_columns_have_nothing_beyond_their_ends(
    name: str, kind: type, low: float, high: float
) -> None:
    decision = decided(name)
    assert isinstance(decision.kind, kind)
    assert (decision.low, decision.high) == (low, high)
    assert decision.lower.share == decision.upper.share == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hour, 60 rows", Gridded),
        ("quarters at 1.5e6", Gridded),
        ("z-scored counts", Gridded),
        ("z-scored counts in float32", Gridded),
        ("tenths in float32", Gridded),
        ("tenths of degrees F", Ordered),
        ("degrees F", Levels),
        ("zip codes", Ordered),
        ("near 2^62", Gridded),
        ("dates", Gridded),
        ("two decimals, 60 rows", Real),
    ],
)
def test_kinds(name: str, kind: type) -> None:
    assert isinstance(decided(name).kind, kind)


def test_zeros_and_the_cap_are_atoms() -> None:
    kind = decided("gains").kind
    assert isinstance(kind, Gridded)
    assert kind.grid.decode(np.array(kind.atoms)).tolist() == [0, 99_999]


def test_shares_of_ordered_values_follow_their_frequencies() -> None:
    kind = decided("zip codes").kind
    assert isinstance(kind, Ordered)
    assert sum(kind.shares) == pytest.approx(1)
    assert min(kind.shares) > 0
    _, counts = np.unique(DISCRETE["zip codes"], return_counts=True)
    assert np.corrcoef(kind.shares, counts)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("normal", Linear),
        ("Cauchy", Asinh),
        ("log-normal", Log),
        ("Pareto", Log),
        ("outlier", Asinh),
        ("1e-300", Linear),
        ("1e300", Linear),
        ("largest floats", Linear),
        ("wide integers", Log),
    ],
)
def test_scales(name: str, scale: type) -> None:
    assert isinstance(decided(name).scale, scale)


def test_u_shaped_shares_are_modelled_as_log_odds() -> None:
    decision = decide(draws().beta(0.4, 0.4, N))
    assert isinstance(decision.scale, Logit)
    assert (decision.low, decision.high) == (0, 1)


LOG_DENSITIES = {
    "normal": lambda x: -0.5 * ((x - 3) / 2) ** 2 - math.log(2) - 0.5 * math.log(2 * math.pi),
    "Cauchy": lambda x: -np.log1p(x**2) - math.log(math.pi),
    "log-normal": lambda x: (
        -np.log(x) - np.log(x) ** 2 / 18 - math.log(3) - 0.5 * math.log(2 * math.pi)
    ),
    "Pareto": lambda x: -2 * np.log(x),
    "1e-300": lambda x: -0.5 * (x / 1e-300) ** 2 + 300 * math.log(10) - 0.5 * math.log(2 * math.pi),
}


@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_held_out_scores_come_near_the_truth(name: str) -> None:
    decision, x = decided(name), REAL[name]
    assert decision.resolution is not None
    density = decision.scores["real"] - np.log(decision.resolution.at(x)).mean()
    assert density == pytest.approx(LOG_DENSITIES[name](x).mean(), abs=0.05)


def test_an_outlier_costs_itself_only() -> None:
    x, decision = REAL["outlier"], decided("outlier")
    assert decision.resolution is not None
    density = decision.scores["real"] - np.log(decision.resolution.at(x)).mean()
    truth = (-0.5 * x[:-1] ** 2 - 0.5 * math.log(2 * math.pi)).sum() / len(x)
    assert truth - 0.08 < density < truth + 0.02


def test_sixty_rows_never_get_atoms() -> None:
    for seed in range(20):
        draws = np.random.default_rng(seed)
        for x in (draws.normal(size=60), np.round(draws.normal(size=60), 2)):
            assert decide(x).kind.atoms == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("rest", [rng.normal(size=N), rng.gamma(2.0, 3.0, N)])
def test_zeros_among_real_numbers_are_an_atom(rest: NDArray[np.float64]) -> None:
    kind = decide(np.where(draws().random(N) < 0.3, 0.0, rest)).kind
    assert kind == Real((0.0,))


def test_a_cap_of_real_numbers_is_an_atom_and_a_limit() -> None:
    decision = decide(np.minimum(draws().normal(size=N), 1.5))
    assert decision.kind == Real((1.5,))
    assert decision.high == 1.5
    assert decision.upper.share == 0


def test_a_spike_does_not_make_a_list_of_the_few_values_beside_it() -> None:
    kind = decide(np.append(np.full(3000, 2.5), draws().normal(size=6))).kind
    assert kind == Real((2.5,))


def test_small_counts_beside_huge_ones_have_probabilities_of_their_own() -> None:
    k = np.floor(np.exp(draws().normal(3, 3, N))).astype(np.int64)
    decision = decide(k)
    assert isinstance(decision.kind, Real)
    assert set(range(20)) <= set(decision.kind.atoms)
    assert set(decision.scores) == {"real with atoms", "ordered", "levels"}
    assert decide(k, kind="continuous", atoms=False).kind.atoms == ()  # type: ignore[union-attr]


def test_three_digits_are_a_resolution_not_a_grid() -> None:
    x = np.array([float(f"{value:.3g}") for value in np.exp(2 * draws().normal(size=N))])
    decision = decide(x)
    assert isinstance(decision.kind, Real)
    assert decision.resolution is not None
    assert decision.resolution.digits == 3
    np.testing.assert_allclose(decision.resolution.at(np.array([123.0, 0.0456])), [1.0, 0.0001])


def test_five_digits_around_a_power_of_ten_are_a_resolution_not_a_grid() -> None:
    x = np.array([float(f"{value:.5g}") for value in draws().normal(1000, 8, N)])
    decision = decide(x)
    assert isinstance(decision.kind, Real)
    assert decision.reason.startswith("real numbers of 5 digits; ")
    assert decision.scores["real"] > decision.scores["grid with atoms"] + 0.5


@pytest.mark.parametrize(
    "values",
    [
        [math.e, 7.1],
        [math.e, 7.1, math.e],
        [math.e, 7.1, math.e, math.pi, math.pi, 1e9],
        [1e11] * 6 + [math.pi],
        [0.0] * 6 + [5e-324],
        1e-318 * np.minimum(rng.normal(0.97, 0.1, 100), 1),
    ],
)
def test_tiny_columns_have_finite_scores(values: Any) -> None:
    decision = decide(np.array(values))
    assert all(math.isfinite(score) for score in decision.scores.values())


@pytest.mark.parametrize("odd", [1e9, 17.3])
def test_one_value_and_a_single_other_one_are_two_levels(odd: float) -> None:
    decision = decide(np.append(np.full(299, 0.9159781718933513), odd))
    assert isinstance(decision.kind, Levels)
    assert max(decision.scores.values()) < 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_absurd_row_does_not_outweigh_all_others(sign: int) -> None:
    x = sign * np.exp(6 * draws().normal(size=300))
    decision = decide(np.append(x, -sign * 1e300))
    assert isinstance(decision.scale, Asinh)
    assert decision.scores["real"] > -60


def test_values_of_both_signs_and_many_magnitudes_have_a_fine_scale() -> None:
    log = 6 * draws().normal(size=N)
    decision = decide(np.where(draws().random(N) < 0.5, 1, -1) * np.exp(log))
    assert isinstance(decision.scale, Asinh)
    assert decision.resolution is not None
    density = decision.scores["real"] - np.log(decision.resolution.at(np.exp(log))).mean()
    truth = -0.5 * (log / 6) ** 2 - math.log(6) - 0.5 * math.log(2 * math.pi) - log - math.log(2)
    assert density == pytest.approx(truth.mean(), abs=0.1)


def test_no_scale_makes_most_values_one() -> None:
    x = np.append(1e-7 * np.exp(3 * draws().normal(size=300)), -1e9)
    decision = decide(x)
    assert decision.scale is not None
    assert len(np.unique(decision.scale.to(x))) == len(x)


def test_a_spike_is_found_however_far_away_an_outlier_is() -> None:
    values = np.where(draws().random(300) < 0.3, 99_997.2016, 1e5 + draws().normal(size=300))
    assert decide(np.append(values, 1e300)).kind == Real((99_997.2016,))


@pytest.mark.parametrize("name", ["Cauchy", "Pareto", "outlier", "log-normal", "wide integers"])
def test_tails_hardly_go_farther_than_ten_ranges(name: str) -> None:
    decision, x = decided(name), REAL[name].astype(float)
    assert decision.scale is not None
    reach = np.ptp(x) * np.array([-10, 10]) + [x.min(), x.max()]
    places = decision.scale.to(reach)
    lower = decision.lower.log_mass(decision.ends[0] - places[:1], np.array([np.inf]))
    upper = decision.upper.log_mass(places[1:] - decision.ends[1], np.array([np.inf]))
    assert max(*lower, *upper) <= math.log(1.001e-3 / (decision.rows + 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tails_end_at_the_largest_number_of_the_type(dtype: str) -> None:
    most = float(np.finfo(dtype).max)
    decision = decide((most * draws().uniform(-0.9, 0.999, N)).astype(dtype))
    assert decision.scale is not None
    farthest = decision.scale.back(np.array([decision.ends[1] + decision.upper.room]))
    assert farthest[0] == pytest.approx(most)


def test_small_types_end_where_they_end() -> None:
    k = draws().poisson(80, N)
    decision = decide(k, "int8")
    assert (decision.low, decision.high) == (-128, 127)
    assert 0 < decision.upper.room < math.inf
    assert decide(k, "uint8").low == 0
    assert decide(k).high == 2**63 - 1
    assert decide(k, "object[int]").high == 2**63 - 1
    assert decide(k, "uint8[pyarrow]").high == 255
    assert decide(draws().normal(size=99), "halffloat").high == 65504


def test_grids_end_at_the_last_point_within_a_limit() -> None:
    prices = np.append(draws().poisson(9, N) + 4.99, [2.99])
    decision = decide(prices, kind="integer", support=(0.5, 40))
    assert isinstance(decision.kind, Gridded)
    assert isinstance(decision.scale, Linear)
    assert decision.lower.room * decision.scale.width == pytest.approx(2)
    rest = math.floor(40 - prices.max())
    assert decision.upper.room * decision.scale.width == pytest.approx(rest)


@pytest.mark.parametrize("unit", [3.0, 7.0, 365.25])
def test_grids_give_back_values_to_the_last_digit(unit: float) -> None:
    x = draws().poisson(30, 1000) / unit
    for values in (x, z_scores(x)):
        grid = Record.of(values).own_grid
        assert grid is not None
        assert set(grid.points(grid.encode(values)[0])) == set(values)
        assert grids.Grid(**json.loads(json.dumps(grid.to_dict()))) == grid


def test_dates_are_days() -> None:
    decision = decided("dates")
    assert decision.reason.startswith("days")
    assert isinstance(decision.kind, Gridded)
    assert decision.kind.grid.step == 86_400


def test_strings() -> None:
    words = np.array([f"w{i:04d}" for i in range(5000)], object)
    few = decide(draws().choice(words[:3], 100))
    assert few.kind == Levels(("w0000", "w0001", "w0002"))
    assert few.reason == "3 categories"
    many = decide(np.concatenate([words, words[:999], words[:999]])).kind
    assert isinstance(many, Levels)
    assert many.values == tuple(words[:999])
    assert many.pooled == tuple(words[999:])
    assert sum(many.shares) == pytest.approx(1)
    assert decide(np.array([True, False])).kind == Levels((False, True))


def test_the_user_is_obeyed() -> None:
    hour = DISCRETE["hour"]
    assert decide(hour, kind="continuous", atoms=False).kind == Real((), grids.find(hour))
    assert isinstance(decide(hour, kind="integer").kind, Gridded)
    assert isinstance(decide(hour, kind="ordered").kind, Ordered)
    assert decide(REAL["60 rows"], kind="categorical").kind == Levels(
        tuple(np.unique(REAL["60 rows"]).tolist())
    )
    assert decide(hour, kind="integer").reason.endswith("; as you said")
    zeros = np.where(draws().random(N) < 0.3, 0.0, REAL["normal"])
    assert decide(zeros, atoms=False).kind == Real(())


def test_support_is_hard() -> None:
    decision = decide(REAL["60 rows, exponential"], support=(0, math.inf))
    assert (decision.low, decision.high, decision.hard) == (0, math.inf, True)
    assert decide(DISCRETE["hour"], support=(0, 47)).high == 47
    assert decide(DISCRETE["hour"], support=(0, 47)).upper.share > 0


@pytest.mark.parametrize(
    ("known", "kind", "message"),
    [
        (np.ones(9), None, "two different values at least, but all are 1.0; set it aside"),
        (np.array(["a", "b"], object), "integer", "must be categorical, not integer"),
        (rng.normal(size=50), "integer", "must be multiples of one step to be integer"),
        (rng.normal(size=50), "real", "must be one of continuous, integer, ordered, categorical"),
    ],
)
def test_refusals(known: NDArray[Any], kind: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide(known, kind=kind)


def test_values_outside_the_support_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must lie in the support \[0, 10\], but go from 0 to 23"):
        decide(DISCRETE["hour"], support=(0, 10))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gains", "integers with 2 frequent values, never negative, at most 99999; "),
        ("hour", "24 categories, never negative, at most 23; level with "),
        ("tenths of degrees F", " nats per row ahead of categories"),
        ("log-normal", "real numbers on a log scale, never negative"),
        ("multiples of ten", "categories, never negative; level with "),
    ],
)
def test_reasons(name: str, words: str) -> None:
    assert words in decided(name).reason


def test_decisions_do_not_depend_on_the_order_of_calls() -> None:
    assert decide(DISCRETE["gains"]) == decided("gains")


def test_many_rows_are_thinned_but_every_value_and_the_extremes_are_kept() -> None:
    for place in range(3, 9):
        x = draws().normal(size=50_000)
        x[place] = 2e9
        assert Sample.of(x).x[-1] == 2e9
    k = draws().poisson(200, 50_000)
    k[777] = 9999
    assert represented(decide(k), k)


def test_values_that_rounding_sets_apart_are_one() -> None:
    record = Record.of(np.array([0.1, 0.3, 0.1 + 0.2, 0.3, 0.7]))
    assert record.values.tolist() == [0.1, 0.3, 0.7]
    assert record.counts.tolist() == [1, 3, 1]


def test_each_family_of_candidates_is_scored() -> None:
    assert set(decided("degrees F").scores) == {"grid", "grid with atoms", "ordered", "levels"}
    assert evidence.KINDS == ("continuous", "integer", "ordered", "categorical")


@pytest.mark.parametrize("atoms", [False, True])
def test_ends_and_tails_are_the_same_from_fewer_values(
    atoms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal(40_000)
    x[: 4_000 * atoms] = 0.5
    found = []
    for outer in (40_000, 8_192):
        monkeypatch.setattr(evidence, "OUTER", outer)
        found.append(decide(x))
    whole, thinned = found
    assert thinned.ends == whole.ends
    assert thinned.lower == whole.lower
    assert thinned.upper == whole.upper
    assert thinned.kind == whole.kind
