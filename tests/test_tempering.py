"""The power of a mixture by held-out rows: chosen where members err column by column, else not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mixed_table import mixed, small
from nits import NITS, Mixture, NITSDensity, Tempered, load
from nits.cli.main import main
from nits.heads import Continuous
from nits.tables import stacking, tempering, told
from nits.tables.questions.conditions import Range
from nits.training.rows import Rows
from registry import randomized, real, seeded

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


SORTS = ["a", "b", "c"]
EVEN = dict.fromkeys(SORTS, 1 / 3)


def seen(members: list[NITS], x: torch.Tensor, folds: int) -> list[tempering.Seen]:
    parts = torch.arange(len(x)).chunk(folds)
    return [tempering.seen(members, SORTS, EVEN, rows(x), part) for part in parts]


@pytest.mark.parametrize("folds", [1, 3])
def test_columns_that_tell_nothing_are_found(folds: int) -> None:
    """The gain on rows that chose nothing is about that on these, and weights are about even."""
    members, x = of_each_column()
    found = tempering.found(seen(members, x, folds), None)
    assert found is not None
    assert found.power < 0.3
    for each in found.weights.values():
        np.testing.assert_allclose(each, 1 / 3, atol=0.15)
    other = Tempered(members, power=0.0).sample(2000, generator=1)
    with torch.no_grad():
        way = tempering.mixture(members, SORTS, found)
        ahead = (way.log_prob(other) - Mixture(members).log_prob(other)).numpy()
    error = (ahead.var() / len(ahead) + found.gains.var() / len(found.gains)) ** 0.5
    assert abs(ahead.mean() - found.gains.mean()) < 4 * error


def test_columns_have_weights_of_their_own() -> None:
    """The first six columns are all one member's, the others another's."""
    members, _ = of_each_column()
    with torch.no_grad():
        x = members[0].sample(900, generator=0)
        x[:, COLUMNS // 2 :] = members[1].sample(900, generator=1)[:, COLUMNS // 2 :]
    found = tempering.found(seen(members, x, 3), None)
    assert found is not None
    first, second, _ = found.weights.values()
    assert first[: COLUMNS // 2].min() > 0.5 > first[COLUMNS // 2 :].max()
    assert second[: COLUMNS // 2].max() < 0.5 < second[COLUMNS // 2 :].min()


NONE = np.empty(0, np.int64), np.empty(0)


def test_members_of_a_sort_share_its_weight() -> None:
    members, x = of_each_column()
    way = tempering.Found(0.0, {"a": np.full(COLUMNS, 0.6), "b": np.full(COLUMNS, 0.4)}, *NONE)
    with torch.no_grad():
        found = tempering.mixture(members, ["a", "b", "a"], way).log_prob(x)
        expected = Tempered(members, [0.3, 0.4, 0.3], 0.0).log_prob(x)
    torch.testing.assert_close(found, expected)


def test_rows_of_one_member_each_keep_bayes_rule() -> None:
    members, x = of_each_row()
    assert tempering.found(seen(members, x, 3), None) is None


def test_rows_without_weight_say_nothing() -> None:
    """Half of the rows of each fold are of columns, half of members: weights say which count."""
    (members, one), (_, other) = of_each_column(), of_each_row()
    mixed = torch.stack([one, other], 1).flatten(0, 1)
    parts, first = seen(members, mixed, 2), np.arange(len(mixed)) % 2 == 0
    assert tempering.found(parts, np.where(first, 1.0, 0.0)) is not None
    assert tempering.found(parts, np.where(first, 0.0, 1.0)) is None


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
    sorts = list(dict.fromkeys(parts[0].sorts))
    columns = parts[0].terms.shape[2]
    own = 1 + np.random.default_rng(0).random((len(sorts), columns))
    weights = dict(zip(sorts, own / own.sum(0), strict=True))
    return tempering.Found(0.25, weights, which, np.zeros(len(which)))


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
        "columns tell later ones about members to the power 0.25; each has its own weights"
    ]
    terms = tempered.score_samples(table, per_column=True).sum(1)
    np.testing.assert_allclose(terms, tempered.score_samples(table), atol=1e-3)


@pytest.mark.parametrize("options", [[], ["--mixing", "rows"]])
def test_rows_are_mixed_whole_if_the_user_says_so(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Then each row is drawn from one member; the command line has the option, too."""
    monkeypatch.setattr(tempering, "found", _always)
    mixed(120).to_csv(tmp_path / "t.csv", index=False)
    paths = [str(tmp_path / "t.csv"), "-o", str(tmp_path / "m.nits")]
    assert main(["fit", *paths, "--members", "4", "--max-steps", "5", "--quiet", *options]) == 0
    model = load(tmp_path / "m.nits")
    kind = Mixture if options else Tempered
    assert isinstance(model, NITSDensity)
    assert type(getattr(model.model_, "density", model.model_)) is kind
    assert bool(told.mixing(model.model_)) == (kind is Tempered)


def test_only_whole_rows_can_be_named() -> None:
    with pytest.raises(ValueError, match="mixing must be 'rows' or None, but is 'columns'"):
        NITSDensity(mixing="columns").fit(mixed(20))


def test_answers_are_those_of_its_rows(tempered: NITSDensity) -> None:
    """Probabilities by particles, beside the shares of many rows, within five errors of both."""
    draws = tempered.sample(20_000, random_state=0)
    name = next(n for n in draws.columns if draws[n].dtype.kind == "f" and draws[n].notna().all())
    low, high = draws[name].quantile([0.3, 0.6])
    answer = tempered.given().probability({name: Range(low, high)})
    share = float(((draws[name] >= low) & (draws[name] <= high)).mean())
    error = float(np.hypot(answer.error, (share * (1 - share) / len(draws)) ** 0.5))
    assert abs(answer.estimate - share) < 5 * error + 1e-4


def test_rows_that_are_impossible_under_all_members_tell_nothing() -> None:
    make = partial(NITS.independent, [Continuous(0.0, 1.0)] * 3)
    members = [randomized(make, seed).requires_grad_(False) for seed in range(3)]
    x = torch.rand(40, 3, generator=seeded(1))
    x[0] = 7.0
    parts = seen(members, x, 2)
    assert parts[0].rule[0] == -np.inf
    gains = tempering._gains(parts[0], parts, None)
    assert (gains[:, 0] == 0).all()
    assert np.isfinite(gains).all()
