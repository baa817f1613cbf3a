"""What can happen: impossible values have log-probability −∞, and NaN stays NaN."""

from __future__ import annotations

import torch
from torch import Tensor


def restricted(log_prob: Tensor, x: Tensor, possible: Tensor) -> Tensor:
    """Returns log_prob where x is possible, −∞ where it is not, and NaN where x is NaN.

    Where x is not possible log_prob may be any number, and gets no gradient.
    """
    impossible = torch.where(torch.isnan(x), torch.nan, -torch.inf)
    return torch.where(possible, log_prob, impossible.to(log_prob.dtype))
