"""A mixture of joint densities: several models of the same columns, each in an order of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nits import checks
from nits.model.joint import NITS
from nits.pnn.random import private_generator


class Mixture(nn.Module):
    """ν(x) = Σ_k w_k ν_k(x), equation (16): an average of exact densities is an exact density.

    models: Densities of the same columns.
    weights: A share for each, positive; equal ones by default. They are made to sum to one.
    """

    log_weights: Tensor

    def __init__(self, models: Sequence[NITS], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        checks.alike([(model.columns, model.weights.context) for model in models])
        shares = torch.tensor(checks.shares(weights, len(models)), dtype=torch.float64)
        self.models = nn.ModuleList(models)
        self.register_buffer("log_weights", shares.log().to(models[0].low))

    @property
    def columns(self) -> int:
        """D, the number of columns."""
        return len(self._parts[0].heads)

    @property
    def _parts(self) -> list[NITS]:
        return [model for model in self.models if isinstance(model, NITS)]

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Returns log ν(x) in nats for rows x, shape (N, D): −inf outside every support, NaN for NaN."""
        parts = [model.log_prob(x, context) for model in self._parts]
        return torch.logsumexp(torch.stack(parts) + self.log_weights.unsqueeze(1), 0)

    def sample(
        self, n: int, context: Tensor | None = None, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """Draws n rows, shape (n, D), each from a model drawn by its weight; see `NITS.sample`."""
        checks.positive("n", n)
        context = checks.one_for_all(context, n)
        generator = private_generator(generator, self.log_weights.device)
        chosen = torch.multinomial(self.log_weights.exp(), n, replacement=True, generator=generator)
        rows = self.log_weights.new_empty(n, self.columns)
        for k, model in enumerate(self._parts):
            here = (chosen == k).nonzero().flatten()
            if len(here):
                given = None if context is None else context[here]
                rows[here] = model.sample(len(here), given, generator)
        return rows
