"""Monotone maps from a column's values to the scale on which it is modelled, and back.

On its scale a column has median 0 and spread about 1. The logarithm of the map's slope is
counted, so densities stay in the column's own units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nits.tables.evidence.smooth import quantiles

Numbers = NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)

FARTHEST = 2.0**53
"""Where on a scale floats no longer tell points a spread apart."""


CONCENTRATED = 100
"""Ratio of the spread to the twentieth nearest the median; 16 for a Gaussian, 20 for a Cauchy."""


@dataclass(frozen=True)
class Scale(ABC):
    """An increasing map u = to(x)."""

    name: ClassVar[str]

    @abstractmethod
    def to(self, x: Numbers) -> Numbers:
        """Returns the points of the scale at which values lie; ±inf outside the domain."""

    @abstractmethod
    def back(self, u: Numbers) -> Numbers:
        """Returns the values at points of the scale, never beyond the largest float."""

    @abstractmethod
    def log_slope(self, x: Numbers) -> Numbers:
        """Returns log du/dx at values x."""

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it."""
        return {"name": self.name, **asdict(self)}


@dataclass(frozen=True)
class Linear(Scale):
    """u = (x − shift) / width."""

    name: ClassVar[str] = "linear"
    shift: float
    width: float

    def to(self, x: Numbers) -> Numbers:
        """Returns shifted and scaled values."""
        return _standard(x, self.shift, self.width)

    def back(self, u: Numbers) -> Numbers:
        """Returns u · width + shift."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = u * self.width + self.shift
            halves = 2 * (u / 2 * self.width + self.shift / 2)
        return np.clip(np.where(np.isfinite(x), x, halves), -LARGEST, LARGEST)

    def log_slope(self, x: Numbers) -> Numbers:
        """Returns −log width everywhere."""
        return np.full(np.shape(x), -math.log(self.width))


@dataclass(frozen=True)
class Log(Scale):
    """u = ±(log(±(x − offset)) − shift) / width, for values above the offset, or below it.

    sign: +1 if values lie above the offset and are skewed to the right, −1 for the mirror image.
    """

    name: ClassVar[str] = "log"
    offset: float
    sign: int
    shift: float
    width: float

    def to(self, x: Numbers) -> Numbers:
        """Returns the logarithm of the distance from the offset, shifted and scaled."""
        with np.errstate(divide="ignore"):
            log = np.log(np.maximum(self._distance(x), 0.0))
        found: Numbers = self.sign * (log - self.shift) / self.width
        return found

    def back(self, u: Numbers) -> Numbers:
        """Returns offset ± exp(±u · width + shift), never the offset itself."""
        first = np.nextafter(self.offset, self.sign * math.inf)
        with np.errstate(over="ignore"):
            distance = np.exp(self.sign * u * self.width + self.shift)
            found = np.clip(self.offset + self.sign * distance, -LARGEST, LARGEST)
        return np.maximum(found, first) if self.sign > 0 else np.minimum(found, first)

    def log_slope(self, x: Numbers) -> Numbers:
        """Returns −log |x − offset| − log width."""
        with np.errstate(divide="ignore"):
            found: Numbers = -np.log(self._distance(x)) - math.log(self.width)
        return found

    def _distance(self, x: Numbers) -> Numbers:
        with np.errstate(over="ignore"):
            found: Numbers = self.sign * (x - self.offset)
        return found


@dataclass(frozen=True)
class Asinh(Scale):
    """u = asinh((x − centre) / unit) / width: straight near the centre, logarithmic far from it."""

    name: ClassVar[str] = "asinh"
    centre: float
    unit: float
    width: float

    def to(self, x: Numbers) -> Numbers:
        """Returns the inverse hyperbolic sine of the distance from the centre."""
        t = np.asarray(_standard(x, self.centre, self.unit))
        found: Numbers = np.where(np.isinf(t), self._far(x), np.arcsinh(t)) / self.width
        return found

    def _far(self, x: Numbers) -> Numbers:
        # asinh t → ±log 2|t|, for t that no float can hold.
        with np.errstate(divide="ignore"):
            log = np.log(np.abs(x / 2 - self.centre / 2)) - math.log(self.unit) + math.log(4)
        return np.where(x >= self.centre, log, -log)

    def back(self, u: Numbers) -> Numbers:
        """Returns centre + unit · sinh(u · width)."""
        t = u * self.width
        with np.errstate(over="ignore"):
            # unit · sinh t = (exp(t + log unit) − exp(−t + log unit)) / 2, without overflow.
            far = np.copysign(np.exp(np.abs(t) + math.log(self.unit) - math.log(2)), t)
            step = np.where(np.abs(t) > 20, far, self.unit * np.sinh(np.clip(t, -20, 20)))
            found: Numbers = np.clip(self.centre + step, -LARGEST, LARGEST)
        return found

    def log_slope(self, x: Numbers) -> Numbers:
        """Returns −log √(1 + t²) − log unit − log width, with t = (x − centre) / unit."""
        t = np.abs(_standard(x, self.centre, self.unit))
        root = np.where(np.isinf(t), np.abs(self._far(x)) - math.log(2), np.log(np.hypot(1.0, t)))
        found: Numbers = -root - math.log(self.unit) - math.log(self.width)
        return found


@dataclass(frozen=True)
class Logit(Scale):
    """u = (log(x / (1 − x)) − shift) / width, for shares of 1 strictly between the ends."""

    name: ClassVar[str] = "logit"
    shift: float
    width: float

    def to(self, x: Numbers) -> Numbers:
        """Returns the log-odds."""
        share = np.clip(x, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            found: Numbers = (np.log(share) - np.log1p(-share) - self.shift) / self.width
        return found

    def back(self, u: Numbers) -> Numbers:
        """Returns the logistic function of u."""
        t = u * self.width + self.shift
        with np.errstate(over="ignore"):
            found: Numbers = 1 / (1 + np.exp(-t))
        return found

    def log_slope(self, x: Numbers) -> Numbers:
        """Returns −log x(1 − x) − log width."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Numbers = -np.log(x) - np.log1p(-x) - math.log(self.width)
        return found


