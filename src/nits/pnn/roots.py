"""Quantiles: the inverse of a PNN's distribution function, with implicit gradients.

The equation N(x) = u is solved as logit N(x) = logit u in the coordinate y of a reference
distribution, a logistic truncated to the same support:

    x = Q₀(y),   y = logit N₀(x)                                                              (12)

Near a finite end A both logits grow like log(x − A); towards an infinite end both are linear in x.
So logit N is nearly linear in y at either end of the support, and Newton's method needs few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nits.pnn import network
from nits.pnn.logistic import kappa, log_softplus, logistic_quantile, softplus, softplus_gap
from nits.pnn.network import Normalized

PASSES = ((4, 3), (3, 3), (3, 3), (6, 2), *((8, 1),) * 20)
"""Passes of the search, as (steps, every): that many Newton steps, where a bracket that has not
halved in `every` of them is bisected. Roots that are found leave the search after a pass."""

COMPILED_STEPS = {torch.float32: 16, torch.float64: 20}
"""Steps of every root in a compiled or exported graph, in which none can leave the search."""

CLOSE = {torch.float32: 3e-4, torch.float64: 1e-7}
"""Residual in logit N from which one more Newton step is exact to rounding, as convergence is
quadratic."""


class Reference(NamedTuple):
    """The coordinate y of (12): logit N₀ of a logistic distribution truncated to the support."""

    centre: Tensor
    scale: Tensor
    low: Tensor  # z_A, where z = (x − centre) / scale
    high: Tensor  # z_B

    def x(self, y: Tensor) -> Tensor:
        """Returns Q₀(y)."""
        return self.centre + self.scale * logistic_quantile(y, self.low, self.high)

    def y(self, x: Tensor) -> Tensor:
        """Returns logit N₀(x) = log C + z + log κ(z − z_A) − log κ(z_B − z)."""
        z = (x - self.centre) / self.scale
        log_odds = z + torch.log(kappa(z - self.low)) - torch.log(kappa(self.high - z))
        return softplus(-self.high) - softplus(self.low) + log_odds

    def slope(self, x: Tensor) -> Tensor:
        """Returns dy/dx = κ(z_B − z_A) / (scale κ(z − z_A) κ(z_B − z))."""
        z = (x - self.centre) / self.scale
        return kappa(self.high - self.low) / (
            self.scale * kappa(z - self.low) * kappa(self.high - z)
        )


class Found(NamedTuple):
    """A point x, and the results of one evaluation of F there."""

    x: Tensor
    below: Tensor  # N(x)
    above: Tensor  # 1 − N(x)
    density: Tensor  # ν(x)


class Search(NamedTuple):
    """The state of the search for N(x) = u, in the coordinate y of (12)."""

    y: Tensor  # the next point
    left: Tensor  # ends of the bracket
    right: Tensor
    width: Tensor  # right − left when it was last compared
    residual: Tensor  # the logit N − logit u nearest to zero so far
    best: Found  # the point where it was


def quantile(pnn: Normalized, u: Tensor, u_above: Tensor) -> Tensor:
    """Returns x with N(x) = u, where u_above = 1 − u; differentiable in u, θ and finite ends."""
    inner = (u > 0) & (u_above > 0)
    v, v_above = (torch.where(inner, p, torch.full_like(p, 0.5)) for p in (u, u_above))
    with torch.no_grad():
        fixed = _map(pnn, torch.Tensor.detach)
        known, known_above = v.detach(), v_above.detach()
        x = polish(fixed, solve(fixed, known, known_above), known, known_above)
    if torch.is_grad_enabled():
        x = _with_gradient(pnn, x, v, v_above)
    x = torch.where(u <= 0, pnn.low, torch.where(u_above <= 0, pnn.high, x))
    return torch.where(torch.isnan(u), torch.nan, x)


def polish(pnn: Normalized, found: Found, u: Tensor, u_above: Tensor) -> Tensor:
    """Returns x after one Newton step in x itself, or x as it was where N came no nearer to u."""
    x, below, above, density = found
    error = torch.where(u < 0.5, below - u, u_above - above)
    moved = _inside(x - error / density, pnn.low, pnn.high)
    moved = torch.where(torch.isfinite(moved), moved, x)
    below, above = network.cdf(pnn, moved)
    nearer = torch.where(u < 0.5, below - u, u_above - above).abs() < error.abs()
    return torch.where(nearer, moved, x)


def _with_gradient(pnn: Normalized, x: Tensor, u: Tensor, u_above: Tensor) -> Tensor:
    """Returns x with the implicit gradient: ∂x/∂u = 1 / ν(x), ∂x/∂θ = −(∂N/∂θ) / ν(x)."""
    below, above, density = network.cdf_and_density(pnn, x)
    # In a gap ν is 0 to rounding; bounded below, it keeps the gradient finite in the chain rule.
    density = density.detach().clamp_min(torch.finfo(x.dtype).tiny ** 0.5)
    residual = torch.where(u < 0.5, below - u, u_above - above)
    return x - (residual - residual.detach()) / density


def solve(pnn: Normalized, u: Tensor, u_above: Tensor) -> Found:
    """Finds x with N(x) = u up to one more Newton step."""
    target = torch.log(u) - torch.log(u_above)
    pnn = expanded(pnn, target)
    ref = reference(pnn)
    search = _start(ref, bracket(pnn, target), target)
    if torch.compiler.is_compiling():
        search = advance(pnn, ref, search, target, (COMPILED_STEPS[target.dtype], 3))
        return search.best
    return _solve_open(pnn, ref, search, target)


def expanded(pnn: Normalized, target: Tensor) -> Normalized:
    """Returns the PNN with the batch of every tensor expanded to the shape of the targets."""
    return _map(pnn, lambda t: t.expand(*t.shape[: t.dim() - target.dim()], *target.shape))


def _solve_open(pnn: Normalized, ref: Reference, search: Search, target: Tensor) -> Found:
    """Runs the passes, each on the roots that those before have not found."""
    found = torch.empty(len(Found._fields), *target.shape, dtype=target.dtype, device=target.device)
    where = torch.ones_like(target, dtype=torch.bool)
    for steps in PASSES:
        search = advance(pnn, ref, search, target, steps)
        found[:, where] = torch.stack(search.best).flatten(1)
        open_ = _is_open(search)
        if not open_.any():
            break
        where[where.clone()] = open_.flatten()
        pnn = _map(pnn, _chooser(open_))
        target = target[open_]
        ref = Reference(*(t[open_] for t in ref))
        search = _choose(search, open_)
    return Found(*found)


def _choose(search: Search, keep: Tensor) -> Search:
    y, left, right, width, residual, best = search
    kept = Found(*(t[keep] for t in best))
    return Search(y[keep], left[keep], right[keep], width[keep], residual[keep], kept)


def _is_open(search: Search) -> Tensor:
    """Returns which roots are neither close nor caught between two neighbouring numbers."""
    eps = torch.finfo(search.y.dtype).eps
    room = search.right - search.left > 16 * eps * (search.left.abs() + search.right.abs())
    return room & ~(search.residual.abs() < CLOSE[search.y.dtype])


def _start(ref: Reference, ends: tuple[Tensor, Tensor], target: Tensor) -> Search:
    left, right = (ref.y(end) for end in ends)
    # A finite end of the support lies at y = ±∞, which ±200 equals to rounding in x.
    left = left.masked_fill(torch.isinf(left), -200.0)
    right = right.masked_fill(torch.isinf(right), 200.0)
    y = _inside(target, left, right)
    none = torch.full_like(target, torch.nan)
    return Search(y, left, right, right - left, none, Found(y, y, y, y))


def advance(
    pnn: Normalized, ref: Reference, search: Search, target: Tensor, steps: tuple[int, int]
) -> Search:
    """Takes Newton steps in y, and bisects instead where one would leave the bracket."""
    y, left, right, width, nearest, best = search
    count, every = steps
    for step in range(1, count + 1):
        x = _inside(ref.x(y), pnn.low, pnn.high)
        here = Found(x, *network.cdf_and_density(pnn, x))
        _, below, above, density = here
        residual = torch.log(below) - torch.log(above) - target
        left, right = torch.where(residual < 0, y, left), torch.where(residual < 0, right, y)
        nearer = ~(residual.abs() >= nearest.abs())  # true where `nearest` is still NaN
        nearest = torch.where(nearer, residual, nearest)
        best = Found(*(torch.where(nearer, new, old) for new, old in zip(here, best, strict=True)))
        # d(logit N)/dy = ν / (N (1 − N)) · dx/dy
        newton = y - residual * (below * above / density) * ref.slope(x)
        stuck = ~((newton >= left) & (newton <= right))
        if step % every == 0:
            stuck = stuck | ((right - left > width / 2) & (residual.abs() > 0.1))
            width = right - left
        y = torch.where(stuck, (left + right) / 2, newton)
    return Search(y, left, right, width, nearest, best)


def reference(pnn: Normalized) -> Reference:
    """Returns a logistic about as wide as the first layer's units lie apart."""
    b = _inside(pnn.first.centre, pnn.low, pnn.high)
    variance = 0.3 * b.var(0, correction=0) + torch.exp(-2 * torch.log(pnn.first.weight).mean(0))
    centre, scale = b.mean(0), torch.minimum(variance.sqrt(), (pnn.high - pnn.low) / 4)
    return Reference(centre, scale, (pnn.low - centre) / scale, (pnn.high - centre) / scale)


