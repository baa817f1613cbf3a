"""NITS-MLP the plain way: F from its formulas, its slope by autograd, its mass as a difference.

z = W (a − b),    a = σ(z),    F = Σ softmax(A_last) a,    log ν = log F′(x) − log(F(B) − F(A))

The layers of the weight model are whole masked products if the model comes from
`contenders.made_dense`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nits import NITS, heads
from nits.pnn import network

Layers = list[tuple[Tensor, Tensor]]


def log_prob(model: NITS, x: Tensor) -> Tensor:
    """Returns log ν(x) for rows x inside the support, shape (N, D); differentiable in the parameters."""
    hidden = hidden_layers(model)
    values = model.described(x)  # (D, N)
    theta = model._theta(values, None).unflatten(0, (model.columns, -1)).movedim(1, 0)  # (P, D, N)
    layers, last = network.unpack(theta, hidden)
    weights = [(torch.exp(network.log_weights(A)), b) for A, b in layers]
    shares = torch.softmax(last, 0)
    mass = increasing(model.high, weights, shares) - increasing(model.low, weights, shares)
    return (torch.log(slope(values, weights, shares)) - torch.log(mass)).sum(0)


def hidden_layers(model: NITS) -> tuple[int, ...]:
    """Returns the hidden sizes of the PNN, which all columns share."""
    sizes = {head.hidden for head in model.ordered if isinstance(head, heads.Continuous)}
    if len(model.runs) != 1 or len(sizes) != 1:
        raise ValueError(
            "heads must be continuous, with one choice of hidden layers; the others are not plain."
        )
    return sizes.pop()


def increasing(x: Tensor, weights: Layers, shares: Tensor) -> Tensor:
    """Returns F(x) for points x, shape (D, N) or (D, 1); an infinite end is a constant without gradient."""
    (W, b), *deep = weights
    infinite = torch.isinf(x)
    a = torch.sigmoid(W * (x.masked_fill(infinite, 0.0) - b))
    a = torch.where(infinite, (x > 0).to(a.dtype), a)
    for W, b in deep:
        a = torch.sigmoid((W * (a - b.unsqueeze(1))).sum(1))
    return (shares * a).sum(0)


def slope(x: Tensor, weights: Layers, shares: Tensor) -> Tensor:
    """Returns F′(x) by autograd; gradients flow on to the weights if they are recorded."""
    training = torch.is_grad_enabled()
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        (result,) = torch.autograd.grad(
            increasing(point, weights, shares).sum(), point, create_graph=training
        )
    return result
