"""The distribution of a shifted and scaled variable."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution


class Affine(Distribution):
    """The distribution of loc + scale · X."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, base: Any, loc: Tensor, scale: Tensor) -> None:
        self.base, self.loc, self.scale = base, loc, scale
        super().__init__(base.batch_shape, validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns log ν((x − loc) / scale) − log scale."""
        found: Tensor = self.base.log_prob((value - self.loc) / self.scale) - torch.log(self.scale)
        return found

    def cdf(self, value: Tensor) -> Tensor:
        """Returns P(X ≤ x)."""
        found: Tensor = self.base.cdf((value - self.loc) / self.scale)
        return found

    def icdf(self, value: Tensor) -> Tensor:
        """Returns x with P(X ≤ x) = u."""
        found: Tensor = self.loc + self.scale * self.base.icdf(value)
        return found
