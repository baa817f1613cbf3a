"""Steps of matrices in which all directions count alike, and AdamW for all other weights.

With gradients g of a matrix W with n rows and m columns, a rate γ and β = 0.95 (Jordan et al.,
2024, "Muon: an optimizer for hidden layers in neural networks"; scale of Liu et al., 2025):

    M ← β M + (1 − β) g
    W ← W − γ (0.2 √max(n, m) O(β M + (1 − β) g) + decay · W)

O(X) = U Vᵀ for the singular value decomposition X = U S Vᵀ, nearly: five steps of an odd
polynomial bring all singular values between 0.7 and 1.2. The scale makes a step as large as one of
AdamW, so that one rate serves for both. Entries whose gradients have all been zero, such as those
that a mask keeps at zero, do not move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

MOMENTUM = 0.95
"""β."""

SCALE = 0.2
"""Root mean square of the entries of a step, by the rate."""

NARROWEST = 64
"""Rows and columns of a matrix that has such steps; narrower ones have AdamW's."""

ODD = (3.4445, -4.7750, 2.0315)
"""a, b and c of the polynomial a x + b x³ + c x⁵."""

POLYNOMIALS = 5

BETAS = 0.9, 0.999
"""AdamW's."""

SMALLEST = 1e-8
"""Added to norms, and to AdamW's roots."""


class MuonAdamW(torch.optim.Optimizer):
    """Steps wide matrices by the above, and all else by AdamW; only matrices decay."""

    def __init__(self, parameters: Sequence[nn.Parameter], lr: float, weight_decay: float) -> None:
        wide = [p for p in parameters if is_wide(p)]
        others = [p for p in parameters if not is_wide(p)]
        groups = [
            {"params": wide, "wide": True},
            {"params": [p for p in others if p.dim() > 1], "wide": False},
            {"params": [p for p in others if p.dim() < 2], "wide": False, "weight_decay": 0.0},
        ]
        usual = {"lr": lr, "weight_decay": weight_decay}
        super().__init__([group for group in groups if group["params"]], usual)
        for p in parameters:
            self.state[p] = _moments(p)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Takes a step with the gradients; a weight without one stands still."""
        for group in self.param_groups:
            moved = [p for p in group["params"] if p.grad is not None]
            take = self._orthogonal if group["wide"] else self._adamw
            take(moved, float(group["lr"]), group["weight_decay"])

    def _orthogonal(self, matrices: list[nn.Parameter], rate: float, decay: float) -> None:
        grads = [p.grad for p in matrices if p.grad is not None]
        for p, grad in zip(matrices, grads, strict=True):
            momentum = self.state[p]["momentum"]
            momentum.lerp_(grad, 1 - MOMENTUM)
            ahead = torch.lerp(grad, momentum, MOMENTUM)
            step = orthogonal(ahead).mul_(momentum != 0)
            p.mul_(1 - rate * decay).add_(step, alpha=-rate * SCALE * max(p.shape) ** 0.5)

    def _adamw(self, others: list[nn.Parameter], rate: float, decay: float) -> None:
        held: dict[str, list[Tensor]] = defaultdict(list)
        for p in others:
            for name, tensor in self.state[p].items():
                held[name].append(tensor)
        if others:
            adamw(
                list(others),
                [p.grad for p in others if p.grad is not None],
                held["exp_avg"],
                held["exp_avg_sq"],
                [],
                held["step"],
                fused=others[0].device.type in ("cpu", "cuda"),
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=rate,
                weight_decay=decay,
                eps=SMALLEST,
                maximize=False,
            )


def is_wide(p: Tensor) -> bool:
    """Returns whether weights are a matrix with enough rows and columns."""
    return p.dim() == 2 and min(p.shape) >= NARROWEST


def orthogonal(x: Tensor) -> Tensor:
    """Returns U Vᵀ, nearly, of a matrix with the singular value decomposition U S Vᵀ.

    It is computed in bfloat16, which moves the singular values by less than the polynomials leave.
    """
    if x.shape[0] > x.shape[1]:
        return orthogonal(x.T).T
    y: Tensor = (x / (x.norm() + SMALLEST)).to(torch.bfloat16)
    a, b, c = ODD
    for _ in range(POLYNOMIALS):
        square = y @ y.mT
        y = torch.addmm(y, torch.addmm(square, square, square, beta=b, alpha=c), y, beta=a)
    return y.to(x.dtype)


def _moments(p: Tensor) -> dict[str, Tensor]:
    """Returns what is remembered of a weight."""
    if is_wide(p):
        return {"momentum": torch.zeros_like(p)}
    step = torch.zeros((), dtype=torch.float32)
    return {"step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
