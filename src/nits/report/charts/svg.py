"""A chart as SVG text: an area with scales and ticks, and the shapes that are drawn in it.

Colours are classes, which the page's style sheet fills in for light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from nits.report.ticks import Tick
from nits.report.words import visible

Numbers = NDArray[np.float64]

LARGEST = 1.3
"""By how much a page may enlarge a chart."""

LETTER = 6.1
"""About the width of a letter of a tick's label, in units of the chart."""


@dataclass
class Chart:
    """A picture with an area from (0, 0), bottom left, to (1, 1), in which shapes are placed.

    width, height: Of the whole picture, in pixels of a usual screen.
    margins: Left, top, right and bottom of the area.
    label: What a screen reader says.
    """

    width: float
    height: float
    label: str
    margins: tuple[float, float, float, float] = (8, 6, 8, 22)
    parts: list[str] = field(default_factory=list)

    def x(self, place: float) -> float:
        """Returns the pixel of a place from 0 to 1, from left to right."""
        left, _, right, _ = self.margins
        return left + place * (self.width - left - right)

    def y(self, place: float) -> float:
        """Returns the pixel of a place from 0 to 1, from the bottom upwards."""
        _, top, _, bottom = self.margins
        return self.height - bottom - place * (self.height - top - bottom)

    def line(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Draws a line through places."""
        self.parts.append(f'<path class="{kind}" d="{self._path(points)}"/>')

    def area(self, points: Iterable[tuple[float, float]], kind: str) -> None:
        """Fills the area that a line through places encloses."""
        self.parts.append(f'<path class="{kind}" d="{self._path(points)}z"/>')

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        found = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        return "M" + "L".join(found)

    def box(self, across: tuple[float, float], up: tuple[float, float], kind: str) -> None:
        """Draws a rectangle between places."""
        x, y = self.x(across[0]), self.y(up[1])
        width, height = self.x(across[1]) - x, self.y(up[0]) - y
        self.parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" '
            f'width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"/>'
        )

    def dot(self, x: float, y: float, kind: str, radius: float = 2.5) -> None:
        """Draws a dot at a place."""
        self.parts.append(
            f'<circle class="{kind}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:g}"/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "t", anchor: str = "middle") -> None:
        """Writes words at a pixel."""
        self.parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{escape(visible(words))}</text>"
        )

    def across(self, ticks: Sequence[Tick], title: str = "") -> None:
        """Draws the axis below the area; labels that would touch are left out."""
        base = self.y(0)
        self.parts.append(f'<path class="ax" d="M{self.x(0):.1f} {base:.1f}H{self.x(1):.1f}"/>')
        reached = -np.inf
        for place, label in ticks:
            at, half = self.x(place), LETTER * len(label) / 2
            middle = min(max(at, half), self.width - half)
            self.parts.append(f'<path class="ax" d="M{at:.1f} {base:.1f}v3"/>')
            if middle - half > reached:
                self.text(middle, base + 14, label)
                reached = middle + half + 4
        if title:
            self.text(self.x(0.5), self.height - 3, title, "t name")

    def up(self, ticks: Sequence[Tick], *, rules: bool = True) -> None:
        """Draws the ticks at the left of the area, with lines across it."""
        for place, label in ticks:
            y = self.y(place)
            if rules:
                self.parts.append(
                    f'<path class="rule" d="M{self.x(0):.1f} {y:.1f}H{self.x(1):.1f}"/>'
                )
            self.text(self.x(0) - 5, y + 3.5, label, anchor="end")

    def svg(self) -> Markup:
        """Returns the picture."""
        return Markup(
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" '
            f'style="max-width:{self.width * LARGEST:.0f}px" role="img" '
            f'aria-label="{escape(visible(self.label))}">{"".join(self.parts)}</svg>'
        )


def steps(edges: Numbers, heights: Numbers) -> list[tuple[float, float]]:
    """Returns the corners of a line of steps, from the floor and back to it."""
    x = np.repeat(edges, 2)
    y = np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    return list(zip(x.tolist(), y.tolist(), strict=True))


def evenly(low: float, high: float) -> tuple[float, float]:
    """Returns ends a little farther apart than two numbers."""
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room
