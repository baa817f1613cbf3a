"""Monotone maps from a column's values to the scale on which it is modelled, and back.

On its scale a column has median 0 and spread about 1. The logarithm of the map's slope is
counted, so densities stay in the column's own units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)

FARTHEST = 2.0**53
"""Where on a scale floats no longer tell points a spread apart, nor the teeth of a comb."""


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

    def holds(self, x: Numbers) -> NDArray[np.bool_]:
        """Returns which values have a place of their own."""
        return np.ones(np.shape(x), bool)

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


@dataclass(frozen=True)
class Combed(Scale):
    """u = inner(y), where y has no gaps: a grid whose points were blurred by less than its step.

    Values lie in the teeth of a comb, from origin + k · step on, as wide as a share of the step:

        y = origin + step · (k + t / share),    x = origin + step · (k + t),    0 ≤ t ≤ share
    """

    name: ClassVar[str] = "combed"
    inner: Scale
    origin: float
    step: float
    share: float

    def closed(self, x: Numbers) -> Numbers:
        """Returns y: each tooth takes the room of its gap, too."""
        whole, part = self._parts(x)
        return self._joined(x, whole, np.minimum(part / self.share, 1.0))

    def to(self, x: Numbers) -> Numbers:
        """Returns the points of the scale inside; all of a gap is at the end of its tooth."""
        return self.inner.to(self.closed(x))

    def back(self, u: Numbers) -> Numbers:
        """Returns values in the teeth."""
        y = self.inner.back(u)
        whole, part = self._parts(y)
        return self._joined(y, whole, part * self.share)

    def log_slope(self, x: Numbers) -> Numbers:
        """Returns the slope of the scale inside over the share; −inf in gaps."""
        inside = self.inner.log_slope(self.closed(x)) - math.log(self.share)
        return np.where(self.holds(x), inside, -np.inf)

    def holds(self, x: Numbers) -> NDArray[np.bool_]:
        """Returns which values lie in a tooth."""
        return np.asarray(self._parts(x)[1] <= self.share)

    def _parts(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """Returns the number of the tooth, and how far beyond its origin values lie, in steps."""
        with np.errstate(over="ignore", invalid="ignore"):
            steps = (np.asarray(x) - self.origin) / self.step
            whole = np.floor(steps)
            return whole, np.where(np.abs(steps) < FARTHEST, steps - whole, 0.0)

    def _joined(self, x: Numbers, whole: Numbers, part: Numbers) -> Numbers:
        """Returns values from their parts; those too far to tell teeth apart as they are."""
        near = np.abs(whole) < FARTHEST
        steps = np.where(near, whole, 0.0) + part
        return np.where(near, self.origin + self.step * steps, x)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it."""
        own = {"origin": self.origin, "step": self.step, "share": self.share}
        return {"name": self.name, "inner": self.inner.to_dict(), **own}


def _standard(x: Numbers, shift: float, width: float) -> Numbers:
    """Returns (x − shift) / width, also where the difference would overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = (x - shift) / width
        found: Numbers = np.where(np.isfinite(x - shift), plain, x / width - shift / width)
    return found


NAMES: dict[str, type[Scale]] = {cls.name: cls for cls in (Linear, Log, Asinh, Logit)}
"""Those without a scale inside."""


def from_dict(record: dict[str, Any]) -> Scale:
    """Returns the scale that `Scale.to_dict` described."""
    values = {name: value for name, value in record.items() if name != "name"}
    if record["name"] == Combed.name:
        inner = values["inner"]
        plain = {name: value for name, value in inner.items() if name != "name"}
        return Combed(**(values | {"inner": NAMES[inner["name"]](**plain)}))
    return NAMES[record["name"]](**values)
