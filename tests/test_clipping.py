"""Gradients that are shortened: as torch does it, to the last bit."""

import pytest
import torch
from torch.nn.utils import clip_grad_norm_

from nits.training.clipping import clipped


@pytest.mark.parametrize("longest", [0.1, 5.0, 1e6])
def test_a_gradient_is_shortened_as_torch_does(longest: float) -> None:
    ours, theirs = ([torch.zeros(40, 3), torch.zeros(7), torch.zeros(2)] for _ in range(2))
    for one, other in zip(ours[:2], theirs[:2], strict=True):  # the last has none
        one.grad = torch.randn(one.shape, generator=torch.Generator().manual_seed(1))
        other.grad = one.grad.clone()
    assert clipped(ours, longest) == float(clip_grad_norm_(theirs, longest))
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)


def test_a_norm_that_is_not_finite_is_told() -> None:
    weight = torch.zeros(3)
    weight.grad = torch.tensor([1.0, torch.nan, 2.0])
    assert clipped([weight], 5.0) != clipped([weight], 5.0)
