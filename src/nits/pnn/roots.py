"""Quantiles: the inverse of a PNN's distribution function, with implicit gradients.

The equation N(x) = u is solved as logit N(x) = logit u in the coordinate y of a reference
distribution, a logistic truncated to the same support:

    x = Q₀(y),   y = logit N₀(x)                                                              (12)

Near a finite end both logits go like log(x − A), towards an infinite end both are straight lines,
so logit N is nearly linear in y wherever the support ends, and Newton's method needs few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from nits.pnn import network
from nits.pnn.logistic import kappa, log_softplus, logistic_quantile, softplus, softplus_gap
from nits.pnn.network import Frame

PASSES = ((4, 3), (3, 3), (3, 3), (6, 2), *((8, 1),) * 20)
"""Newton steps before the roots found are taken out, and after how many of them a bracket that has not
halved is halved by force: at first hardly ever, at last always."""

COMPILED_STEPS = {torch.float32: 16, torch.float64: 20}
"""In a compiled or exported graph every root gets this many steps, since none can be left out."""

CLOSE = {torch.float32: 3e-4, torch.float64: 1e-7}
"""Distance in logit N from which one more Newton step is exact to rounding: convergence is quadratic."""


class Reference(NamedTuple):
    """A logistic distribution truncated to the support, as the coordinate y."""

    centre: Tensor
    scale: Tensor
    low: Tensor  # z at the lower end of the support
    high: Tensor

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
    """A point x, and what one evaluation of F says there."""

    x: Tensor
    below: Tensor  # N(x)
    above: Tensor  # 1 − N(x)
    density: Tensor  # ν(x)


class Search(NamedTuple):
    """How far the search for N(x) = u has come: the point y and its bracket, in the coordinate of (12)."""

    y: Tensor
    left: Tensor
    right: Tensor
    width: Tensor  # of the bracket when last checked
    residual: Tensor  # logit N − logit u where it came nearest to zero
    best: Found  # and what was found there


def quantile(at: Frame, u: Tensor, u_above: Tensor) -> Tensor:
    """Returns x with N(x) = u, where u_above = 1 − u; differentiable in u, θ and finite ends."""
    inner = (u > 0) & (u_above > 0)
    v, v_above = (torch.where(inner, p, torch.full_like(p, 0.5)) for p in (u, u_above))
    with torch.no_grad():
        fixed = _map(at, torch.Tensor.detach)
        known, known_above = v.detach(), v_above.detach()
        x = polish(fixed, solve(fixed, known, known_above), known, known_above)
    if torch.is_grad_enabled():
        x = _with_gradient(at, x, v, v_above)
    x = torch.where(u <= 0, at.low, torch.where(u_above <= 0, at.high, x))
    return torch.where(torch.isnan(u), torch.nan, x)


def polish(at: Frame, found: Found, u: Tensor, u_above: Tensor) -> Tensor:
    """Takes one plain Newton step, and keeps it where it brings N nearer to u."""
    x, below, above, density = found
    error = torch.where(u < 0.5, below - u, u_above - above)
    moved = _inside(x - error / density, at.low, at.high)
    moved = torch.where(torch.isfinite(moved), moved, x)
    below, above = network.cdf(at, moved)
    nearer = torch.where(u < 0.5, below - u, u_above - above).abs() < error.abs()
    return torch.where(nearer, moved, x)


def _with_gradient(at: Frame, x: Tensor, u: Tensor, u_above: Tensor) -> Tensor:
    """Returns x with the implicit gradient: ∂x/∂u = 1 / ν(x), ∂x/∂θ = −(∂N/∂θ) / ν(x)."""
    below, above, density = network.cdf_and_density(at, x)
    # In a gap the gradient is infinite; cut off here it stays a number through the chain rule.
    density = density.detach().clamp_min(torch.finfo(x.dtype).tiny ** 0.5)
    residual = torch.where(u < 0.5, below - u, u_above - above)
    return x - (residual - residual.detach()) / density


def solve(at: Frame, u: Tensor, u_above: Tensor) -> Found:
    """Finds x with N(x) = u up to one Newton step; the roots still open after a pass go on alone."""
    target = torch.log(u) - torch.log(u_above)
    at = spread(at, target)
    ref, ends = reference(at), bracket(at, target)
    search = _start(ref, ends, target)
    if torch.compiler.is_compiling():
        search = advance(at, ref, search, target, (COMPILED_STEPS[target.dtype], 3))
        return search.best
    return _solve_open(at, ref, search, target)


def spread(at: Frame, target: Tensor) -> Frame:
    """Returns the frame with every tensor expanded to the shape of the targets."""
    return _map(at, lambda t: t.expand(*t.shape[: t.dim() - target.dim()], *target.shape))


def _solve_open(at: Frame, ref: Reference, search: Search, target: Tensor) -> Found:
    """Runs the passes, each on the roots that the ones before left open."""
    found = torch.empty(len(Found._fields), *target.shape, dtype=target.dtype, device=target.device)
    where = torch.ones_like(target, dtype=torch.bool)
    for steps in PASSES:
        search = advance(at, ref, search, target, steps)
        found[:, where] = torch.stack(search.best).flatten(1)
        open_ = _is_open(search)
        if not open_.any():
            break
        where[where.clone()] = open_.flatten()
        at, target = _map(at, _chooser(open_)), target[open_]
        ref, search = Reference(*(t[open_] for t in ref)), _choose(search, open_)
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
    # A finite end of the support lies at y = ±∞; at ±200 the point is that end to rounding.
    left, right = (ref.y(end) for end in ends)
    left, right = (
        left.masked_fill(torch.isinf(left), -200.0),
        right.masked_fill(torch.isinf(right), 200.0),
    )
    y = _inside(target, left, right)
    return Search(
        y, left, right, right - left, torch.full_like(target, torch.nan), Found(y, y, y, y)
    )


def advance(
    at: Frame, ref: Reference, search: Search, target: Tensor, steps: tuple[int, int]
) -> Search:
    """Takes Newton steps in y; one that leaves the bracket bisects it."""
    y, left, right, width, nearest, best = search
    count, check_every = steps
    for step in range(1, count + 1):
        x = _inside(ref.x(y), at.low, at.high)
        here = Found(x, *network.cdf_and_density(at, x))
        _, below, above, density = here
        residual = torch.log(below) - torch.log(above) - target
        left, right = torch.where(residual < 0, y, left), torch.where(residual < 0, right, y)
        nearer = ~(residual.abs() >= nearest.abs())  # the first point is nearer than none, NaN
        nearest = torch.where(nearer, residual, nearest)
        best = Found(*(torch.where(nearer, new, old) for new, old in zip(here, best, strict=True)))
        # d(logit N)/dy = ν / (N (1 − N)) · dx/dy
        newton = y - residual * (below * above / density) * ref.slope(x)
        stuck = ~((newton >= left) & (newton <= right))
        if step % check_every == 0:
            stuck = stuck | ((right - left > width / 2) & (residual.abs() > 0.1))
            width = right - left
        y = torch.where(stuck, (left + right) / 2, newton)
    return Search(y, left, right, width, nearest, best)


def reference(at: Frame) -> Reference:
    """Returns a logistic about as wide as the first layer's units lie apart."""
    b = _inside(at.first.centre, at.low, at.high)
    variance = 0.3 * b.var(0, correction=0) + torch.exp(-2 * torch.log(at.first.weight).mean(0))
    centre, scale = b.mean(0), torch.minimum(variance.sqrt(), (at.high - at.low) / 4)
    return Reference(centre, scale, (at.low - centre) / scale, (at.high - centre) / scale)


