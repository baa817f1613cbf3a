"""Clusters: a Gaussian mixture as a weight model, against scikit-learn's and by its own laws."""

from typing import Any

import numpy as np
import pandas
import pytest
import torch
from scipy import stats
from sklearn.mixture import GaussianMixture
from torch import Tensor

import nits
from nits import NITS
from nits.heads import Atoms, Categorical, Cells, Continuous, Head, Inflated, ListedEdges
from nits.tables import networks
from nits.training.rows import Rows
from nits.weights import Clusters
from nits.weights.clusters import UNITS

K = 4
PNN = (UNITS * K,)


def clumps(n: int, seed: int = 0) -> Tensor:
    """Three Gaussian clumps of three columns."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0, 0], [4, 4, -3], [-4, 3, 3]])
    mix = np.array([[1, 0, 0], [0.8, 0.5, 0], [-0.5, 0.3, 0.4]])
    x = centres[rng.integers(0, 3, n)] + rng.normal(size=(n, 3)) @ mix.T
    return torch.from_numpy(x.astype(np.float32))


def clustered(heads: list[Head], rows: Tensor, order: list[int] | None = None) -> NITS:
    ordered = [heads[i] for i in order] if order else heads
    model = NITS(heads, Clusters(ordered, K), order)
    model.start_from(rows)
    return model.eval()


def kinds() -> list[Head]:
    """What a table may hold: reals, categories, atoms and cells with a value of more mass."""
    cells = Cells(ListedEdges((-2.0, -0.7, 0.1, 0.9, 3.0)), PNN)
    return [
        Continuous(hidden=PNN),
        Categorical(3),
        Atoms((0.0,), -6.0, 6.0, PNN),
        Inflated(cells, (-1, 2)),
        cells,
    ]


def table(n: int, seed: int = 0) -> Tensor:
    """Rows of `kinds`, of which the category tells much."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, n)
    x = rng.normal(size=n) + 3 * level
    y = np.where(rng.random(n) < 0.3, 0.0, np.clip(0.5 * x - 2 + 0.3 * rng.normal(size=n), -6, 6))
    k = np.where(rng.random(n) < 0.2, -1, rng.integers(0, 4, n))
    j = np.minimum(level + (rng.random(n) < 0.2), 3)
    return torch.from_numpy(np.stack([x, level, y, k, j], 1).astype(np.float32))


@pytest.mark.parametrize("order", [None, [2, 0, 1]])
def test_clumps_are_as_likely_as_under_the_best_gaussian_mixture(order: list[int] | None) -> None:
    rows, rest = clumps(2000), clumps(4000, 1)
    model = clustered([Continuous(hidden=PNN)] * 3, rows, order)
    rival = GaussianMixture(3, random_state=0, n_init=3).fit(rows.numpy())
    ours = model.log_prob(rest).mean().item()
    assert ours > rival.score_samples(rest.numpy()).mean() - 0.02


def test_one_cluster_is_the_gaussian_but_for_its_units() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]]) + [5.0, -3.0]
    model = clustered([Continuous(hidden=PNN)] * 2, torch.from_numpy(rows.astype(np.float32)))
    law = stats.multivariate_normal(rows.mean(0), np.cov(rows.T, bias=True))
    points = torch.from_numpy(law.rvs(20_000, random_state=1).astype(np.float32))
    shares = model.state_dict()["weights.log_share"]
    assert int((shares > -100).sum()) == 1
    gap = law.logpdf(points.numpy()) - model.log_prob(points).detach().numpy()
    assert 0 <= gap.mean() < 0.001  # two columns of 0.0003


def test_the_network_is_the_stepper() -> None:
    """Scoring and sampling go through the same weights: the Rosenblatt transform comes back."""
    model = clustered(kinds(), table(800), [1, 0, 3, 2, 4])
    with torch.no_grad():
        rows = model.sample(2000, generator=0)
        u = model.to_uniform(rows)
        again = model.from_uniform(u)
    np.testing.assert_allclose(again.numpy(), rows.numpy(), atol=2e-4)
    assert torch.isfinite(model.log_prob(rows)).all()


