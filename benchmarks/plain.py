"""NITS-MLP the plain way: a weight model in front of `nits.pnn.plain`, and no kernel of ours.

The layers of the weight model are whole masked products if the model comes from
`contenders.made_dense`.
"""

from __future__ import annotations

from torch import Tensor

from nits import NITS, heads
from nits.pnn.plain import PlainPNN


def log_prob(model: NITS, x: Tensor) -> Tensor:
    """Returns log ν(x), equation (15), for rows x inside the support, shape (N, D).

    Differentiable in the parameters of the model.
    """
    hidden = hidden_layers(model)
    values = x.t()[model.order]  # (D, N)
    theta = (
        model.weights(model.reading(values)).unflatten(0, (model.columns, -1)).movedim(1, 0)
    )  # (P, D, N)
    return PlainPNN(theta, model.ends.low, model.ends.high, hidden).log_density(values).sum(0)


def hidden_layers(model: NITS) -> tuple[int, ...]:
    """Returns the hidden sizes of the PNN, which all columns share."""
    sizes = {head.hidden for head in model.ordered if isinstance(head, heads.Continuous)}
    if len(model.groups) != 1 or len(sizes) != 1:
        raise ValueError(
            "heads must be continuous, with one choice of hidden layers; the others are not plain."
        )
    return sizes.pop()
