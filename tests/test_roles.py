"""Questions with any columns given and any asked: normalized, causal, sampled, learned, kept."""

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

import nits
from mixed_table import mixed, small
from nits import NITSDensity, RandomRoles, Recipe, Roles, fit
from nits.cli.main import main
from nits.heads import Atoms, Categorical, Continuous, Head, Integer
from nits.model.random_roles import Shares
from nits.tables import companion, members
from registry import kinds_of_tables, randomized, roles, seeded

ORDER = [3, 1, 4, 0, 2]
"""Of the columns of `finite`, so that no column is modelled at its own position but one."""

NODES = 48


def finite() -> list[Head]:
    """Columns whose values can all be summed over, or integrated over an interval."""
    return [
        Continuous(0.0, 1.0, (5,), knots=3),
        Categorical(3),
        Integer(0, 4, shift=2.0, scale=2.0, hidden=(5,)),
        Continuous(-1.0, 2.0, (4, 3)),
        Categorical(2),
    ]


@pytest.fixture
def model() -> Roles:
    return randomized(lambda: roles(finite(), order=ORDER), 1).roles.double().eval()


def drawn_roles(columns: int, seed: int) -> tuple[Tensor, Tensor]:
    """Returns which columns are given and which asked; some are neither, and one is asked."""
    role = torch.randint(3, (columns,), generator=seeded(seed))
    role[seed % columns] = 1
    return role == 0, role == 1


def values(model: Roles, n: int, seed: int = 0) -> Tensor:
    nothing = torch.zeros(n, model.columns, dtype=torch.bool)
    return model.sample(torch.zeros(n, model.columns), nothing, seed)


def nodes(head: Head) -> tuple[Tensor, Tensor]:
    """Returns all values of a column and their weights in an integral over it."""
    if isinstance(head, Categorical):
        return torch.arange(head.levels).double(), torch.ones(head.levels).double()
    if isinstance(head, Integer):
        every = torch.arange(head.least, head.greatest + 1).double()
        return every, torch.ones_like(every)
    x, w = np.polynomial.legendre.leggauss(NODES)
    half = (head.high - head.low) / 2
    return torch.from_numpy(head.low + half * (x + 1)), torch.from_numpy(half * w)


@pytest.mark.parametrize("seed", range(8))
def test_the_mass_of_the_asked_columns_is_one(model: Roles, seed: int) -> None:
    given, asked = drawn_roles(model.columns, seed)
    at = asked.nonzero().flatten().tolist()
    grids = [nodes(model.density.heads[i]) for i in at]
    x = values(model, 1, seed).double().repeat(int(np.prod([len(g[0]) for g in grids])), 1)
    every = torch.cartesian_prod(*(g[0] for g in grids)).reshape(len(x), -1)
    weight = torch.cartesian_prod(*(g[1] for g in grids)).reshape(len(x), -1).prod(1)
    x[:, at] = every
    with torch.no_grad():
        mass = (model.log_prob(x, given, asked).exp() * weight).sum()
    assert float(mass) == pytest.approx(1.0, abs=1e-6)


def test_a_given_value_reaches_every_asked_column(model: Roles) -> None:
    x, other = values(model, 4, 1), values(model, 400, 2)
    for column in range(model.columns):
        given = torch.arange(model.columns) == column
        asked = ~given
        changed = x.clone()
        changed[:, column] = next(v for v in other[:, column] if v != x[0, column])
        one, two = (model.log_prob_per_column(t, given, asked)[0] for t in (x, changed))
        assert (one[asked] != two[asked]).all()
        assert one[column] == two[column] == 0


@pytest.mark.parametrize("column", range(5))
def test_the_context_says_which_columns_are_given(model: Roles, column: int) -> None:
    told = model.read(values(model, 1), torch.arange(5) == column)[0]
    parts = told.split([model.density.heads[i].inputs for i in ORDER])
    assert [bool(part[-1] == 0) for part in parts] == [i == column for i in ORDER]
    assert all((part[:-1] == 0).all() for part in parts if part[-1])