def _standard(x: Numbers, shift: float, width: float) -> Numbers:
    """Returns (x − shift) / width, also where the difference would overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = (x - shift) / width
        found: Numbers = np.where(np.isfinite(x - shift), plain, x / width - shift / width)
    return found


def spread(x: Numbers, counts: Numbers) -> float:
    """Returns a robust spread of sorted values: the deviation of a Gaussian as wide in the middle.

    Where half of the values agree, wider parts are taken.
    """
    for tail, deviations in ((0.25, 1.349), (0.1, 2.563), (0.01, 4.653), (0.0, 8.0)):
        low, high = quantiles(x, counts, np.array([tail, 1 - tail]))
        if (width := float(high / 2 / deviations - low / 2 / deviations)) > 0:
            return min(2 * width, LARGEST)
    return max(abs(float(x[0])), 1e-300)


def fitted(
    x: Numbers, counts: Numbers, ends: tuple[float, float], room: Sequence[float] = (0.0, 0.0)
) -> list[Scale]:
    """Returns the scales on which values could be modelled, the simplest first.

    x, counts: Distinct values, ascending, and how often each occurs.
    ends: Of what must have a place on the scale: all values, and the cells around them.
    room: How far beyond each end a logarithm must start at least, unless it starts at 0.

    A logarithm starts at 0 if all values lie above it, or as far beyond the extreme value as one
    in a hundred lies inside; its mirror image serves columns skewed to the left. Values of both
    signs and of many magnitudes have an inverse hyperbolic sine with a finer unit besides.
    """
    low, high = ends
    q = quantiles(x, counts, np.array([0.05, 0.5, 0.95]))
    middle, sign = float(q[1]), 1 if q[2] / 2 - q[1] / 2 >= q[1] / 2 - q[0] / 2 else -1
    offsets = [0.0] if (low if sign > 0 else -high) > 0 else []
    edge = _beyond(x, counts, sign)
    if edge > 0:
        offsets.append(low - max(edge, room[0]) if sign > 0 else high + max(edge, room[1]))
    both = np.array(ends)
    possible = [o for o in offsets if math.isfinite(o) and _holds(Log(o, sign, 0.0, 1.0), both)]
    found: list[Scale] = [Linear(middle, spread(x, counts))]
    found += [_log(x, counts, offset, sign) for offset in possible]
    found.append(Asinh(middle, spread(x, counts), 1.0))
    found += _finer(x, counts, middle)
    if low > 0 and high < 1:
        t = Logit(0.0, 1.0).to(x)
        found.append(Logit(float(quantiles(t, counts, np.array([0.5]))[0]), spread(t, counts)))
    return [scale for scale in found if _holds(scale, both)]


def _holds(scale: Scale, ends: Numbers) -> bool:
    """Whether a scale has places for both ends, so near that a step of its spread still shows.

    Logarithms that all agree to nine digits have lost what sets the values apart.
    """
    if isinstance(scale, Log | Logit) and scale.width < 1e-9 * abs(scale.shift):
        return False
    return bool((np.abs(scale.to(ends)) < FARTHEST).all())


def _finer(x: Numbers, counts: Numbers, middle: float) -> list[Scale]:
    """Returns a scale that tells apart all but one value in twenty of those near the middle."""
    with np.errstate(over="ignore"):
        distance = np.abs(x - middle)
    order = np.argsort(distance, kind="stable")
    unit = float(quantiles(distance[order], counts[order], np.array([0.05]))[0])
    if not 0 < unit < spread(x, counts) / CONCENTRATED:
        return []
    return [Asinh(middle, unit, spread(Asinh(middle, unit, 1.0).to(x), counts))]


def _beyond(x: Numbers, counts: Numbers, sign: int) -> float:
    """Returns how far one value in a hundred, or in ten, or two, lies inside the extreme one."""
    for share in (0.01, 0.1, 0.5):
        inner = quantiles(x, counts, np.array([share if sign > 0 else 1 - share]))[0]
        edge = float(inner - x[0]) if sign > 0 else float(x[-1] - inner)
        if 0 < edge < math.inf:
            return edge
    return 0.0


def _log(x: Numbers, counts: Numbers, offset: float, sign: int) -> Log:
    t = Log(offset, sign, 0.0, 1.0).to(x)
    return Log(
        offset, sign, sign * float(quantiles(t, counts, np.array([0.5]))[0]), spread(t, counts)
    )


NAMES: dict[str, type[Scale]] = {cls.name: cls for cls in (Linear, Log, Asinh, Logit)}


def from_dict(record: dict[str, Any]) -> Scale:
    """Returns the scale that `Scale.to_dict` described."""
    values = {name: value for name, value in record.items() if name != "name"}
    return NAMES[record["name"]](**values)
