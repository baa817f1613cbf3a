"""NITS beyond its laws: errors, odd shapes, quasi-random and chunked sampling."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor

from nits import NITS, kernels
from nits.heads import Continuous, Head, Quantized
from nits.model import blocks
from nits.weights import Independent, MaskedMLP
from registry import MODELS, mlp, randomized, real, seeded


@pytest.fixture
def model() -> NITS:
    return randomized(lambda: mlp(real(3)), 1)


@pytest.fixture
def conditional() -> NITS:
    return randomized(lambda: mlp(real(3), context=2), 1)


def every_method(model: NITS) -> list[Callable[..., object]]:
    return [
        model.log_prob,
        model.log_prob_per_column,
        model.conditionals,
        model.to_uniform,
        model.from_uniform,
    ]


# Wrong input.


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(2, 4), ValueError, r"must have shape \(N, 3\).*but has 4 columns"),
        (torch.zeros(3), ValueError, r"must have shape \(N, 3\).*but has shape \(3,\)"),
        (torch.zeros(1, 2, 3), ValueError, r"must have shape \(N, 3\).*but has shape \(1, 2, 3\)"),
        (
            torch.zeros(2, 3, dtype=torch.long),
            TypeError,
            "float32 or float64.*but is int64; convert it",
        ),
        (
            torch.zeros(2, 3, dtype=torch.half),
            TypeError,
            "float32 or float64.*but is float16; convert it",
        ),
        (torch.zeros(2, 3, dtype=torch.bfloat16), TypeError, "but is bfloat16; convert it"),
        (torch.zeros(2, 3, dtype=torch.bool), TypeError, "real numbers, but is bool"),
        (
            torch.zeros(2, 3, dtype=torch.double),
            TypeError,
            "dtype of the model, float32, but is float64",
        ),
        (
            [[0.0, 0.0, 0.0]],
            TypeError,
            "must be a tensor, but is a list; use torch.as_tensor",
        ),
    ],
)
def test_rows_are_refused(model: NITS, x: Tensor, error: type[Exception], message: str) -> None:
    for method in every_method(model):
        with pytest.raises(error, match=message):
            method(x)


@pytest.mark.parametrize("u", [-0.1, 1.1])
def test_numbers_that_are_no_probabilities_are_refused(model: NITS, u: float) -> None:
    with pytest.raises(ValueError, match=rf"u must lie in \[0, 1\], but holds {u:g}"):
        model.from_uniform(torch.full((2, 3), u))


@pytest.mark.parametrize(
    ("context", "error", "message"),
    [
        (None, ValueError, "needs a context of 2 features per row, but got none; pass context="),
        (torch.zeros(4, 3), ValueError, r"context must have shape \(N, 2\).*but has 3 columns"),
        (
            torch.zeros(5, 2),
            ValueError,
            "context must have 4 rows, one per row scored or drawn, but has 5",
        ),
        (torch.zeros(4, 2, dtype=torch.long), TypeError, "context must be.*but is int64"),
        (
            torch.zeros(4, 2, dtype=torch.double),
            TypeError,
            "context must have the dtype of the model, float32",
        ),
        ([[0.0, 0.0]] * 4, TypeError, "context must be a tensor, but is a list"),
    ],
)
def test_context_is_refused(
    conditional: NITS, context: Tensor | None, error: type[Exception], message: str
) -> None:
    for method in every_method(conditional):
        with pytest.raises(error, match=message):
            method(torch.full((4, 3), 0.5), context)
    with pytest.raises(error, match=message):
        conditional.sample(4, context)


def test_context_that_nobody_reads_is_refused(model: NITS) -> None:
    for context in (torch.zeros(4, 1), torch.zeros(1)):
        with pytest.raises(ValueError, match="this model takes no context, but got one"):
            model.sample(4, context)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], [0, 1, 2, 3]])
def test_order_is_refused(order: list[int]) -> None:
    message = r"order must name each of 3 columns once, but is \("
    with pytest.raises(ValueError, match=message):
        NITS.mlp(3, hidden=8, order=order)
    with pytest.raises(ValueError, match=message):
        NITS(3, Independent([1] * 3, [320] * 3), order)


@pytest.mark.parametrize("n", [0, -3, 2.0, "4"])
def test_number_of_samples_is_refused(model: NITS, n: int) -> None:
    for draw in (model.sample, model.rsample):
        with pytest.raises(ValueError, match=f"n must be a positive integer, but is {n!r}"):
            draw(n)


@pytest.mark.parametrize("heads", [0, -1, [], [3], "ab"])
def test_heads_are_refused(heads: Sequence[Continuous] | int) -> None:
    with pytest.raises(
        ValueError, match="heads must be a number of real columns or one head per column"
    ):
        NITS.mlp(heads)


def test_weight_model_of_the_wrong_widths_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"hands out \(3, 4\) weights per column, but the heads need \(320, 320\)"
    ):
        NITS(2, MaskedMLP([1, 1], [3, 4], hidden=8))


def test_hidden_layer_too_narrow_to_see_every_column_is_refused() -> None:
    with pytest.raises(ValueError, match="hidden"):
        NITS.mlp(6, hidden=3)


# Odd shapes and values that simply work.


@pytest.mark.parametrize("name", ["independent", "mlp-context", "mlp-quantized"])
@pytest.mark.parametrize("grad", [False, True])
def test_no_rows(name: str, grad: bool) -> None:
    model = MODELS[name]()
    x, context = torch.zeros(0, model.columns), torch.zeros(0, model.context_features)
    given = context if model.context_features else None
    with torch.set_grad_enabled(grad):
        assert model.log_prob(x, given).shape == (0,)
        assert model.log_prob_per_column(x, given).shape == x.shape
        assert model.to_uniform(x, given).shape == x.shape
        assert model.from_uniform(x, given).shape == x.shape


def test_ends_may_be_integers() -> None:
    model = randomized(lambda: mlp([Continuous(0, 1), Quantized(0, 4, 4)]), 1)
    assert model.log_prob(torch.tensor([[0.5, 3.0]])).isfinite().all()


def test_ends_keep_their_digits_in_float64() -> None:
    model = randomized(lambda: NITS.independent([Continuous(0.1, 0.7)]), 1).double()
    x = torch.tensor([[0.1], [0.7]], dtype=torch.float64)
    assert model.log_prob(x).isfinite().all()
    assert model.to_uniform(x).flatten().tolist() == pytest.approx([0, 1], abs=1e-15)


def test_zero_and_one_are_the_ends_of_the_support() -> None:
    model = randomized(lambda: mlp([Continuous(0.0, 1.0), Continuous(2.0, math.inf)]), 1)
    u = torch.tensor([[0.0, 0.0], [1.0, 1.0], [torch.nan, 0.5]])
    x = model.from_uniform(u)
    assert x[0].tolist() == [0, 2]
    assert x[1].tolist() == [1, math.inf]
    assert x[2].isnan().all()


def test_dtype_follows_the_model(model: NITS) -> None:
    assert model.sample(2).dtype == torch.float32
    fine = copy.deepcopy(model).double()
    assert fine.sample(2).dtype == torch.float64
    assert fine.sample(2, quasi=True).dtype == torch.float64
    assert fine.log_prob(fine.sample(2)).dtype == torch.float64


def test_order_is_only_a_matter_of_modelling() -> None:
    """A permuted model is the plain one with its columns renamed."""
    order = [2, 0, 1]
    heads: list[Head] = [
        Continuous(-1.0, 1.0, (4,)),
        Continuous(hidden=(4,)),
        Continuous(0.0, math.inf, (4,)),
    ]
    permuted = randomized(lambda: mlp(heads, order=order), 5)
    plain = randomized(lambda: mlp([heads[i] for i in order]), 5)
    x = permuted.sample(9, generator=1)
    torch.testing.assert_close(permuted.log_prob(x), plain.log_prob(x[:, order]))
    torch.testing.assert_close(permuted.to_uniform(x)[:, order], plain.to_uniform(x[:, order]))
    permutation = torch.tensor(order).argsort()
    torch.testing.assert_close(
        permuted.conditionals(x)[0].log_prob(x[:, 0]),
        plain.conditionals(x[:, order])[permutation[0]].log_prob(x[:, 0]),
    )


def test_context_matters_and_one_row_stands_for_all(conditional: NITS) -> None:
    row = torch.tensor([0.5, -1.0])
    x = conditional.sample(6, row, 1)
    assert torch.equal(conditional.sample(6, row.expand(6, 2), 1), x)
    assert not torch.equal(conditional.sample(6, -row, 1), x)
    context = torch.randn(6, 2, generator=seeded(2))
    each = torch.cat([conditional.log_prob(x[[i]], context[[i]]) for i in range(6)])
    torch.testing.assert_close(conditional.log_prob(x, context), each)
    assert not torch.allclose(conditional.log_prob(x, context), conditional.log_prob(x, -context))


def test_rsample_carries_gradients_and_sample_does_not(conditional: NITS) -> None:
    row = torch.tensor([0.5, -1.0], requires_grad=True)
    assert not conditional.sample(3, row).requires_grad
    conditional.rsample(3, row, 1).sum().backward()
    assert row.grad is not None
    assert (row.grad != 0).all()
    torch.testing.assert_close(
        conditional.rsample(3, row, 1).detach(), conditional.sample(3, row, 1)
    )


# Quasi-random sampling.


def test_quasi_random_samples_cover_evenly(model: NITS) -> None:
    """The mean u of random rows is 0.5 ± 0.29/√n; of a Sobol sequence, over ten times closer."""
    n = 1024
    with torch.no_grad():
        u = model.to_uniform(model.sample(n, generator=1, quasi=True))
    assert (u.mean(0) - 0.5).abs().max() < 0.029 / n**0.5
    for column in u.t():
        # Each of 64 equal bins holds 16 of 1024 points; independent ones would give 16 ± 4.
        counts = torch.histc(column, 64, 0, 1)
        assert (counts - n / 64).abs().max() <= 2
    pairs = torch.histogramdd(u[:, :2], [8, 8], range=[0.0, 1.0, 0.0, 1.0]).hist
    assert (pairs - n / 64).abs().max() <= 2


def test_quasi_random_estimates_beat_independent_ones(model: NITS) -> None:
    n = 512
    with torch.no_grad():
        errors = {
            quasi: torch.stack(
                [model.sample(n, generator=s, quasi=quasi).tanh().mean(0) for s in range(6)]
            ).std(0)
            for quasi in (False, True)
        }
    assert (errors[True] < 0.4 * errors[False]).all()


# Memory.


def test_samples_are_drawn_in_chunks(model: NITS) -> None:
    sizes: list[int] = []
    stepper = model.weights.stepper

    def recorded(n: int, context: Tensor | None = None) -> object:
        sizes.append(n)
        return stepper(n, context)

    with (
        mock.patch.object(model.weights, "sampled_at_once", 1500),
        mock.patch.object(model.weights, "stepper", recorded),
    ):
        assert model.sample(3200, generator=1).shape == (3200, 3)
    assert sizes == [1500, 1500, 200]


def test_scores_are_computed_in_chunks_where_no_gradient_is_recorded(model: NITS) -> None:
    sizes: list[int] = []
    x, parts = torch.zeros(150, 3), model.weights.parts

    def recorded(features: Tensor, context: Tensor | None, weights: list[int]) -> Iterable[Tensor]:
        sizes.append(features.shape[1])
        return parts(features, context, weights)

    with (
        mock.patch.object(blocks, "CHUNK_BYTES", 1),
        mock.patch.object(model.weights, "parts", recorded),
    ):
        with torch.no_grad():
            model.log_prob(x)
        model.log_prob(x)
    assert sizes == [64, 64, 22, 150]


def test_chunks_are_whole_blocks_of_the_kernels() -> None:
    assert blocks.rows_at_once(63 * 320 * 4) == 1024
    assert blocks.rows_at_once(4 * 320 * 4) % 1024 == 0
    assert blocks.rows_at_once(2**26) == 64


def test_groups_are_cut_into_pieces_that_stay_in_the_cache() -> None:
    """63 columns of 320 weights, 1,024 rows: two at a time, and the last three; all in order."""
    whole = tuple(blocks.groups([Continuous()] * 63))
    cut = list(blocks.pieces(whole, 1024 * 4))
    assert [piece.columns.stop - piece.columns.start for piece in cut] == [2] * 30 + [3]
    assert [piece.columns.start for piece in cut] == list(range(0, 62, 2))
    assert sum(piece.weights for piece in cut) == whole[0].weights
    assert list(blocks.pieces(whole, 4)) == list(whole)  # a single row
    alone = tuple(blocks.groups([Continuous()]))
    assert list(blocks.pieces(alone, 2**20)) == list(alone)


def test_columns_are_evaluated_a_few_at_a_time() -> None:
    """Whatever PNNS_AT_ONCE, the numbers are the same."""
    model = MODELS["independent"]()
    x = model.sample(50, generator=1)
    whole = model.log_prob_per_column(x), model.to_uniform(x)
    with mock.patch.object(kernels, "PNNS_AT_ONCE", 1):
        single = model.log_prob_per_column(x), model.to_uniform(x)
    torch.testing.assert_close(single, whole)


# As a module among others.


def test_forward_hooks_see_the_rows(model: NITS) -> None:
    seen: list[torch.Size] = []
    model.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    model(torch.zeros(7, 3))
    assert seen == [torch.Size([7])]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
def test_a_compiled_model_gives_the_same_numbers(model: NITS) -> None:
    x = torch.linspace(-2, 2, 15).view(5, 3)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)


def test_data_parallel_training_takes_the_model(model: NITS, tmp_path: Path) -> None:
    x = torch.linspace(-2, 2, 15).view(5, 3)
    (-model(x).mean()).backward()
    expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        (-parallel(x).mean()).backward()
    finally:
        torch.distributed.destroy_process_group()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    torch.testing.assert_close(found, expected)


def test_integers_are_rows_where_all_columns_are_discrete(model: NITS) -> None:
    heads: list[Head] = [Quantized(0.0, 1.0, 4), Quantized(0.0, 1.0, 9)]
    pixels = randomized(lambda: NITS.mlp(heads, hidden=16, blocks=1), 3)
    x = torch.tensor([[0, 8], [3, 2]])
    assert torch.equal(pixels.log_prob(x), pixels.log_prob(x.float()))
    assert torch.equal(pixels.log_prob(x.to(torch.uint8)), pixels.log_prob(x.float()))
    with pytest.raises(TypeError, match="x must be float32 or float64, but is int64"):
        model.log_prob(torch.zeros(2, 3, dtype=torch.int64))