@pytest.mark.parametrize("seed", range(6))
def test_an_absent_value_changes_nothing(model: Roles, seed: int) -> None:
    given, asked = drawn_roles(model.columns, seed)
    x = values(model, 5, seed)
    whole = model.log_prob_per_column(x, given, asked)
    for instead in (torch.nan, torch.inf, -7.0):
        hidden = torch.where(given | asked, x, instead)
        assert torch.equal(model.log_prob_per_column(hidden, given, asked), whole)
    assert (whole[:, ~asked] == 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_an_asked_column_reads_asked_ones_before_it_only(model: Roles, seed: int) -> None:
    given, asked = drawn_roles(model.columns, seed)
    x = values(model, 1, seed)
    whole = model.log_prob_per_column(x, given, asked)[0]
    others = values(model, 400, seed + 1)
    for position, column in enumerate(ORDER):
        if asked[column]:
            changed = x.clone()
            changed[0, column] = next(v for v in others[:, column] if v != x[0, column])
            found = model.log_prob_per_column(changed, given, asked)[0]
            before, after = (
                [i for i in part if asked[i]] for part in (ORDER[:position], ORDER[position + 1 :])
            )
            assert torch.equal(found[before], whole[before])
            assert (found[after] != whole[after]).all()


def test_with_nothing_given_it_is_the_joint_density() -> None:
    density = randomized(lambda: roles(kinds_of_tables(), order=[1, 0, 2, 5, 4, 3]), 3)
    x = density.sample(50, generator=1)
    none = torch.zeros(6, dtype=torch.bool)
    found = density.roles.log_prob_per_column(x, none, ~none)
    assert torch.equal(found, density.log_prob_per_column(x))
    torch.testing.assert_close(found.sum(1), density.roles.log_prob(x, none, ~none))


def test_roles_may_differ_from_row_to_row(model: Roles) -> None:
    x = values(model, 6)
    parts = [drawn_roles(model.columns, seed) for seed in range(6)]
    given, asked = (torch.stack(each) for each in zip(*parts, strict=True))
    together = model.log_prob(x, given, asked)
    apart = [model.log_prob(x[[i]], given[i], asked[i]) for i in range(6)]
    torch.testing.assert_close(together, torch.cat(apart))


def test_steps_say_what_scoring_says(model: Roles) -> None:
    given, asked = (torch.stack([drawn_roles(5, s)[k] for s in range(20)]) for k in (0, 1))
    x = values(model, 20)
    with torch.no_grad():
        steps = model.steps(20, x, given)
        terms = []
        for i in ORDER:
            known = x[:, i].masked_fill(~(given | asked)[:, i], torch.nan)
            terms.append(steps.log_prob(known))
            steps.feed(known)
        found = torch.stack(terms, 1)[:, torch.tensor(ORDER).argsort()]
        torch.testing.assert_close(found, model.log_prob_per_column(x, given, asked))


def test_what_is_given_is_certain_in_every_step(model: Roles) -> None:
    x, given = values(model, 3), torch.tensor([True, False, False, True, False])
    steps = model.steps(3, x, given)
    assert torch.equal(steps.quantile(torch.full((3,), 0.3).double()), x[:, 3])
    assert (steps.log_prob(x[:, 3] + 1) == 0).all()
    assert steps.cdf(torch.stack([x[0, 3] - 0.1, x[1, 3], x[2, 3] + 0.1])).tolist() == [0, 1, 1]
    assert steps.has_mass(x[:, 3]).all()
    steps.feed(torch.zeros(3))  # is not looked at
    steps.feed(x[:, 1])
    asked = ~given
    terms = model.log_prob_per_column(x, given, asked)
    torch.testing.assert_close(steps.log_prob(x[:, 4]), terms[:, 4])


def test_samples_follow_the_density_that_scores_them(model: Roles) -> None:
    """Probabilities of what was drawn are uniform, at a rate of false alarms of 1e-4 each."""
    n = 1500
    x = values(model, n)
    given = torch.tensor([False, True, False, False, True])
    drawn = model.sample(x, given.expand(n, -1), 5)
    assert torch.equal(drawn[:, given], x[:, given])
    with torch.no_grad():
        steps = model.steps(n, drawn, given)
        source = seeded(3)
        for i in ORDER:
            if not given[i]:
                upper = steps.cdf(drawn[:, i])
                mass = steps.log_prob(drawn[:, i]).exp() * steps.has_mass(drawn[:, i])
                u = upper - mass * torch.rand(n, generator=source)
                assert scipy.stats.kstest(u.numpy(), "uniform").pvalue > 1e-4
            steps.feed(drawn[:, i])


def test_absent_columns_are_not_drawn(model: Roles) -> None:
    x, given = values(model, 3), torch.tensor([True, False, False, False, False])
    asked = torch.tensor([False, True, False, False, False])
    drawn = model.sample(x, given, 0, asked=asked)
    assert torch.isnan(drawn).tolist() == [[False, False, True, True, True]] * 3
    again = model.sample(x, given, 0, asked=asked)
    torch.testing.assert_close(drawn, again, rtol=0, atol=0, equal_nan=True)


def test_a_context_of_its_own_is_read_beside_the_given_columns() -> None:
    model = randomized(lambda: roles(finite(), 2, ORDER), 4).roles
    x, context = torch.tensor([[0.5, 1, 2, 0.3, 1]]), torch.tensor([[0.3, -1.0]])
    given = torch.tensor([True, False, False, False, True])
    one, two = (model.log_prob_per_column(x, given, ~given, c) for c in (context, context + 1))
    assert (one[0, ~given] != two[0, ~given]).all()
    drawn = model.sample(x, given, 0, context=context)
    steps = model.steps(1, drawn, given, context)
    torch.testing.assert_close(
        steps.log_prob(drawn[:, 3]), model.log_prob_per_column(drawn, given, ~given, context)[:, 3]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(2, 4)}, "rows must have shape (N, 5), but have (2, 4)"),
        ({"given": torch.zeros(2, 5)}, "roles must be booleans of shape (2, 5) or (5,)"),
        ({"asked": torch.ones(3, 5) > 0}, "but are torch.bool of shape (3, 5)"),
        ({"given": torch.ones(5) > 0}, "a column must be given or asked, but one is both"),
        ({"x": torch.full((2, 5), torch.nan)}, "given and asked values must not be NaN"),
    ],
)
def test_what_is_no_question(model: Roles, change: dict[str, Tensor], message: str) -> None:
    question = {"x": torch.ones(2, 5), "given": torch.zeros(5) > 0, "asked": torch.ones(5) > 0}
    with pytest.raises(ValueError, match=re.escape(message)):
        model.log_prob(**(question | change))


