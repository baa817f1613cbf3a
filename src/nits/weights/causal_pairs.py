"""A block of each stream of NITS-CONV, and how it is computed again in place of being kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from nits.weights.causal_layers import Gated, beside, both_signs


@dataclass
class Pair:
    """One block of each stream.

    dropout, generator: Of both blocks; the generator is set back when they are computed again.
    """

    down: Gated
    across: Gated
    dropout: float
    generator: torch.Generator | None
    state: Tensor | None = field(default=None, init=False)

    def __call__(
        self,
        u: Tensor,
        v: Tensor,
        earlier_u: Tensor | None,
        earlier_v: Tensor | None,
        side: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Returns the streams after the blocks, shape (N, F, H, W) each.

        earlier_u, earlier_v: The streams after an earlier block, if there is a shortcut from it.
        """
        u = self.down(u, beside(_signs(earlier_u), side), self.dropout, self.generator)
        sides = beside(both_signs(u), _signs(earlier_v), side)
        return u, self.across(v, sides, self.dropout, self.generator)

    def replayed(self, *given: Tensor | None) -> tuple[Tensor, Tensor]:
        """Returns the same each time: a generator of its own begins where it began at first."""
        if self.generator is None:
            return self(*given)  # type: ignore[arg-type]  # five of them
        now = self.generator.get_state()
        if self.state is None:
            self.state = now
            return self(*given)  # type: ignore[arg-type]
        self.generator.set_state(self.state)
        try:
            return self(*given)  # type: ignore[arg-type]
        finally:
            self.generator.set_state(now)


def again(pair: Pair, *given: Tensor | None) -> tuple[Tensor, Tensor]:
    """Returns the streams after the blocks, whose features are computed again for the gradient."""
    found: tuple[Tensor, Tensor] = checkpoint(pair.replayed, *given, use_reentrant=False)
    return found


def _signs(x: Tensor | None) -> Tensor | None:
    return None if x is None else both_signs(x)
