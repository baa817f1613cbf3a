"""The masked MLP: block products against masked dense ones, stepper against forward pass, masks."""

import copy
import pickle
from collections.abc import Callable
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from nits.weights import Independent, MaskedMLP, masks
from nits.weights.activations import NAMES, Activation, name_of, named
from nits.weights.block_linear import BlockLinear
from registry import seeded

SHAPES = {
    "plain": ((1,) * 5, (7,) * 5, 0),
    "wide-inputs": ((1, 3, 2, 1), (4, 9, 2, 5), 0),
    "context": ((1,) * 4, (6,) * 4, 3),
    "one-column": ((1,), (6,), 0),
    "one-column-context": ((2,), (6,), 2),
    "two-columns": ((1, 1), (6, 3), 0),
    "codes": ((1, 3, 2, 1, 1), (4, 9, 9, 2, 5), 0),
    "codes-context": ((1,) * 4, (6,) * 4, 3),
    "codes-one-column": ((1,), (6,), 0),
}
CODES = {"codes": 2, "codes-context": 3, "codes-one-column": 1}
each_shape = pytest.mark.parametrize("shape", SHAPES)


def network(
    shape: str, dropout: float = 0.0, activation: Activation = functional.relu
) -> MaskedMLP:
    inputs, outputs, context = SHAPES[shape]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MaskedMLP(
            inputs,
            outputs,
            context,
            hidden=22,
            blocks=2,
            dropout=dropout,
            activation=activation,
            codes=CODES.get(shape),
        ).double()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(std=0.5)
    return model


def some_input(model: MaskedMLP, n: int, seed: int = 0) -> tuple[Tensor, Tensor | None]:
    like = model.last.bias
    features = torch.randn(sum(model.inputs), n, generator=seeded(seed), dtype=like.dtype)
    context = torch.randn(model.context, n, generator=seeded(seed + 1), dtype=like.dtype)
    return features, context if model.context else None


def layers(model: MaskedMLP) -> dict[str, BlockLinear]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, BlockLinear)}


