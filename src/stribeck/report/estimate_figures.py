"""Figures of an estimation: measured, estimated and simulated signals, residuals, and convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, drawing

LOOKS = {
    "simulated": ("simulated from the first sample", COLOURS[1], "-"),
    "estimated": ("estimated states", COLOURS[0], "--"),
}


def draw_signals(
    title: str,
    time: Array,
    names: Sequence[str],
    units: Sequence[str],
    measured: Array,
    drawn: Mapping[str, tuple[Array, Array]],
    band: Array,
) -> Figure:
    """Draw measured, estimated and simulated signals of a run, each with its residuals below.

    :param measured: (N, ns), NaN where nothing was measured.
    :param drawn: ``simulated`` and, for fitted runs, ``estimated``: signals at all steps, and predicted minus measured (N, ns).
    :param band: standard deviation of the estimated signals (N, ns).
    """
    with drawing(9.0, 5.2 * len(names), title) as figure:
        panels = figure.subplots(2 * len(names), 1, sharex=True, squeeze=False)[:, 0]
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            above, below = panels[2 * k], panels[2 * k + 1]
            above.plot(time, measured[:, k], ".", markersize=3, color="0.6", label="measured")
            if "estimated" in drawn:
                limit, shade = 2 * band[:, k], {"color": COLOURS[0], "alpha": 0.25, "linewidth": 0}
                below.fill_between(time, -limit, limit, label="± 2 deviations", **shade)
            for kind, (signals, errors) in drawn.items():
                label, colour, dashes = LOOKS[kind]
                above.plot(time, signals[:, k], dashes, color=colour, linewidth=1, label=label)
                points = {"markersize": 2, "color": colour, "label": f"{kind} − measured"}
                below.plot(time, errors[:, k], ".", **points)
            above.set_ylabel(f"{name} [{unit}]")
            below.set_ylabel(f"error [{unit}]")
            for panel in (above, below):  # above the axes, where the legend hides nothing
                place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0}
                panel.legend(fontsize=8, ncols=3, **place)
        panels[-1].set_xlabel("time [s]")
    return figure


def draw_convergence(history: Sequence[tuple[float, float, float]]) -> Figure:
    """Draw cost and damping over iterations, with one colour per ratio."""
    table = np.array(history)
    index = np.arange(1, len(table) + 1)
    with drawing(8.0, 6.0) as figure:
        panels = figure.subplots(2, 1, sharex=True)
        for k, ratio in enumerate(dict.fromkeys(table[:, 0].tolist())):
            rows = table[:, 0] == ratio
            for panel, column in zip(panels, (1, 2), strict=True):
                line = {"color": COLOURS[k % len(COLOURS)], "label": f"ratio {ratio:g}"}
                panel.plot(index[rows], table[rows, column], "o-", **line)
        for panel, label in zip(panels, ("half the weighted sum of squares", "damping"), strict=True):
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter("{x:g}")
            panel.set_ylabel(label)
        panels[1].set_xlabel("iteration")
        panels[0].legend()
    return figure