def bracket(pnn: Normalized, target: Tensor) -> tuple[Tensor, Tensor]:
    """Returns finite points on either side of the root of logit N(x) = target, in closed form.

    N is a mean of the last units' shares, so at the root some share is at most the target and some
    at least. Each unit inverts in closed form to the share g of its input, again a mean of shares
    of the layer below. So the smallest g, layer by layer, is a lower bound, the largest an upper.
    """
    low = high = target
    for layer in reversed(pnn.deep):
        low = _share_quantile(layer.units, low).amin(0)
        high = _share_quantile(layer.units, high).amax(0)
    W, b, units = pnn.first
    x_low = (b + logistic_quantile(low, units.low, units.high) / W).amin(0)
    x_high = (b + logistic_quantile(high, units.low, units.high) / W).amax(0)
    rounding = torch.finfo(target.dtype).eps * 16 * (x_low.abs() + x_high.abs())
    slack = rounding + 1e-3 * (x_high - x_low)
    return _inside(x_low - slack, pnn.low, pnn.high), _inside(x_high + slack, pnn.low, pnn.high)


def _share_quantile(units: network.Units, logit: Tensor) -> Tensor:
    """Returns logit g of the input share at which a unit's own share f has this logit.

    With z from (13), z − z_A and z_B − z are softplus functions in which nothing cancels:

        z − z_A = softplus(logit f + log κ(D) − log(e^−R + e^(logit f − D)))
        z_B − z = softplus(G + log κ(D) − log(e^(logit f) + e^−R))
        G = softplus(z_B) − softplus(z_A),   R = D − G
    """
    D = units.width
    log_shrink = torch.log(units.shrink)
    G = softplus_gap(units.low, units.high, D)
    R = softplus_gap(-units.high, -units.low, D)
    lower = logit + log_shrink - torch.logaddexp(-R, logit - D)
    upper = G + log_shrink - torch.logaddexp(logit, -R)
    return log_softplus(lower) - log_softplus(upper)


def _inside(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, low), high)


def _chooser(keep: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda t: t[..., keep]


def _map(pnn: Normalized, function: Callable[[Tensor], Tensor]) -> Normalized:
    """Returns the PNN with the function applied to each of its tensors."""
    W, b, units = pnn.first
    first = network.First(function(W), function(b), _map_units(units, function))
    deep = tuple(
        network.Deep(
            function(W),
            function(log_rise),
            function(mixed),
            function(scale),
            _map_units(units, function),
        )
        for W, log_rise, mixed, scale, units in pnn.deep
    )
    return Normalized(function(pnn.low), function(pnn.high), first, deep, function(pnn.log_share))


def _map_units(units: network.Units, function: Callable[[Tensor], Tensor]) -> network.Units:
    return network.Units(*(function(t) for t in units))