def gradients(value: Tensor, *leaves: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(
        (value * torch.linspace(-1, 2, value.numel()).view_as(value)).sum(), leaves
    )


@pytest.mark.parametrize("count", [1, 3, 4, 50])
@pytest.mark.parametrize("kind", ["first", "inner", "last", "nothing-seen"])
def test_block_product_is_the_masked_dense_product(kind: str, count: int) -> None:
    hidden = masks.hidden_ranks(23, 6, context=False)
    rows, columns = {
        "first": (hidden, masks.input_ranks((1, 2, 1, 1, 3, 1))),
        "inner": (hidden, hidden),
        "last": (masks.output_ranks((5, 4, 3, 2, 6, 5)), hidden),
        "nothing-seen": (torch.zeros(4, dtype=torch.long), torch.ones(3, dtype=torch.long)),
    }[kind]
    layer = BlockLinear(rows, columns, count).double()
    with torch.no_grad():
        layer.bias.normal_(generator=seeded(1))
    x = torch.randn(len(columns), 9, generator=seeded(2), dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(layer(x), layer.dense(x), rtol=1e-13, atol=1e-13)
    leaves = (x, layer.weight, layer.bias)
    for got, expected in zip(
        gradients(layer(x), *leaves), gradients(layer.dense(x), *leaves), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-13)
    assert (gradients(layer(x), layer.weight)[0][~layer.mask] == 0).all()
    assert layer.mask.sum() <= layer.multiplied <= layer.weight.numel()


def test_block_product_leaves_out_gradients_that_nobody_wants() -> None:
    ranks = masks.hidden_ranks(8, 3, context=False)
    layer = BlockLinear(ranks, ranks, 2).requires_grad_(False)
    assert not layer(torch.ones(8, 2)).requires_grad
    x = torch.ones(8, 2, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None


@each_shape
def test_network_is_the_masked_dense_network(shape: str) -> None:
    model = network(shape)
    features, context = some_input(model, 9)
    features.requires_grad_()
    leaves = (features, *(p for p in model.parameters() if p.numel()))
    blocks = model(features, context)
    with mock.patch.object(BlockLinear, "forward", BlockLinear.dense):
        dense = model(features, context)
    torch.testing.assert_close(blocks, dense, rtol=1e-12, atol=1e-12)
    for got, expected in zip(gradients(blocks, *leaves), gradients(dense, *leaves), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


@each_shape
@pytest.mark.parametrize("activation", [*NAMES.values(), torch.tanh])
def test_stepper_is_the_forward_pass(shape: str, activation: Activation) -> None:
    model = network(shape, activation=activation)
    features, context = some_input(model, 9)
    with torch.no_grad():
        expected = model(features, context)
        stepper, found = model.stepper(9, context), []
        for column in features.split(model.inputs):
            found.append(stepper.theta())
            stepper.feed(column)
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-12, atol=1e-12)


def test_stepper_computes_each_unit_once() -> None:
    """Rows of a step add up to the rows of one forward pass."""
    model = network("plain")
    features, _ = some_input(model, 2)
    rows: list[int] = []
    plain: Callable[..., Tensor] = torch.addmm

    def counted(bias: Tensor, weight: Tensor, x: Tensor) -> Tensor:
        rows.append(len(weight))
        return plain(bias, weight, x)

    with torch.no_grad(), mock.patch("torch.addmm", counted):
        stepper = model.stepper(2)
        for column in features.split(model.inputs):
            stepper.theta()
            stepper.feed(column)
    assert sum(rows) == sum(len(layer.bias) for layer in layers(model).values())


@each_shape
def test_parts_are_the_forward_pass(shape: str) -> None:
    model = network(shape)
    features, context = some_input(model, 9)
    expected = model(features, context)
    sizes = [sum(model.outputs)] if len({*model.outputs}) == 1 else model.outputs
    recorded = torch.cat(list(model.parts(features, context, sizes)))
    torch.testing.assert_close(recorded, expected, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        found = torch.cat(list(model.parts(features, context, sizes)))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@each_shape
def test_a_column_depends_on_all_columns_before_it_and_on_no_other(shape: str) -> None:
    model = network(shape)
    features, context = some_input(model, 9)
    features.requires_grad_()
    for i, theta in enumerate(model(features, context).split(model.outputs)):
        (slope,) = torch.autograd.grad(theta.sum(), features, retain_graph=True)
        read = [bool((part != 0).any()) for part in slope.split(model.inputs)]
        assert read == [j < i for j in range(len(model.inputs))]


@each_shape
def test_a_start_is_whatever_the_input_and_no_dead_end(shape: str) -> None:
    model = network(shape)
    features, context = some_input(model, 9)
    theta = torch.linspace(-1, 1, sum(model.outputs), dtype=torch.float64)
    model.start_at(theta)
    torch.testing.assert_close(model(features, context), theta.unsqueeze(1).expand(-1, 9))
    model(features, context).square().sum().backward()
    if len(model.inputs) > 1 or model.context:
        assert model.last.weight.grad is not None
        assert (model.last.weight.grad != 0).any()


def test_codes_make_the_last_layer_small() -> None:
    shape = (1,) * 20, (50,) * 20
    full, coded = MaskedMLP(*shape, hidden=40), MaskedMLP(*shape, hidden=40, codes=3)
    assert sum(p.numel() for p in full.last.parameters()) == 20 * 50 * 41
    assert sum(p.numel() for p in coded.last.parameters()) == 20 * 3 * 41 + 20 * 50 * 4


def test_codes_are_a_positive_number() -> None:
    with pytest.raises(ValueError, match="codes must be"):
        MaskedMLP((1, 1), (3, 3), hidden=4, codes=0)


def test_stepper_of_independent_columns_hands_out_theta() -> None:
    model = Independent((1, 1), (3, 2))
    stepper = model.stepper(4)
    assert torch.equal(stepper.theta(), model.theta[:3].unsqueeze(1))
    stepper.feed(torch.zeros(1, 4))
    assert torch.equal(stepper.theta(), model.theta[3:].unsqueeze(1))


@each_shape
def test_masked_weights_stay_zero_in_training(shape: str) -> None:
    model = network(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    before = {name: layer.weight.detach().clone() for name, layer in layers(model).items()}
    for step in range(3):
        optimizer.zero_grad()
        model(*some_input(model, 16, step)).square().mean().backward()
        optimizer.step()
    for name, layer in layers(model).items():
        assert (layer.weight[~layer.mask] == 0).all()
        if layer.mask.any():
            assert not torch.equal(layer.weight, before[name])


@each_shape
def test_masked_weights_are_zeroed_on_loading(shape: str) -> None:
    model, other = network(shape), network(shape)
    dirty = {name: value + 1 for name, value in model.state_dict().items()}
    other.load_state_dict(dirty)
    for name, layer in layers(other).items():
        assert (layer.weight[~layer.mask] == 0).all()
        assert torch.equal(layer.weight[layer.mask], dirty[f"{name}.weight"][layer.mask])
    assert all((value == model.state_dict()[name] + 1).all() for name, value in dirty.items())


def test_weights_start_masked_with_the_variance_asked_for() -> None:
    ranks = masks.hidden_ranks(400, 5, context=False)
    layer = BlockLinear(ranks, ranks, 4)
    layer.reset(0.7)
    assert (layer.weight[~layer.mask] == 0).all()
    assert layer.weight.square().sum(1).mean().sqrt().item() == pytest.approx(0.7, rel=0.05)


@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_residual_blocks_add_a_quarter_of_the_variance_however_many(blocks: int) -> None:
    """Each adds 1 / (4 blocks) of what comes in: together (1 + 1 / (4 blocks))^blocks − 1."""
    ratios = []
    for seed in range(6):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = MaskedMLP((1,) * 8, (2,) * 8, hidden=256, blocks=blocks)
        seen: dict[str, Tensor] = {}
        model.first.register_forward_hook(lambda _, x, h, seen=seen: seen.update(before=h))
        model.last.register_forward_pre_hook(lambda _, x, seen=seen: seen.update(after=x[0]))
        with torch.no_grad():
            model(torch.randn(8, 300, generator=seeded(seed)))
        ratios.append(seen["after"].square().mean() / seen["before"].relu().square().mean())
    found = float(torch.stack(ratios).mean())
    assert found == pytest.approx((1 + 0.25 / blocks) ** blocks, rel=0.1)


def test_activations_differ() -> None:
    x, _ = some_input(network("plain"), 9)
    found = [network("plain", activation=function)(x) for function in NAMES.values()]
    assert not any(torch.allclose(found[i], found[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_the_activation_is_a_relu_by_default() -> None:
    x, _ = some_input(network("plain"), 9)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MaskedMLP(*SHAPES["plain"], hidden=22, blocks=2).double()
    expected = copy.deepcopy(model)
    expected.activation = torch.relu
    assert torch.equal(model(x), expected(x))


def test_the_name_of_an_activation_is_refused() -> None:
    message = "activation must be a function, but is 'relu'; pass one such as torch.nn.functional"
    with pytest.raises(TypeError, match=message):
        network("plain", activation="relu")  # type: ignore[arg-type]


def test_activations_have_names() -> None:
    assert [name_of(functional.relu), name_of(functional.silu), name_of(functional.gelu)] == [
        "relu",
        "silu",
        "gelu",
    ]
    assert all(named(name_of(function)) is function for function in NAMES.values())


def test_an_activation_without_a_name_cannot_be_saved() -> None:
    message = "can be saved with the activation relu, silu, gelu of torch.nn.functional, but has"
    with pytest.raises(ValueError, match=message):
        name_of(torch.tanh)
    with pytest.raises(ValueError, match="one of the names relu, silu, gelu, but has 'tanh'"):
        named("tanh")


@pytest.mark.parametrize("function", [*NAMES.values(), torch.tanh])
def test_a_network_with_any_activation_can_be_copied(function: Activation) -> None:
    x, _ = some_input(network("plain"), 9)
    model = network("plain", activation=function)
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(same(x), model(x))


def test_dropout_acts_in_training_only() -> None:
    model, plain = network("plain", dropout=0.5), network("plain")
    x, _ = some_input(model, 9)
    with torch.random.fork_rng(devices=[]):
        assert not torch.equal(model(x), model(x))
        model.eval()
        assert torch.equal(model(x), model(x))
        assert torch.equal(model(x), plain(x))


def test_dropout_keeps_the_mask() -> None:
    model = network("plain", dropout=0.5)
    x, _ = some_input(model, 9)
    x.requires_grad_()
    with torch.random.fork_rng(devices=[]):
        parts = model(x).split(model.outputs)
    for i, part in enumerate(parts):
        (jacobian,) = torch.autograd.grad(part.sum() + 0 * x.sum(), x, retain_graph=True)
        assert (jacobian[i:] == 0).all()


@each_shape
@pytest.mark.parametrize("kind", [MaskedMLP, Independent])
def test_start_at_makes_the_output_constant(shape: str, kind: type) -> None:
    inputs, outputs, context = SHAPES[shape]
    model = network(shape) if kind is MaskedMLP else Independent(inputs, outputs).double()
    theta = torch.randn(sum(outputs), generator=seeded(8), dtype=torch.float64)
    model.start_at(theta)
    features = torch.randn(sum(inputs), 5, generator=seeded(9), dtype=torch.float64)
    given = torch.ones(context, 5, dtype=torch.float64) if context and kind is MaskedMLP else None
    assert torch.equal(model(features, given).expand(-1, 5), theta.unsqueeze(1).expand(-1, 5))


def test_no_residual_blocks_is_a_network_too() -> None:
    model = MaskedMLP((1, 1), (3, 3), hidden=4, blocks=0)
    assert model(torch.ones(2, 6)).shape == (6, 6)


def test_dtype_and_device_move_the_whole_network() -> None:
    model = network("context").float()
    features, context = some_input(model, 4)
    assert context is not None
    assert model(features, context).dtype == torch.float32
    stepper = model.stepper(4, context)
    assert stepper.theta().dtype == torch.float32
    ghost = copy.deepcopy(model).to("meta")
    theta = ghost(features.to("meta"), context.to("meta"))
    assert theta.device.type == "meta"
    assert theta.shape == (24, 4)


def test_independent_columns_read_no_context() -> None:
    model = Independent((1,), (3,), 2)
    context = torch.randn(2, 5)
    assert torch.equal(model(torch.randn(1, 5), context), model(torch.randn(1, 5), -context))
