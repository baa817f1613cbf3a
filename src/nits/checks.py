"""What a user may pass in: a check returns the value, or raises a sentence that says what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
INFINITE = (
    "low and high must be finite, so that equal bins can tile the support, but one is infinite; "
    "pass two finite numbers."
)


def hidden(widths: Sequence[int]) -> tuple[int, ...]:
    """Checks the widths of a PNN's hidden layers."""
    if not widths or any(not isinstance(h, int) or h < 1 for h in widths):
        raise ValueError(
            f"hidden must be one or more positive integers, but is {tuple(widths)}; try (16, 16)."
        )
    return tuple(widths)


def theta(value: Tensor, width: int, widths: tuple[int, ...]) -> Tensor:
    """Checks the weights of a batch of PNNs."""
    value = real("theta", value)
    if value.dim() < 1 or value.shape[-1] != width:
        raise ValueError(
            f"theta must have shape (…, {width}) for hidden={widths}, but has "
            f"{tuple(value.shape)}; nits.pnn_parameters(hidden) gives the number of weights."
        )
    return value


def support(low: Tensor | float, high: Tensor | float, like: Tensor) -> tuple[Tensor, Tensor]:
    """Checks the ends of a support and expands them to the batch shape of the weights."""
    ends = [torch.as_tensor(end, dtype=like.dtype, device=like.device) for end in (low, high)]
    shape = like.shape[:-1]
    try:
        low_end, high_end = (end.expand(shape) for end in ends)
    except RuntimeError:
        shapes = " and ".join(str(tuple(end.shape)) for end in ends)
        raise ValueError(
            f"low and high must broadcast to theta's batch shape {tuple(shape)}, but have shapes "
            f"{shapes}; pass numbers, or one end per PNN."
        ) from None
    if not torch.compiler.is_compiling() and not bool((low_end < high_end).all()):
        pair = _first_failure(low_end, high_end)
        raise ValueError(f"low must be below high, but got {pair}; swap them or widen the support.")
    return low_end, high_end


def _first_failure(low: Tensor, high: Tensor) -> str:
    index = (~(low < high)).flatten().nonzero()[0]
    return f"low={low.flatten()[index].item():g} and high={high.flatten()[index].item():g}"


def finite_support(low: Tensor, high: Tensor) -> None:
    """Checks that equal bins can tile a support."""
    if not torch.compiler.is_compiling() and not bool(
        (torch.isfinite(low) & torch.isfinite(high)).all()
    ):
        raise ValueError(INFINITE)


def knots(count: int) -> int:
    """Checks a number of knots."""
    if not isinstance(count, int) or count < 0 or count == 1:
        raise ValueError(
            f"knots must be 0, or an integer of at least 2, but is {count!r}; try knots=32."
        )
    return count


def bins(count: int) -> int:
    """Checks a number of bins."""
    if not isinstance(count, int) or count < 2:
        raise ValueError(
            f"bins must be an integer of at least 2, but is {count!r}; 8-bit pixels need 256."
        )
    return count


def real(name: str, value: Tensor, like: Tensor | None = None) -> Tensor:
    """Checks that a tensor is float32 or float64, and has the dtype of the weights if given."""
    value = number(name, value)
    if value.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{name} must be float32 or float64, but is {_dtype(value)}; "
            f"convert it with {name}.float()."
        )
    if like is not None and value.dtype != like.dtype:
        raise TypeError(
            f"{name} must have the dtype of theta, {_dtype(like)}, but is {_dtype(value)}; "
            f"convert it with {name}.to(theta.dtype)."
        )
    return value


def number(name: str, value: Tensor) -> Tensor:
    """Checks that something is a tensor of real numbers, integers included."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a tensor, but is a {type(value).__name__}; use torch.as_tensor."
        )
    if value.is_complex() or value.dtype == torch.bool:
        raise TypeError(
            f"{name} must be a tensor of real numbers, but is {_dtype(value)}; make it float32."
        )
    return value


def probability(u: Tensor) -> Tensor:
    """Checks that numbers lie in [0, 1]. NaN passes, and its quantile is NaN."""
    if not torch.compiler.is_compiling() and bool(((u < 0) | (u > 1)).any()):
        worst = u[(u < 0) | (u > 1)][0].item()
        raise ValueError(
            f"u must lie in [0, 1], but holds {worst:g}; quantiles are taken at probabilities."
        )
    return u


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def ends(low: float, high: float, *, finite: bool = False) -> None:
    """Checks the ends of one column's support."""
    if not low < high:
        raise ValueError(
            f"low must be below high, but got low={low:g} and high={high:g}; "
            "swap them or widen the support."
        )
    if finite and not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise ValueError(INFINITE)


def integers(least: float, greatest: float) -> None:
    """Checks the ends of a range of integers."""
    whole = all(math.isinf(end) or end == round(end) for end in (least, greatest))
    if not (whole and least < greatest):
        raise ValueError(
            "least and greatest must be integers or infinite, and least below greatest, but are "
            f"{least:g} and {greatest:g}; leave out a column that has only one value."
        )


def scale(value: float) -> None:
    """Checks a scale."""
    if not 0 < value < math.inf:
        raise ValueError(
            f"scale must be a positive number, but is {value!r}; scale=1.0 changes nothing."
        )