def test_a_context_of_another_width_is_refused() -> None:
    model = randomized(lambda: roles(finite(), 2, ORDER), 4).roles
    none = torch.zeros(5) > 0
    with pytest.raises(ValueError, match="context"):
        model.log_prob(torch.ones(2, 5), none, ~none)
    with pytest.raises(ValueError, match="context must have shape"):
        model.log_prob(torch.ones(2, 5), none, ~none, torch.zeros(2, 3))


def test_a_density_that_does_not_read_its_columns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"make it with nits\.Roles\.mlp"):
        Roles(nits.NITS.mlp(finite(), hidden=21, blocks=1))


def test_shares_are_what_they_say() -> None:
    given, hidden = Shares(joint=0.3, absent=0.5, alone=0.0).draw(20_000, 6, seeded(0))
    assert not (given & hidden).any()
    joint = (~given & ~hidden).all(1).float().mean()
    # Of the other 70 %, a seventh has nothing given, and half and a 14th of these nothing hidden.
    assert float(joint) == pytest.approx(0.3 + 0.7 / 7 * (0.5 + 0.5 / 7), abs=0.02)
    counts = torch.bincount(given.sum(1), minlength=7) / 20_000
    assert counts[1:].tolist() == pytest.approx([0.7 / 7] * 6, abs=0.01)
    harmonic = sum(1 / k for k in range(1, 8))  # ∫ (1 − z)⁶ (−log z) dz is a seventh of it
    assert hidden.any(1).float().mean() == pytest.approx(0.35 * (1 - harmonic / 7), abs=0.01)
    given, hidden = Shares(joint=1.0, alone=0.6).draw(20_000, 6, seeded(0))
    assert not given.any()
    assert hidden.any(1).float().mean() == pytest.approx(0.6 * (1 - 1 / 7), abs=0.01)


