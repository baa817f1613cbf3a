"""Straight-line guesses inside a weight model, equation (29)."""

import copy

import pytest
import torch
from torch import Tensor

import nits
from nits import NITS
from nits.heads import Atoms, Categorical, Cells, Continuous, Head, Inflated, Integer, ListedEdges
from nits.model import persistence
from nits.weights import Guided, Independent
from nits.weights.allowance import Allowance
from registry import seeded

ROWS = 3000


def linear(heads: list[Head], context: int = 0, order: list[int] | None = None) -> NITS:
    """The shrunk linear model of these columns."""
    ordered = [heads[i] for i in order or range(len(heads))]
    sizes = [h.inputs for h in ordered], [h.weights for h in ordered]
    return NITS(heads, Guided(Independent(*sizes, context), ordered), order).eval()


def walk(count: int, columns: int, seed: int = 0) -> Tensor:
    return (torch.randn(count, columns, generator=seeded(seed)) * 0.2).cumsum(1)


def scored(model: NITS, x: Tensor, context: Tensor | None = None) -> float:
    with torch.no_grad():
        return float(model.log_prob(x, context).mean())


def test_a_linear_model_comes_close_to_a_random_walk() -> None:
    x, fresh = walk(ROWS, 20), walk(5000, 20, seed=1)
    model = linear([Continuous(hidden=(32,), knots=8) for _ in range(20)])
    model.start_from(x)
    steps = fresh.diff(dim=1, prepend=torch.zeros(len(fresh), 1))
    truth = float(torch.distributions.Normal(0.0, 0.2).log_prob(steps).sum(1).mean())
    assert truth - 0.06 < scored(model, fresh) < truth + 0.02


def test_a_network_starts_as_the_linear_model() -> None:
    x = walk(ROWS, 5)
    heads: list[Head] = [Continuous(hidden=(16,), knots=4) for _ in range(5)]
    line = linear(heads, order=[4, 2, 0, 1, 3])
    net = NITS.mlp(heads, hidden=20, blocks=1, order=[4, 2, 0, 1, 3], guess=True).eval()
    for model in (line, net):
        model.start_from(x)
    torch.testing.assert_close(line.log_prob(x[:50]), net.log_prob(x[:50]))


def test_a_line_reads_the_context() -> None:
    context = torch.randn(ROWS, 3, generator=seeded(2))
    noise = torch.randn(ROWS, 1, generator=seeded(3))
    x = context @ torch.tensor([[1.0], [-2.0], [0.0]]) + 0.1 * noise
    model = linear([Continuous(hidden=(32,))], context=3)
    model.start_from(x, context)
    assert abs(scored(model, x, context) - (-1.4189 + 2.3026)) < 0.03
    found = model.weights.get_buffer("coefficients")[0]
    expected = torch.tensor([1.0, -2.0, 0.0, 0.0])  # a line never reads its own column
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)


@pytest.mark.parametrize("spikes", [0.0, 0.5, 1.0])
def test_how_far_a_line_is_trusted_follows_the_rows(spikes: float) -> None:
    """A column is a multiple of the one before, or one of three values whatever that one is."""
    source = seeded(4)
    first = torch.randn(ROWS, generator=source)
    line = 2 * first + 0.05 * torch.randn(ROWS, generator=source)
    spike = torch.randint(-1, 2, (ROWS,), generator=source) + 0.02 * torch.randn(
        ROWS, generator=source
    )
    chosen = torch.rand(ROWS, generator=source) < spikes
    x = torch.stack([first, torch.where(chosen, spike, line)], 1)
    heads: list[Head] = [Continuous(hidden=(32,)) for _ in range(2)]
    model = linear(heads)
    model.start_from(x)
    theta = model.weights(model.reading(x[:1].t()))[96:, 0].detach()
    share = float(theta[-32:].softmax(0)[:16].sum())
    if spikes == 1:
        assert not model.weights.get_buffer("coefficients").any()
    else:
        assert abs(share - (1 - spikes)) < 0.25
    lone = NITS.independent(heads)
    lone.start_from(x)
    assert scored(model, x) > scored(lone, x) - 0.05


def heads_of_all_kinds() -> list[Head]:
    return [
        Continuous(hidden=(8,), knots=4, optional=True),
        Categorical(3),
        Atoms((0.0,), -4.0, 4.0, (8,), knots=4),
        Inflated(Cells(ListedEdges((-2.0, -1.0, 0.0, 1.0, 2.0)), (8,)), (-1, 2)),
        Integer(0, 9, shift=4.0, scale=2.0, hidden=(8,)),
        Continuous(hidden=(4, 4)),
    ]


def rows_of_all_kinds(count: int) -> Tensor:
    source = seeded(5)
    z = torch.randn(count, generator=source)
    x = torch.stack(
        [
            z,
            (z > 0) + (z > 1).float(),
            torch.where(z.abs() < 0.3, 0.0, z.clamp(-4, 4)),
            (z + 2).floor().clamp(-1, 3),
            (2 * z + 4).round().clamp(0, 9),
            z + torch.randn(count, generator=source),
        ],
        1,
    )
    x[::7, 0] = torch.nan
    return x


def test_columns_of_all_kinds_start_finite_and_better_than_alone() -> None:
    x = rows_of_all_kinds(1000)
    model, lone = linear(heads_of_all_kinds()), NITS.independent(heads_of_all_kinds())
    for each in (model, lone):
        each.start_from(x)
    assert scored(model, x) > scored(lone, x) + 1


def test_training_moves_the_network_and_not_the_lines() -> None:
    x = rows_of_all_kinds(500)
    model = NITS.mlp(heads_of_all_kinds(), hidden=20, blocks=1, guess=True)
    history = nits.fit(model, x, max_steps=60, progress=False)
    before = linear(heads_of_all_kinds())
    before.start_from(x)
    assert history.final_validation is not None
    assert not any("coefficients" in name for name, _ in model.named_parameters())
    assert model.weights.get_buffer("coefficients").abs().sum() > 0


def test_a_file_brings_the_lines_back() -> None:
    x = rows_of_all_kinds(300)
    model = linear(heads_of_all_kinds())
    model.start_from(x)
    again = persistence.built(copy.deepcopy(model.description()), Allowance(10**6)).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.log_prob(x), model.log_prob(x))


def test_few_rows_and_missing_ones_are_no_trouble() -> None:
    x = rows_of_all_kinds(4)
    x[:, 0] = torch.nan
    model = linear(heads_of_all_kinds())
    model.start_from(x)
    assert model.log_prob(x).isfinite().all()


def test_the_model_inside_reads_what_is_heard() -> None:
    net = Independent([1], [6], context=2)
    with pytest.raises(ValueError, match="heard must name the 2 features that the model reads"):
        Guided(net, [Continuous(hidden=(2,))], context=3, heard=[0])
