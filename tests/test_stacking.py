"""Stacking weights, equation (30): against other maximizers, what is left out, and odd rows."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from nits.tables import stacking
from nits.tables.stacking import Numbers


def reached(scores: Numbers, w: Numbers, weight: Numbers | None = None) -> float:
    """Σ_x log Σ_s w_s exp ℓ_s(x), each row as often as its weight says."""
    rows = scipy.special.logsumexp(scores, axis=1, b=w)
    return float(np.sum(rows if weight is None else weight * rows))


def normals(count: int, scales: list[float], seed: int = 0) -> Numbers:
    """Rows from normals of several scales, a third part each or so, and what each says of them."""
    rng = np.random.default_rng(seed)
    sigma = np.array(scales)
    x = rng.standard_normal(count) * rng.choice(sigma, count)
    found: Numbers = -0.5 * (x[:, None] / sigma) ** 2 - np.log(sigma)
    return found


def test_two_sorts_have_the_best_weights_of_a_grid() -> None:
    scores = normals(400, [0.2, 2.0])
    grid = np.linspace(0, 1, 10_001)
    best = grid[np.argmax([reached(scores, np.array([w, 1 - w])) for w in grid])]
    assert 0.1 < best < 0.9
    np.testing.assert_allclose(stacking.weights(scores), [best, 1 - best], atol=2e-4)


def test_three_sorts_have_the_best_weights_that_another_maximizer_finds() -> None:
    scores = normals(2000, [0.02, 0.5, 9.0])
    found = stacking.weights(scores)
    other = scipy.optimize.minimize(
        lambda w: -reached(scores, w) / len(scores),
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert other.success
    assert min(found) > 0.1
    np.testing.assert_allclose(found, other.x, atol=1e-4)
    steps = np.linspace(0, 1, 41)
    grid = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1]
    assert reached(scores, found) >= max(reached(scores, w) for w in grid)


def test_a_row_of_weight_three_is_three_rows() -> None:
    scores = normals(200, [0.1, 0.5, 4.0])
    times = np.random.default_rng(1).integers(1, 4, len(scores))
    repeated = stacking.weights(np.repeat(scores, times, axis=0))
    weight: Numbers = times.astype(np.float64)
    for scale in (1.0, 1e-3, 1e3):
        np.testing.assert_allclose(stacking.weights(scores, scale * weight), repeated, atol=1e-9)
    assert np.abs(repeated - stacking.weights(scores)).max() > 0.01


def test_weights_follow_the_rows_that_have_weight() -> None:
    scores = np.repeat([[0.0, -3.0], [-3.0, 0.0]], 50, axis=0)
    weight = np.repeat([1.0, 9.0], 50)
    best = stacking.weights(scores, weight)
    grid = np.linspace(0, 1, 10_001)
    sums = [reached(scores, np.array([w, 1 - w]), weight) for w in grid]
    assert best[0] == pytest.approx(grid[np.argmax(sums)], abs=2e-4)


@pytest.mark.parametrize(("gain", "stays"), [(1.9, False), (2.1, True)])
def test_a_sort_stays_if_it_adds_two_nats_in_all(gain: float, stays: bool) -> None:
    """The second sort is ahead in one row of 50, and behind by an infinite amount elsewhere.

    With n rows the best weight of it is w, with (n − 1) log(1 − w) + log(1 − w + w r) in all.
    """
    count = 50

    def added(ahead: float) -> float:
        def lost(w: float) -> float:
            return -(count - 1) * float(np.log1p(-w)) - float(np.log(1 - w + w * np.exp(ahead)))

        found = scipy.optimize.minimize_scalar(lost, bounds=(0, 0.5), method="bounded")
        return -float(found.fun)

    ahead = scipy.optimize.brentq(lambda a: added(a) - gain, 0.1, 20)
    scores = np.zeros((count, 2))
    scores[1:, 1] = -1000.0
    scores[0, 1] = ahead
    w = stacking.weights(scores)
    assert (w[1] > 0) == stays
    assert w.sum() == pytest.approx(1)
    if not stays:
        np.testing.assert_array_equal(w, [1, 0])


def test_sorts_that_go_out_lose_less_than_two_nats_together() -> None:
    """Each of ten sorts adds about one nat, which ten times is worth keeping some."""
    count, sorts = 400, 10
    scores = np.zeros((count, sorts + 1))
    scores[:, 1:] = -50.0
    for s in range(1, sorts + 1):
        scores[s, s] = 7.2
    w = stacking.weights(scores)
    left = w == 0
    assert 0 < left.sum() < sorts
    best = stacking._climbed(scores, np.ones(count))[1]
    assert best - stacking.WORTH <= reached(scores, w) <= best
    for s in np.flatnonzero(~left).tolist():
        others = (~left) & (np.arange(sorts + 1) != s)
        assert stacking._climbed(scores[:, others], np.ones(count))[1] < best - stacking.WORTH


def test_a_sort_that_adds_nothing_goes_out_after_one_that_added_something() -> None:
    """The first adds a nat and goes out; the last is hopeless, and had stayed with 1e-300."""
    count = 50
    scores = np.zeros((count, 3))
    scores[1:, 0] = -1000.0
    scores[0, 0] = 5.5
    scores[:, 2] = -20.0
    alone = stacking._climbed(scores[:, :2], np.ones(count))[1]
    assert 0.5 < alone < stacking.WORTH
    w = stacking.weights(scores, simple=[False, True, True])
    np.testing.assert_array_equal(w, [0, 1, 0])


def test_a_sort_alone_is_never_left_out() -> None:
    np.testing.assert_array_equal(stacking.weights(np.full((3, 1), -1e6)), [1])
    np.testing.assert_array_equal(stacking.weights(np.full((3, 1), -1e-6)), [1])
    twins = stacking.weights(np.zeros((20, 4)))
    assert sorted(twins) == [0, 0, 0, 1]


def test_a_row_that_one_sort_finds_impossible_needs_another() -> None:
    scores = np.tile([0.0, -1.0], (100, 1))
    scores[7, 0] = -np.inf
    grid = np.linspace(0, 1, 10_001)[1:-1]
    best = grid[np.argmax([reached(scores, np.array([w, 1 - w])) for w in grid])]
    found = stacking.weights(scores)
    np.testing.assert_allclose(found, [best, 1 - best], atol=2e-4)
    assert np.isfinite(stacking.mixed(scores, found)).all()


def test_a_row_that_all_sorts_find_impossible_does_not_count() -> None:
    scores = normals(400, [0.2, 2.0])
    more = np.concatenate([scores, [[-np.inf, -np.inf]]])
    np.testing.assert_allclose(stacking.weights(more), stacking.weights(scores), atol=1e-9)
    np.testing.assert_array_equal(stacking.weights(more[:, :1]), [1])
    assert stacking.mixed(more, np.array([0.5, 0.5]))[-1] == -np.inf


@pytest.mark.parametrize("sorts", [1, 3])
def test_without_rows_all_sorts_weigh_the_same(sorts: int) -> None:
    found = stacking.weights(np.empty((0, sorts)))
    np.testing.assert_array_equal(found, np.full(sorts, 1 / sorts))
    assert stacking.mixed(np.empty((0, sorts)), found).shape == (0,)


def test_the_mixture_of_scores_is_the_log_of_a_weighted_sum() -> None:
    scores = normals(50, [0.1, 1.0, 3.0])
    w = np.array([0.2, 0.0, 0.8])
    expected = np.log(np.exp(scores) @ w)
    np.testing.assert_allclose(stacking.mixed(scores, w), expected, rtol=1e-12)
    np.testing.assert_allclose(stacking.mixed(scores - 1e4, w), expected - 1e4, rtol=1e-12)
    impossible = scores.copy()
    impossible[:, 1] = -np.inf
    np.testing.assert_allclose(stacking.mixed(impossible, w), expected, rtol=1e-12)


def test_a_sort_must_add_so_much_to_each_row() -> None:
    """Two sorts that err in different rows: both stay unless more is asked than they add."""
    scores = np.where(np.arange(400)[:, None] % 2 == [0, 1], 0.0, -1.0)
    gain = float(np.log((1 + np.exp(-1.0)) / 2) + 0.5)
    assert (stacking.weights(scores, worth_per_row=0.9 * gain) > 0).all()
    assert sorted(stacking.weights(scores, worth_per_row=1.1 * gain)) == [0.0, 1.0]


def test_of_two_sorts_that_do_as_well_the_simple_one_stays() -> None:
    scores = np.repeat(normals(100, [0.5, 3.0])[:, :1], 2, axis=1)
    for simple in ([True, False], [False, True]):
        np.testing.assert_array_equal(stacking.weights(scores, simple=simple), simple)


def test_the_last_sort_that_is_not_simple_must_add_two_nats_only() -> None:
    """A nat for each hundredth row is less than asked of one network beside another."""
    scores = np.zeros((400, 3))
    scores[::100, 1:] = 3.0
    kept = stacking.weights(scores, worth_per_row=0.05, simple=[True, False, False]) > 0
    assert kept[1:].sum() == 1