def bent(n: int, seed: int = 0) -> Tensor:
    """x_1 follows the square of x_0, and x_2 says which of two noises it has."""
    generator = seeded(seed)
    x0, noise = torch.randn(2, n, generator=generator)
    kind = torch.randint(2, (n,), generator=generator).float()
    return torch.stack([x0, 0.5 * x0**2 + (0.1 + 0.4 * kind) * noise, kind], 1)


def kinds_of_bent() -> list[Head]:
    return [Continuous(hidden=(6,), knots=6), Continuous(hidden=(6,), knots=6), Categorical(2)]


QUICK = Recipe(batch_size=256, learning_rate=1e-2)


def trained(seed: int = 0, steps: int = 20) -> RandomRoles:
    model = RandomRoles(Roles.mlp(kinds_of_bent(), hidden=24, blocks=1, generator=seed))
    fit(model, bent(1500), recipe=QUICK, max_steps=steps, seed=seed, progress=False)
    return model


def test_training_learns_every_direction() -> None:
    model = trained(steps=200).roles
    x = bent(2000, 1)
    column = torch.arange(3)

    def said(given: list[int], asked: int) -> float:
        with torch.no_grad():
            roles = torch.isin(column, torch.tensor(given)), column == asked
            return float(model.log_prob(x, *roles).mean())

    exact = -0.5 * np.log(2 * np.pi * np.e) - (np.log(0.1) + np.log(0.5)) / 2
    assert said([0, 2], 1) == pytest.approx(exact, abs=0.3)
    assert said([0, 2], 1) > said([0], 1) + 0.1 > said([2], 1) + 0.4
    assert said([1, 2], 0) > said([], 0) + 0.3  # against the order of the columns
    assert said([], 0) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.1)
    assert said([0, 1], 2) > said([], 2) + 0.1
    assert said([], 2) == pytest.approx(np.log(0.5), abs=0.02)


def test_the_same_seed_trains_the_same_bits_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    one, two, other = trained(0), trained(0), trained(1)
    assert torch.equal(torch.get_rng_state(), state)
    for name, t in one.state_dict().items():
        assert torch.equal(t, two.state_dict()[name])
    assert any(not torch.equal(t, other.state_dict()[n]) for n, t in one.state_dict().items())


def test_validation_has_the_same_roles_every_time() -> None:
    model, x = trained(), bent(300, 2)
    joint = model.log_prob(x)
    model.reseed(5)
    first, second = model.log_prob(x), model.log_prob(x)
    assert not torch.equal(first, second)
    model.reseed(5)
    assert torch.equal(model.log_prob(x), first)
    model.reseed(6)
    assert not torch.equal(model.log_prob(x), first)
    model.reseed(None)
    assert torch.equal(model.log_prob(x), joint)


