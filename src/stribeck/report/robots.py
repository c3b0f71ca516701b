"""Pictures of a whole robot: errors by run and joint, friction of all joints, also over runs, and the motion of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, DASHES, GOAL, MEASURED, drawing, grid, legend_below, legend_of


def draw_robot_errors(errors: Array, runs: Sequence[str], joints: Sequence[str]) -> Figure:
    """Root mean square errors (R, J) [rad] by run and joint, as numbers in mrad."""
    with drawing(2.0 + 0.55 * len(joints), 1.6 + 0.28 * len(runs), "Error, rms [mrad]") as figure:
        (panel,) = grid(figure, 1, 1)
        panel.imshow(1e3 * errors, cmap="Oranges", aspect="auto", vmin=0.0)
        dark = 0.6 * errors.max(initial=0.0)
        for row, column in np.ndindex(*errors.shape):
            value = float(errors[row, column])
            colour = "white" if value > dark else "black"
            panel.text(column, row, f"{1e3 * value:.1f}", ha="center", va="center", fontsize=7, color=colour)
        panel.set_xticks(range(len(joints)), list(joints), rotation=60, ha="right", fontsize=7)
        panel.set_yticks(range(len(runs)), list(runs), fontsize=7)
        panel.grid(False)
    return figure


def draw_robot_friction(curves: Mapping[str, tuple[Array, Array, Array]]) -> Figure:
    """Friction torque [N m] without load over speed [rad/s] of all joints; a band where it depends on position.

    :param curves: speeds, and least and largest friction over the positions of the recordings, by joint.
    """
    with drawing(8.0, 5.0, "Friction without load") as figure:
        (panel,) = grid(figure, 1, 1)
        lines = []
        for index, (joint, (speed, least, most)) in enumerate(curves.items()):
            look = {
                "color": COLOURS[index % len(COLOURS)],
                "linestyle": DASHES[index // len(COLOURS) % len(DASHES)],
            }
            lines += panel.plot(speed, 0.5 * (least + most), label=joint, **look)
            if np.any(most > least):
                panel.fill_between(speed, least, most, color=look["color"], alpha=0.15, linewidth=0.0)
        panel.set_xlabel("speed [rad/s]")
        panel.set_ylabel("friction [N m]")
        panel.set_ylim(bottom=0.0)
        legend_below(figure, lines)
    return figure


def draw_robot_motion(
    name: str, time: Array, goal: Array, position: Array, simulated: Array, joints: Sequence[str]
) -> Figure:
    """Goal, measured and simulated position [rad] of each joint over time [s], (T,) and (T, J)."""
    columns = min(3, len(joints))
    with drawing(11.0, 2.0 * -(-len(joints) // columns) + 0.8, name) as figure:
        panels = grid(figure, len(joints), columns, sharex=True)
        for index, (panel, joint) in enumerate(zip(panels, joints, strict=True)):
            panel.plot(time, goal[:, index], **GOAL)
            panel.plot(time, position[:, index], **MEASURED)
            panel.plot(time, simulated[:, index], color=COLOURS[1], linewidth=0.9, label="simulated")
            error = float(np.sqrt(np.mean((simulated[:, index] - position[:, index]) ** 2)))
            panel.set_title(f"{joint}, {1e3 * error:.1f} mrad", fontsize=8)
            panel.set_ylabel("rad", fontsize=8)
        for panel in panels[-columns:]:
            panel.set_xlabel("time [s]")
        legend_of(figure, panels[0])
    return figure


class FrictionSeries(Protocol):
    """Friction of a joint by run, see :class:`stribeck.identify.robot.drift.JointDrift`."""

    @property
    def joint(self) -> str:
        """Name."""

    @property
    def speed(self) -> float:
        """At which friction is compared [rad/s]."""

    @property
    def earlier(self) -> tuple[float, float]:
        """Friction of the earlier fit, and its standard deviation [N m]."""

    @property
    def friction(self) -> Array:
        """By run (R,) [N m]."""

    @property
    def deviation(self) -> Array:
        """Standard deviation by run (R,) [N m]."""

    @property
    def since(self) -> int | None:
        """Number of the run in which a change was certain."""


def draw_drift(series: Sequence[FrictionSeries], runs: Sequence[str]) -> Figure:
    """A panel for each joint: friction with 95 % intervals run by run, and the earlier value as a band."""
    columns = 3
    rows = -(-len(series) // columns)
    with drawing(11.0, 2.3 * rows + 0.8, "Friction over runs") as figure:
        at = np.arange(len(runs))
        panels = grid(figure, len(series), columns, sharex=True)
        for panel, each in zip(panels, series, strict=True):
            value, spread = each.earlier
            if np.isfinite(spread):
                panel.axhspan(value - 1.96 * spread, value + 1.96 * spread, color="0.88")
            panel.axhline(value, color="0.45", label="earlier fit, 95 %")
            look: dict[str, Any] = {"fmt": "o-", "color": COLOURS[0], "markersize": 3.0, "label": "run, 95 %"}
            panel.errorbar(at, each.friction, 1.96 * each.deviation, **look)
            changed = "" if each.since is None else f", changed since {runs[each.since]}"
            panel.set_title(f"{each.joint}{changed}", fontsize=8)
            panel.set_ylabel(f"N m at {each.speed:.2g} rad/s", fontsize=8)
            panel.set_ylim(bottom=0.0)
            panel.set_xticks(at, [str(name) for name in runs], rotation=60, fontsize=7)
        legend_of(figure, panels[0])
    return figure