def bracket(at: Frame, target: Tensor) -> tuple[Tensor, Tensor]:
    """Returns finite points on either side of the root, in closed form: logit N(x) = target between them.

    N is a mean of its last units, so some unit lies at or below the target and some at or above it;
    each unit inverts in closed form to a share g of its input, which is again a mean of units. So
    the least share that any unit asks for, taken down layer by layer, is a lower bound, and the
    greatest an upper.
    """
    low = high = target
    for layer in reversed(at.deep):
        low = _share_quantile(layer.units, low).amin(0)
        high = _share_quantile(layer.units, high).amax(0)
    W, b, units = at.first
    x_low = (b + logistic_quantile(low, units.low, units.high) / W).amin(0)
    x_high = (b + logistic_quantile(high, units.low, units.high) / W).amax(0)
    slack = torch.finfo(target.dtype).eps * 16 * (x_low.abs() + x_high.abs()) + 1e-3 * (
        x_high - x_low
    )
    return _inside(x_low - slack, at.low, at.high), _inside(x_high + slack, at.low, at.high)


def _share_quantile(units: network.Units, logit: Tensor) -> Tensor:
    """Returns the logit of the share of its input at which a unit's own share has this logit.

    With z from (13), z − z_A and z_B − z are softplus functions in which nothing cancels:

        z − z_A = softplus(logit + log κ(D) − log(e^(G − D) + e^(logit − D))),   G = log(σ(−z_A) / σ(−z_B))
    """
    low, high, width = units.low, units.high, units.width
    log_shrink = torch.log(units.shrink)
    rise, rest = softplus_gap(low, high, width), softplus_gap(-high, -low, width)
    lower = logit + log_shrink - torch.logaddexp(-rest, logit - width)
    upper = rise + log_shrink - torch.logaddexp(logit, -rest)
    return log_softplus(lower) - log_softplus(upper)


def _inside(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, low), high)


def _chooser(keep: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda t: t[..., keep]


def _map(at: Frame, function: Callable[[Tensor], Tensor]) -> Frame:
    """Returns the frame with the function applied to each of its tensors."""
    W, b, units = at.first
    first = network.First(function(W), function(b), _map_units(units, function))
    deep = tuple(
        network.Deep(
            function(W),
            function(log_rise),
            function(mixed),
            function(scale),
            _map_units(units, function),
        )
        for W, log_rise, mixed, scale, units in at.deep
    )
    return Frame(function(at.low), function(at.high), first, deep, function(at.log_share))


def _map_units(units: network.Units, function: Callable[[Tensor], Tensor]) -> network.Units:
    return network.Units(*(function(t) for t in units))
