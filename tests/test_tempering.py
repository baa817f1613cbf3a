"""The power of a mixture by held-out rows: chosen where members err column by column, else not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mixed_table import mixed, small
from nits import NITS, Mixture, NITSDensity, Tempered, load
from nits.heads import Continuous
from nits.tables import stacking, tempering, told
from nits.tables.questions.conditions import Range
from nits.training.rows import Rows
from registry import mlp, randomized, real, seeded

COLUMNS = 12


def rows(x: torch.Tensor) -> Rows:
    return Rows(x)


def of_each_column() -> tuple[list[NITS], torch.Tensor]:
    """Members that err in columns of their own, and rows of which each column is one's."""
    make = partial(NITS.independent, real(COLUMNS))
    members = [randomized(make, seed).requires_grad_(False) for seed in range(3)]
    return members, Tempered(members, power=0.0).sample(600, generator=0)


def of_each_row() -> tuple[list[NITS], torch.Tensor]:
    """Members, and rows of which each is one's."""
    members, _ = of_each_column()
    return members, Mixture(members).sample(600, generator=0)


def seen(members: list[NITS], x: torch.Tensor, folds: int) -> list[tempering.Seen]:
    parts = torch.arange(len(x)).chunk(folds)
    return [tempering.seen(members, [1.0] * len(members), rows(x), part) for part in parts]


@pytest.mark.parametrize("folds", [1, 3])
def test_columns_that_tell_nothing_are_found(folds: int) -> None:
    members, x = of_each_column()
    found = tempering.found(seen(members, x, folds), None)
    assert found is not None
    assert found.power < 0.3
    with torch.no_grad():
        every = torch.stack([Tempered(members, power=p).log_prob(x) for p in tempering.POWERS])
        ahead = (every - Mixture(members).log_prob(x)).numpy()
    for part in np.array_split(found.which, max(folds, 2)):  # each has the power of the others
        off = np.abs(ahead[:, part] - found.gains[part]).max(1)
        assert off.min() < 1e-4


def test_rows_of_one_member_each_keep_bayes_rule() -> None:
    members, x = of_each_row()
    assert tempering.found(seen(members, x, 3), None) is None


def test_rows_without_weight_say_nothing() -> None:
    """The first rows are of columns, the others of members: weights say which of them count."""
    (members, one), (_, other) = of_each_column(), of_each_row()
    parts, first = seen(members, torch.cat([one, other]), 4), np.arange(1200) < 600
    assert tempering.found(parts, np.where(first, 1.0, 0.0)) is not None
    assert tempering.found(parts, np.where(first, 0.0, 1.0)) is None


def test_gains_are_those_of_powers_that_other_folds_chose() -> None:
    """The fold that likes τ = 0 best does not choose for itself."""
    scores = np.zeros((2, len(tempering.POWERS)))
    liked, other = scores.copy(), scores.copy()
    liked[:, -1], other[:, 1] = 5.0, 0.5
    parts = [
        tempering.Seen(np.array([2 * k, 2 * k + 1]), said)
        for k, said in enumerate([liked, other, other])
    ]
    found = tempering.found(parts, None)
    assert found is None  # the first fold has 0 by 1.0 of the others, these have 0 by its own
    parts = [tempering.Seen(part.which, other) for part in parts]
    found = tempering.found(parts, None)
    assert found is not None
    assert found.power == tempering.POWERS[1]
    np.testing.assert_allclose(found.gains, 0.5)


def test_too_few_rows_say_nothing() -> None:
    members, x = of_each_column()
    assert tempering.found([], None) is None
    assert tempering.found(seen(members, x[:1], 1), None) is None


@pytest.fixture(scope="module")
def tempered() -> NITSDensity:
    """A small model of all sorts of members, for which a power was chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempering, "found", _always)
        patch.setattr(stacking, "weights", _even)
        return small(members=4, max_steps=20).fit(mixed(300))


def _even(scores: NDArray[np.float64], *_: object) -> NDArray[np.float64]:
    return np.full(scores.shape[1], 1 / scores.shape[1])


def _always(parts: list[tempering.Seen], weight: object) -> tempering.Found:
    which = np.concatenate([part.which for part in parts])
    return tempering.Found(0.25, which, np.zeros(len(which)))


def test_a_model_is_tempered_where_rows_say_so(tempered: NITSDensity, tmp_path: object) -> None:
    table = mixed(300)
    tempered.save(f"{tmp_path}/model.nits")
    loaded = load(f"{tmp_path}/model.nits")
    for model in (tempered, loaded):
        inner = getattr(model.model_, "density", model.model_)
        assert isinstance(inner, Tempered)
        assert float(inner.power) == 0.25
    np.testing.assert_array_equal(loaded.score_samples(table), tempered.score_samples(table))
    assert told.mixing(loaded.model_) == [
        "columns tell about the members of later ones to the power 0.25"
    ]
    terms = tempered.score_samples(table, per_column=True).sum(1)
    np.testing.assert_allclose(terms, tempered.score_samples(table), atol=1e-3)


def test_answers_are_those_of_its_rows(tempered: NITSDensity) -> None:
    """Probabilities by particles, beside the shares of many rows, within five errors of both."""
    draws = tempered.sample(20_000, random_state=0)
    name = next(n for n in draws.columns if draws[n].dtype.kind == "f" and draws[n].notna().all())
    low, high = draws[name].quantile([0.3, 0.6])
    answer = tempered.given().probability({name: Range(low, high)})
    share = float(((draws[name] >= low) & (draws[name] <= high)).mean())
    error = float(np.hypot(answer.error, (share * (1 - share) / len(draws)) ** 0.5))
    assert abs(answer.estimate - share) < 5 * error + 1e-4


def test_members_are_mixed_by_rows_without_a_power() -> None:
    members, _ = of_each_column()
    assert type(tempering.mixture(members, [1.0] * 3, None)) is Mixture


def test_supports_of_members_may_differ() -> None:
    """Rows that are impossible under all members tell nothing."""
    members = [randomized(lambda: mlp([Continuous(0.0, 1.0)] * 3), seed) for seed in range(2)]
    x = torch.rand(40, 3, generator=seeded(1))
    x[0] = 7.0
    parts = seen(members, x, 2)
    assert parts[0].scores[0].tolist() == [-np.inf] * len(tempering.POWERS)
    tempering.found(parts, None)  # no warning, which would be an error here
