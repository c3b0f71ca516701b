"""Figures of exciting trajectories: motion within limits, and predicted standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, drawing, legend_below

LIMIT: dict[str, Any] = {"color": COLOURS[1], "linewidth": 0.9, "linestyle": (0, (4, 2)), "label": "limit"}
_POINTS: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 4}
RANDOM = {**_POINTS, "color": "0.55", "label": "best random trajectory"}
DESIGNED = {**_POINTS, "color": COLOURS[0], "label": "designed trajectory"}


@dataclass(frozen=True, eq=False)
class Row:
    """One quantity of all joints over time.

    :param label: label of the quantity, with its unit.
    :param values: (N, n).
    :param lower, upper: limits, (n,); infinite for none.
    """

    label: str
    values: Array
    lower: Array
    upper: Array


def draw_excitation(
    time: Array, joints: Sequence[str], rows: Sequence[Row], title: str, width: float = 2.1
) -> Figure:
    """Draw one column per joint and one row per quantity, with limits dashed.

    :param time: (N,) [s].
    :param width: of a column [inch].
    """
    with drawing(0.9 + width * len(joints), 0.8 + 1.6 * len(rows), title) as figure:
        panels = figure.subplots(len(rows), len(joints), sharex=True, squeeze=False)
        for row, line in zip(rows, panels, strict=True):
            for joint, panel in enumerate(line):
                panel.plot(time, row.values[:, joint], color=COLOURS[0])
                for limit in filter(np.isfinite, (row.lower[joint], row.upper[joint])):
                    panel.axhline(limit, **LIMIT)
                panel.margins(x=0.01)
            line[0].set_ylabel(row.label)
        for joint, name in enumerate(joints):
            panels[0, joint].set_title(name)
            panels[-1, joint].set_xlabel("time [s]")
        figure.align_ylabels()
        legend_below(figure, [Line2D([], [], **LIMIT)])
    return figure


def draw_sigmas(names: Sequence[str], designed: Array, random: Array, title: str) -> Figure:
    """Draw predicted standard deviations of the base parameters and those of the best random trajectory.

    :param names: names of the base parameters (b,).
    :param designed, random: standard deviations (b,) for a torque noise of one sigma, in the parameters' units.
    """
    place = np.arange(len(names))
    with drawing(max(6.0, 1.5 + 0.19 * len(names)), 4.2) as figure:
        panel = figure.subplots()
        panel.vlines(place, designed, random, color="0.8", linewidth=1.2)
        panel.plot(place, random, **RANDOM)
        panel.plot(place, designed, **DESIGNED)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xticks(place, names, rotation=90, fontsize=7)
        panel.set(ylabel="predicted σ [kg, kg m, kg m²]", title=title)
        panel.margins(x=0.01)
        legend_below(figure, [Line2D([], [], **DESIGNED), Line2D([], [], **RANDOM)])
    return figure
