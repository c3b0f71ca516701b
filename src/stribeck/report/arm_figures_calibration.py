"""Figures of kinematic calibrations: errors of each fit, and poses that disagree with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, drawing

END_OF_AXIS = 1.05
"""End of the axis relative to the largest error."""


@dataclass(frozen=True, eq=False)
class PoseSet:
    """Errors of one set of poses.

    :param title: such as ``validation, 250 poses``.
    :param rows: row of each pose in the input files (poses,).
    :param distances: 3-D errors by fit (poses, markers) [m].
    :param blunders: rows of the poses that disagree with the others.
    """

    title: str
    rows: npt.NDArray[np.int64]
    distances: Mapping[str, Array]
    blunders: Sequence[int]


def draw_errors(sets: Sequence[PoseSet], title: str) -> Figure:
    """Draw the fraction of points with an error below a bound, for each fit; one panel per set of poses."""
    largest = 1e3 * max(float(d.max()) for poses in sets for d in poses.distances.values())
    with drawing(4.0 * len(sets) + 0.4, 3.6, title) as figure:
        panels = figure.subplots(1, len(sets), sharex=True, sharey=True, squeeze=False)[0]
        for panel, poses in zip(panels, sets, strict=True):
            for (fit, distances), colour in zip(poses.distances.items(), COLOURS, strict=False):
                mean, median = 1e3 * distances.mean(), 1e3 * np.median(distances)
                label = f"{fit}: mean {mean:.3f} mm, median {median:.3f} mm"
                panel.ecdf(1e3 * distances.ravel(), color=colour, label=label)
            panel.set(title=poses.title, xlabel="3-D error [mm]")
            panel.set(xlim=(0.0, END_OF_AXIS * largest), ylim=(0.0, 1.0))
            panel.legend(loc="lower right", fontsize=8)
        panels[0].set_ylabel("share of points")
    return figure


def draw_poses(sets: Sequence[PoseSet], fit: str, title: str) -> Figure:
    """Draw the mean error of each pose over its row, with blunders marked."""
    with drawing(8.4, 0.9 + 2.4 * len(sets), title) as figure:
        panels = figure.subplots(len(sets), 1, sharey=True, squeeze=False)[:, 0]
        for panel, poses in zip(panels, sets, strict=True):
            error = 1e3 * poses.distances[fit].mean(axis=1)
            far = np.isin(poses.rows, list(poses.blunders))
            panel.plot(poses.rows[~far], error[~far], "o", color=COLOURS[0], markersize=2.5)
            panel.plot(poses.rows[far], error[far], "x", color=COLOURS[1], markersize=5.0)
            for row, height in zip(poses.rows[far], error[far], strict=True):
                look = {"fontsize": 7, "color": COLOURS[1]}
                panel.annotate(str(row), (row, height), (3, 2), textcoords="offset points", **look)
            panel.set(title=poses.title, ylabel="mean error [mm]")
        largest = 1e3 * max(float(poses.distances[fit].mean(axis=1).max()) for poses in sets)
        panels[0].set_ylim(0.0, END_OF_AXIS * largest)
        panels[-1].set_xlabel("row of the pose; crosses with row: poses with unusually large errors")
    return figure