def test_a_hidden_column_is_learned_from_too() -> None:
    """All rows hide all columns from one another: each term is then a marginal's."""

    class Hidden(Shares):
        def draw(self, rows: int, columns: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
            every = torch.ones(rows, columns, dtype=torch.bool)
            return ~every, every

    model = RandomRoles(trained().roles, Hidden())
    x = bent(50, 3)
    model.reseed(0)
    found = model.log_prob_per_column(x)
    for i in range(3):
        asked = torch.arange(3) == i
        apart = model.roles.log_prob(x, torch.zeros(3) > 0, asked)
        torch.testing.assert_close(found[:, i], apart)


def companion_of(estimator: NITSDensity) -> Roles:
    assert estimator.companion_ is not None
    return estimator.companion_


def table(rows: int, seed: int = 0) -> Any:
    """Real numbers and strings with holes, and gammas with zeros."""
    return mixed(rows, seed)[["size", "city", "rain"]]


@pytest.fixture(scope="module")
def estimator() -> NITSDensity:
    return small(answers="any").fit(table(240))


def test_the_estimator_has_a_companion_that_changes_nothing_else(estimator: NITSDensity) -> None:
    alone = small().fit(table(240))
    assert alone.companion_ is None
    rows = table(30, 1)
    assert np.array_equal(alone.score_samples(rows), estimator.score_samples(rows))
    assert companion_of(estimator).order.tolist() == estimator.model_.order.tolist()
    assert len(estimator.history_["companion"]["validation"]) > 0


@pytest.mark.parametrize(("named", "times"), [(None, companion.LONGER), (30, 1)])
def test_the_companion_has_more_steps_unless_they_are_named(
    named: int | None, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def stopped(tasks: list[Any], *_: Any) -> list[Any]:
        seen.extend(tasks)
        return []

    monkeypatch.setattr(members, "_run", stopped)
    with pytest.raises(KeyboardInterrupt):
        small(answers="any", max_steps=named, members=1).fit(table(60))
    first, last = seen
    assert last.sort == companion.SORT
    assert last.max_steps == times * first.max_steps
    assert last.seed != first.seed
    assert last.recipe == first.recipe


def test_the_companion_is_saved(estimator: NITSDensity, tmp_path: Path) -> None:
    estimator.save(tmp_path / "m.nits")
    again = companion_of(nits.load(tmp_path / "m.nits"))
    n = 40
    given = torch.rand(n, 3, generator=seeded(0)) < 0.5
    none = torch.zeros_like(given)
    x = companion_of(estimator).sample(torch.zeros(n, 3), none, 1)
    assert torch.equal(again.sample(torch.zeros(n, 3), none, 1), x)
    assert torch.equal(
        again.log_prob(x, given, ~given), companion_of(estimator).log_prob(x, given, ~given)
    )
    assert x.isfinite().all()


def test_the_companion_of_a_model_with_a_context() -> None:
    model = small(answers="any", context=["city"]).fit(table(120))
    read = sum(head.inputs for head in model.sketch_.given)
    assert companion_of(model).context_features == read > 0
    assert companion_of(model).columns == 2


def test_the_companion_of_a_whitened_model_is_not_whitened() -> None:
    rows = np.random.default_rng(0).standard_normal((80, 3)).cumsum(1)
    model = small(answers="any", whiten=True, max_steps=4).fit(rows)
    given = torch.tensor([False, True, False])
    drawn = companion_of(model).sample(torch.ones(4, 3), given, 0)
    assert drawn.isfinite().all()
    assert (drawn[:, 1] == 1).all()


def test_it_trains_in_other_processes() -> None:
    model = RandomRoles(Roles.mlp(kinds_of_bent(), hidden=24, blocks=1, generator=0))
    sent = pickle.loads(pickle.dumps(model))
    for density in (model, sent):
        fit(density, bent(200), recipe=QUICK, max_steps=3, progress=False)
    assert torch.equal(model.log_prob(bent(50, 1)), sent.log_prob(bent(50, 1)))


def test_answers_is_a_choice() -> None:
    with pytest.raises(ValueError, match="answers must be 'any' or None, but is 'all'"):
        small(answers="all").fit(table(60))


def test_nits_fit_answers_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(120)[["size", "city"]].to_csv(tmp_path / "t.csv", index=False)
    file = str(tmp_path / "m.nits")
    options = ["--answers", "any", "--max-steps", "5", "--quiet"]
    assert main(["fit", str(tmp_path / "t.csv"), "-o", file, *options]) == 0
    assert main(["info", file]) == 0
    assert "companion: " in capsys.readouterr().out
    assert companion_of(nits.load(file)).columns == 2


def test_roles_with_atoms_read_which_atom_was_given() -> None:
    heads = [Atoms((-3.0, 0.5), -2.0, 2.0, (4,)), Continuous(0.0, 1.0, (4,))]
    model = randomized(lambda: roles(heads), 2).roles
    given = torch.tensor([True, False])
    x = torch.tensor([[-3.0, 0.5], [-2.0, 0.5], [0.5, 0.5], [0.500001, 0.5]])
    said = model.log_prob(x, given, ~given)
    assert len(said.unique()) == 4