def test_samples_follow_the_density() -> None:
    model = clustered([Continuous(hidden=PNN)] * 3, clumps(1500))
    with torch.no_grad():
        u = model.to_uniform(model.sample(4000, generator=1)).numpy()
    for column in u.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4


def test_levels_atoms_and_cells_are_one_in_all() -> None:
    model = clustered(kinds(), table(800))
    x = table(1)
    with torch.no_grad():
        laws = model.conditionals(x)
        levels = laws[1].log_prob(torch.arange(3.0).unsqueeze(1)).exp().sum()
        cells = laws[4].log_prob(torch.arange(4.0).unsqueeze(1)).exp().sum()
        mixed = laws[3].log_prob(torch.arange(-1.0, 4.0).unsqueeze(1)).exp().sum()
    np.testing.assert_allclose([levels, cells, mixed], 1, atol=1e-5)


def test_a_category_tells_of_the_columns_after_it() -> None:
    model = clustered(kinds(), table(2000), [1, 0, 2, 3, 4])
    x = torch.zeros(2, 5)
    x[1, 1] = 2.0
    with torch.no_grad():
        law = model.conditionals(x)[0]
        below = law.cdf(torch.full((2,), 3.0))
    assert below[0] > 0.9 > 0.3 > below[1]


def test_a_column_depends_on_those_before_only() -> None:
    model = clustered(kinds(), table(500), [1, 0, 3, 2, 4])
    x = table(20, 1)
    with torch.no_grad():
        before = model.log_prob_per_column(x)
        for rank, i in enumerate(model.order.tolist()):
            changed = x.clone()
            changed[:, i] = table(20, 2)[:, i]
            moved = (model.log_prob_per_column(changed) - before).abs().amax(0)
            assert (moved[model.order[:rank]] == 0).all()


def test_a_file_brings_it_back(tmp_path: object) -> None:
    model = clustered(kinds(), table(500))
    path = f"{tmp_path}/clusters.nits"
    model.save(path)
    x = table(50, 3)
    assert torch.equal(nits.load(path).log_prob(x), model.log_prob(x))


def test_a_cluster_may_have_two_units() -> None:
    """As in files of earlier versions."""
    rough, fine = (
        clustered([Continuous(hidden=(units * K,))] * 3, clumps(1000)) for units in (2, UNITS)
    )
    with torch.no_grad():
        gap = fine.log_prob(clumps(1000, 1)) - rough.log_prob(clumps(1000, 1))
    assert 0.002 < float(gap.mean()) < 0.012


def test_empty_clusters_are_left_out() -> None:
    frame = pandas.DataFrame(clumps(300).numpy()).rename(columns=str)
    learned = nits.NITSDensity(max_steps=1, order=["1"], random_state=0).fit(frame)
    with torch.no_grad():
        rows, rest = (learned.model_.sample(300, generator=k) for k in range(2))
    every: Any = networks.simple(learned.sketch_, networks.CLUSTERS)
    every.start_from(rows)
    fewer: Any = networks.simple_of(learned.sketch_, networks.CLUSTERS, Rows(rows, None, None))
    assert fewer.weights.components == every.weights.occupied < every.weights.components
    with torch.no_grad():
        torch.testing.assert_close(fewer.log_prob(rest), every.log_prob(rest))


def test_heads_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="of 4 clusters must have no hats, and one layer of as"):
        Clusters([Continuous(hidden=(6,))], K)
    with pytest.raises(ValueError, match="but Continuous has 0 hats and 8 units"):
        Clusters([Continuous(hidden=PNN), Continuous(hidden=(8,))], K)
    with pytest.raises(ValueError, match="but Continuous has 3 hats and 16 units"):
        Clusters([Continuous(hidden=PNN, knots=3)], K)
    with pytest.raises(ValueError, match="must start from rows"):
        Clusters([Categorical(2)], K).start_at(torch.zeros(2))
