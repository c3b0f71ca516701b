"""Figures of an identified joint: its friction over velocity, and measured and predicted torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, MEASURED, drawing, legend_below

WIDTH, HEIGHT = 9.0, 7.0
MOST_POINTS = 4000
"""Maximum number of points drawn, evenly chosen."""


@dataclass(frozen=True, eq=False)
class JointDrawing:
    """Friction of a joint over velocity, and a run.

    :param velocity, friction: of the rows, without the remainder of the rigid torque (N,).
    :param points: velocity, torque and half-width of the plateaus of a sweep (P, 3); may be empty.
    :param curve: velocity, friction and half-width of its band (k, 3).
    :param time, measured, predicted: of the run (M,).
    """

    title: str
    velocity: Array
    friction: Array
    points: Array
    curve: Array
    time: Array
    measured: Array
    predicted: Array


def draw_joint(content: JointDrawing) -> Figure:
    """Draw the Stribeck curve with its band, and the torque of a run."""
    with drawing(WIDTH, HEIGHT, content.title) as figure:
        above, below = figure.subplots(2, 1)
        rows = slice(None, None, max(1, len(content.velocity) // MOST_POINTS))
        cloud = {"color": "0.75", "markersize": 2.0, "label": "rows"}
        above.plot(content.velocity[rows], content.friction[rows], ".", **cloud)
        if len(content.points):
            velocity, torque, half = content.points.T
            points = {"color": "black", "markersize": 4.0, "capsize": 2.0, "label": "plateaus"}
            above.errorbar(velocity, torque, half, fmt="o", **points)
        for positive in (False, True):  # between the directions friction jumps
            velocity, friction, half = content.curve[(content.curve[:, 0] > 0.0) == positive].T
            band = {"alpha": 0.3, "linewidth": 0.0, "label": "95 %" if positive else None}
            above.fill_between(velocity, friction - half, friction + half, color=COLOURS[1], **band)
            above.plot(velocity, friction, color=COLOURS[1], label="law" if positive else None)
        above.set(xlabel="velocity [rad/s]", ylabel="friction [N m]")
        rows = slice(None, None, max(1, len(content.time) // (5 * MOST_POINTS)))
        below.plot(content.time[rows], content.measured[rows], **{**MEASURED, "linewidth": 0.8})
        look = {"color": COLOURS[1], "linewidth": 0.9, "label": "predicted"}
        below.plot(content.time[rows], content.predicted[rows], **look)
        below.set(xlabel="time [s]", ylabel="torque [N m]")
        handles = [panel.get_legend_handles_labels()[0] for panel in (above, below)]
        legend_below(figure, [*handles[0], *handles[1]])
    return figure


def evenly(lower: float, upper: float) -> Array:
    """Velocities of both directions, dense near rest."""
    speeds = np.geomspace(lower, upper, 200)
    return np.concatenate([-speeds[::-1], speeds])
