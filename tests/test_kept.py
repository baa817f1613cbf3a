"""A copy of a model's state has all of it, in less memory."""

import torch

from nits import NITS
from nits.training.kept import Kept
from nits.weights.block_linear import BlockLinear


def test_a_state_comes_back_as_it_was() -> None:
    model = NITS.mlp(40, hidden=300, blocks=1)
    kept = Kept(model)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    after = model.state_dict()
    for expected in (before, after):
        found = kept.state()
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], t) for name, t in expected.items())
        kept.take(after)


def test_blocks_of_zeros_are_left_out() -> None:
    ranks = torch.arange(1000)
    layer = BlockLinear(ranks, ranks)
    kept = Kept(layer)
    entries = sum(part.numel() for parts in kept.parts.values() for part in parts)
    assert entries < 0.6 * layer.weight.numel() + layer.bias.numel()
    assert torch.equal(kept.state()["weight"], layer.weight)
