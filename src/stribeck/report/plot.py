"""Axes and lines as SVG without scripts; an optional script zooms.

A panel is a frame with ticks around a nested ``svg`` whose coordinates run from 0 to :data:`UNITS` along both axes.
Zooming changes its ``viewBox`` and the ticks, not the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array, Mask
from stribeck.report.markup import Child, element

UNITS = 10000
"""Resolution of a panel along each axis."""

WIDTH = 460
"""Width of a figure, which is shown at 330 to 600 pixels."""

LEFT, RIGHT = 50, 10
"""Margins of a panel."""

MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """A range of values with a label.

    :param label: quantity and unit.
    :param log: whether the scale is logarithmic; the ends are then positive.
    """

    low: float
    high: float
    label: str
    log: bool = False

    def fraction(self, values: npt.ArrayLike) -> Array:
        """Map values to positions between the ends, 0 to 1."""
        array = np.asarray(values, dtype=np.float64)
        if self.log:
            return np.log(array / self.low) / math.log(self.high / self.low)
        return (array - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Values of the ticks: round numbers within the range."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if self.high / self.low < 1e3 else (1,)
            return [m * 10.0**p for p in powers for m in steps if self.low <= m * 10.0**p <= self.high]
        rough = (self.high - self.low) / MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        size = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
        first = math.ceil(self.low / size - 1e-9)
        return [k * size for k in range(first, math.floor(self.high / size + 1e-9) + 1)]


def spanning(label: str, *values: npt.ArrayLike, margin: float = 0.04) -> Axis:
    """Create an axis over all finite values, with a margin."""
    samples = np.concatenate([np.ravel(np.asarray(array, dtype=np.float64)) for array in values])
    samples = samples[np.isfinite(samples)]
    low, high = (float(np.min(samples)), float(np.max(samples))) if samples.size else (0.0, 1.0)
    padding = margin * (high - low) if high > low else 0.5 * abs(high) or 1.0
    return Axis(low - padding, high + padding, label)


@dataclass(frozen=True)
class Panel:
    """A pair of axes, placed in a figure."""

    x: Axis
    y: Axis
    top: float = 24
    height: float = 180
    left: float = LEFT
    width: float = WIDTH - LEFT - RIGHT

    def across(self, values: npt.ArrayLike) -> Array:
        """Figure coordinates of values along the horizontal axis."""
        return np.asarray(self.left + self.width * self.x.fraction(values))

    def down(self, values: npt.ArrayLike) -> Array:
        """Figure coordinates of values along the vertical axis."""
        return np.asarray(self.top + self.height * (1.0 - self.y.fraction(values)))

    def line(self, x: npt.ArrayLike, y: npt.ArrayLike, name: str = "", **attributes: str) -> Element:
        """A line, interrupted where ``y`` is NaN."""
        attributes = {"class_": "trace", **attributes}
        if name:
            attributes["data_name"] = name
        return element("path", d=self._path(x, y), **attributes)

    def band(self, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, **attributes: str) -> Element:
        """The area between two lines."""
        across = np.concatenate([np.asarray(x), np.asarray(x)[::-1]])
        return element(
            "path", d=self._path(across, np.concatenate([low, np.asarray(high)[::-1]])) + "z", **attributes
        )

    def _path(self, x: npt.ArrayLike, y: npt.ArrayLike) -> str:
        across = np.rint(UNITS * self.x.fraction(x))
        down = np.rint(UNITS * (1.0 - self.y.fraction(y)))
        down = np.clip(down, -9 * UNITS, 10 * UNITS)  # limits the number of digits for points far outside
        return "".join(_stroke(across[a:b], down[a:b]) for a, b in stretches(np.isfinite(down)))

    def draw(self, *content: Child, x_labels: bool = True) -> Element:
        """Draw frame, ticks, labels and content."""
        bottom = self.top + self.height
        window = element(
            "svg",
            *content,
            class_="window",
            x=self.left,
            y=self.top,
            width=self.width,
            height=self.height,
            viewBox=f"0 0 {UNITS} {UNITS}",
            preserveAspectRatio="none",
        )
        return element(
            "g",
            element("g", *(self._across(value, x_labels) for value in self.x.ticks()), class_="ticks x"),
            element("g", *(self._down(value) for value in self.y.ticks()), class_="ticks y"),
            window,
            element("rect", x=self.left, y=self.top, width=self.width, height=self.height, class_="frame"),
            element("text", self.y.label, x=2, y=self.top - 7, class_="label"),
            element("text", self.x.label, x=self.left + self.width, y=bottom + 34, class_="label end")
            if x_labels
            else None,
            class_="panel",
            data_left=self.left,
            data_top=self.top,
            data_width=self.width,
            data_height=self.height,
            data_x=f"{self.x.low!r} {self.x.high!r}",
            data_y=f"{self.y.low!r} {self.y.high!r}",
            data_labels="x" if x_labels else "",
        )

    def _across(self, value: float, labelled: bool) -> Element:
        x, bottom = float(self.across(value)), self.top + self.height
        text = element("text", plain(value), x=x, y=bottom + 16, class_="middle") if labelled else None
        return element("g", element("line", x1=x, x2=x, y1=self.top, y2=bottom), text)

    def _down(self, value: float) -> Element:
        y, right = float(self.down(value)), self.left + self.width
        text = element("text", plain(value), x=self.left - 5, y=y + 4.5, class_="end")
        return element("g", element("line", x1=self.left, x2=right, y1=y, y2=y), text)


def figure(height: float, title: Child, caption: Child, *content: Child, kind: str = "") -> Element:
    """Create a figure with a title above, its drawing, and a caption below."""
    drawing = element(
        "svg",
        *content,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_label="".join(title.itertext()) if isinstance(title, Element) else title or "figure",
        class_="plot",
    )
    below = element("figcaption", caption) if caption is not None else None
    return element("figure", element("h3", title), drawing, below, class_=kind)


def plain(value: float) -> str:
    """Format a number with a typographic minus sign and at most six digits."""
    return f"{round(value, 10) + 0.0:.6g}".replace("-", "\N{MINUS SIGN}")


def thinned(values: Array, most: int) -> npt.NDArray[np.intp]:
    """Indices of at most ``most`` samples, including the extremes of every interval."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, max(most // 2, 1) + 1).astype(int)
    kept = {0, count - 1}
    for start, end in pairwise(edges):
        part = np.where(np.isfinite(values[start:end]), values[start:end], 0.0)
        kept |= {int(start + np.argmin(part)), int(start + np.argmax(part))}
    return np.array(sorted(kept), dtype=np.intp)


def stretches(mask: Mask) -> Iterable[tuple[int, int]]:
    """First index of each stretch of true values, and the index after its last."""
    padded = np.concatenate(([False], mask, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _stroke(across: Array, down: Array) -> str:
    """Format a path as absolute start and relative steps, which halves the length of absolute coordinates."""
    steps: Sequence[int] = np.diff(np.stack([across, down], axis=1), axis=0).astype(int).ravel().tolist()
    start = f"M{int(across[0])} {int(down[0])}"
    return start + ("l" + " ".join(map(str, steps)) if steps else "h1")