def levels(count: int) -> int:
    """Checks a number of categories."""
    if not isinstance(count, int) or count < 2:
        raise ValueError(
            f"levels must be an integer of at least 2, but is {count!r}; leave out such a column."
        )
    return count


def atoms(values: Sequence[float], *, whole: bool = False) -> tuple[float, ...]:
    """Checks the values that a column takes with a probability of their own."""
    found = tuple(sorted(float(value) for value in values))
    fit = all(math.isfinite(value) and (value == round(value) or not whole) for value in found)
    if not (found and fit) or len(set(found)) < len(found):
        kind = "integers" if whole else "finite numbers"
        raise ValueError(
            f"atoms must be one or more different {kind}, but are {list(values)}; "
            "leave out repeated values, or take a head without atoms."
        )
    return found


def order(columns: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """Checks a modelling order: every column once."""
    positions = tuple(range(count)) if columns is None else tuple(int(i) for i in columns)
    if sorted(positions) != list(range(count)):
        raise ValueError(
            f"order must name each of {count} columns once, but is {positions}; "
            "leave it out to model the columns in their own order."
        )
    return positions


def widths(got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Checks that a weight model hands out as many weights as the heads need."""
    if got != expected:
        raise ValueError(
            f"the weight model hands out {got} weights per column, but the heads need {expected}; "
            "make it with outputs=[head.weights for head in heads]."
        )


def positive(name: str, n: int) -> None:
    """Checks a count."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"{name} must be a positive integer, but is {n!r}.")


def rows(name: str, value: Tensor, columns: int, like: Tensor, *, whole: bool = False) -> Tensor:
    """Checks rows for a model: shape (N, D) and the dtype of its weights.

    whole: Whether integer tensors are accepted too, because every column is discrete.
    """
    if whole and isinstance(value, Tensor) and value.dtype in INTEGERS:
        value = value.to(like.dtype)
    value = real(name, value)
    if value.dim() != 2 or value.shape[1] != columns:
        got = f"{value.shape[1]} columns" if value.dim() == 2 else f"shape {tuple(value.shape)}"
        raise ValueError(
            f"{name} must have shape (N, {columns}), but has {got}; "
            "reshape it, or pass the columns of the model."
        )
    if value.dtype != like.dtype:
        raise TypeError(
            f"{name} must have the dtype of the model, {_dtype(like)}, but is {_dtype(value)}; "
            f"convert it with {name}.to(torch.{_dtype(like)}), "
            f"or the model with model.to({name}.dtype)."
        )
    return value


def context(value: Tensor | None, count: int, width: int, like: Tensor) -> Tensor | None:
    """Checks the context of rows."""
    if value is None:
        if width:
            raise ValueError(
                f"this model needs a context of {width} features per row, but got none; "
                "pass context=."
            )
        return None
    if not width:
        raise ValueError(
            "this model takes no context, but got one; make it with context=<number of features>."
        )
    value = rows("context", value, width, like)
    if len(value) != count:
        raise ValueError(
            f"context must have {count} rows, one per row scored or drawn, but has {len(value)}; "
            "repeat or cut it."
        )
    return value


def one_for_all(value: Tensor | None, n: int) -> Tensor | None:
    """Returns a context of shape (C,) repeated for n rows; any other unchanged."""
    return value.expand(n, -1) if isinstance(value, Tensor) and value.dim() == 1 else value


def alike(shapes: Sequence[tuple[int, int]]) -> None:
    """Checks that there are models, all with the same numbers of columns and context features."""
    if not shapes or len(set(shapes)) > 1:
        got = ", ".join(f"{columns} columns and context {width}" for columns, width in shapes)
        raise ValueError(
            f"a mixture needs models with the same columns and context, but got "
            f"{got or 'no model'}; pass one or more models of the same table."
        )


def shares(weights: Sequence[float] | None, count: int) -> list[float]:
    """Checks the weights of a mixture, equal by default; returns them with sum one."""
    weights = [1.0] * count if weights is None else list(weights)
    if len(weights) != count or not all(0 < w < float("inf") for w in weights):
        raise ValueError(
            f"weights must be one positive number per model, {count}, but are {weights}; "
            "leave them out for equal weights."
        )
    return [w / sum(weights) for w in weights]


def given(value: Tensor | None, u: Tensor, order: Tensor, like: Tensor) -> Tensor:
    """Checks values to keep while sampling: in each row, none or the first in modelling order."""
    if value is None:
        return torch.full_like(u, torch.nan)
    value = real("given", value).to(like.dtype)
    if value.shape not in (u.shape, u.shape[1:]):
        raise ValueError(
            f"given must have shape {tuple(u.shape[1:])} or {tuple(u.shape)}, but has "
            f"{tuple(value.shape)}; put NaN where values are to be drawn."
        )
    return leading(value.expand_as(u), order)


def leading(value: Tensor, order: Tensor) -> Tensor:
    """Checks that given values, shape (N, D), come first in modelling order; NaN is not given."""
    known = ~torch.isnan(value[:, order])
    if bool((known[:, 1:] & ~known[:, :-1]).any()):
        raise ValueError(
            "given columns must come first in the order in which columns are modelled, "
            f"{order.tolist()}, but a given column comes after one that is not given; "
            "make the model with another order."
        )
    return value
