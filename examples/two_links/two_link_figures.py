"""Figures of an arm of two links: errors of friction laws by path and gain, and the paths themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stribeck.errors import ConfigError
from stribeck.report.style import COLOURS, DASHES, GOAL, MEASURED, drawing

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LawErrors:
    """Errors of friction laws at one gain.

    :param title: of the panel.
    :param paths: names in words.
    :param errors: of each path [rad], by law.
    """

    title: str
    paths: Sequence[str]
    errors: Mapping[str, Sequence[float]]


@dataclass(frozen=True, eq=False)
class PathDrawing:
    """The end point on one path.

    :param title: of the panel.
    :param desired, true: sideways and upwards (N, 2) [m].
    :param simulated: by law.
    """

    title: str
    desired: FloatArray
    true: FloatArray
    simulated: Mapping[str, FloatArray]


def draw_law_errors(panels: Sequence[LawErrors], title: str) -> Figure:
    """Errors of each law on each path, one panel for each gain.

    :raises ConfigError: without a panel.
    """
    if not panels:
        raise ConfigError("no errors to draw: give at least one gain")
    with drawing(9.0, 0.7 + 2.5 * len(panels), title) as figure:
        for axes, panel in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
            at = np.arange(len(panel.paths))
            width = 0.84 / len(panel.errors)
            for k, (law, errors) in enumerate(panel.errors.items()):
                places = at + (k - 0.5 * (len(panel.errors) - 1)) * width
                bars = axes.bar(
                    places, 1e3 * np.array(errors), 0.92 * width, color=COLOURS[k], label=law.upper()
                )
                axes.bar_label(bars, fmt=_short, fontsize=6.5, padding=1)
            axes.set_xticks(at, panel.paths)
            axes.grid(visible=False, axis="x")
            axes.set_ylabel("mean absolute error [mrad]")
            axes.set_title(panel.title, loc="left", fontsize=9)
            axes.margins(y=0.12)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def draw_followed_paths(panels: Sequence[PathDrawing], columns: int, title: str) -> Figure:
    """Desired, true and simulated motion of the end point, in rows of ``columns`` panels.

    :raises ConfigError: without a panel.
    """
    if not panels:
        raise ConfigError("no paths to draw: give at least one")
    rows = -(-len(panels) // columns)
    with drawing(max(6.4, 0.4 + 2.9 * columns), 0.9 + 2.7 * rows, title) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            axes.plot(*panel.desired.T, **{**GOAL, "label": "desired"})
            axes.plot(*panel.true.T, **{**MEASURED, "label": "truth"})
            for k, (law, points) in enumerate(panel.simulated.items()):
                axes.plot(
                    *points.T,
                    color=COLOURS[(k + 1) % len(COLOURS)],
                    linestyle=DASHES[k + 1],
                    label=law.upper(),
                )
            axes.set_aspect("equal", adjustable="datalim")
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axes.set_title(panel.title, loc="left", fontsize=9)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[-1]:
            axes.set_xlabel("x [m]")
        for axes in grid[:, 0]:
            axes.set_ylabel("z [m]")
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _short(value: float) -> str:
    """Two digits, and all those before the point."""
    return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"
