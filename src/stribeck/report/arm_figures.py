"""Figures of arms and robots: torques or positions of the joints, errors, friction curves, residuals, calibrated poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from stribeck.identify.common.machine_motion import JointErrors, MachineMotion, errors_of
from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, MEASURED, drawing, grid, legend_of

WIDTH = 9.0
MOST_POINTS = 3000
"""Maximum number of points drawn per scatter plot, evenly chosen."""

END_OF_AXIS = 1.05
"""End of the axis relative to the largest error."""


@dataclass(frozen=True, eq=False)
class FrictionDrawing:
    """Friction of one joint over velocity.

    :param velocity, friction: measured values (N,); friction is torque minus the rigid arm's torque.
    :param curve_velocity, curve: friction of the fitted law without load (k,).
    """

    joint: str
    velocity: Array
    friction: Array
    curve_velocity: Array
    curve: Array


def draw_joints(
    title: str,
    time: Array,
    measured: Array,
    predicted: Array,
    joints: Sequence[tuple[str, str]],
    friction: Array | None = None,
) -> Figure:
    """Draw measured and predicted torque or position (N, n) of each joint over time (N,) [s], and what they differ.

    :param joints: title and unit of each.
    :param friction: friction contribution (N, n), if the fit has one.
    """
    curves: list[tuple[Array | None, dict[str, Any]]] = [
        (measured, {**MEASURED, "linewidth": 1.0}),
        (predicted, {"color": COLOURS[1], "linewidth": 0.9, "label": "predicted"}),
        (friction, {"color": COLOURS[0], "linewidth": 0.9, "label": "friction part"}),
        (measured - predicted, {"color": "0.55", "linewidth": 0.6, "label": "measured − predicted"}),
    ]
    with drawing(WIDTH, 0.9 + 1.75 * len(joints), title) as figure:
        panels = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
        for j, (panel, (name, unit)) in enumerate(zip(panels, joints, strict=True)):
            for values, look in curves:
                if values is not None:
                    panel.plot(time, values[:, j], **look)
            panel.set_title(name, loc="left", fontsize=9)
            panel.set_ylabel(f"[{unit}]")
        panels[-1].set_xlabel("time [s]")
        legend_of(figure, panels[0])
    return figure


def draw_machine_motion(motion: MachineMotion) -> Figure:
    """Draw measured and predicted torque or position, and what they differ, of each joint."""
    errors = errors_of([motion])
    titles = [f"{joint}, {_words_of(errors[joint])}" for joint in motion.joints]
    joints = list(zip(titles, motion.units, strict=True))
    title = f"{motion.quantity} in {motion.name}"
    return draw_joints(title, motion.time, motion.measured, motion.predicted, joints)


def _words_of(error: JointErrors) -> str:
    """The error of a joint in words."""
    if not np.isfinite(error.rms):
        return "did not move"
    share = f", {100.0 * error.relative:.1f} % of the measured" if np.isfinite(error.relative) else ""
    return f"root mean square error {error.rms:.3g} {error.unit}{share}"


def draw_fit_errors(
    errors: Mapping[str, Mapping[str, Sequence[float | None]]], joints: Sequence[str], rows: str
) -> Figure:
    """Draw relative errors of each fit and joint, with one panel per data set.

    :param errors: by data set and fit: errors of each joint, followed by that of all joints.
    :param rows: description of the rows.
    """
    labels = [*joints, "all"]
    longest = max(map(len, labels))
    width = max(WIDTH, (0.3 + 0.075 * longest) * len(labels) + 1.5)
    with drawing(width, 0.7 + 2.4 * len(errors)) as figure:
        panels = figure.subplots(len(errors), 1, squeeze=False, sharex=True)[:, 0]
        for panel, (name, fits) in zip(panels, errors.items(), strict=True):
            bar = 0.8 / len(fits)
            for k, (fit, values) in enumerate(fits.items()):
                heights = [0.0 if value is None else 100.0 * value for value in values]
                places = np.arange(len(labels)) - 0.4 + (k + 0.5) * bar
                panel.bar(places, heights, bar, color=COLOURS[k % len(COLOURS)], label=fit)
            panel.set_title(f"{name}, {rows}", loc="left", fontsize=9)
            panel.set_ylabel("relative error [%]")
            panel.set_xticks(np.arange(len(labels)), labels)
        legend_of(figure, panels[0])
    return figure


def draw_friction(joints: Sequence[FrictionDrawing], unit: str, velocity_unit: str) -> Figure:
    """Draw friction of each joint over velocity: measured points and the fitted law."""
    columns = min(3, len(joints))
    with drawing(3.6 * columns + 0.4, 0.7 + 2.7 * -(-len(joints) // columns)) as figure:
        panels = grid(figure, len(joints), columns)
        for panel, joint in zip(panels, joints, strict=True):
            step = max(1, len(joint.velocity) // MOST_POINTS)
            cloud: dict[str, Any] = {
                "color": "0.6",
                "markersize": 2.0,
                "label": "measured",
                "rasterized": True,
            }
            panel.plot(joint.velocity[::step], joint.friction[::step], ".", **cloud)
            panel.plot(joint.curve_velocity, joint.curve, color=COLOURS[1], label="fitted law, no load")
            panel.set_title(joint.joint, loc="left", fontsize=9)
            panel.set(xlabel=f"velocity [{velocity_unit}]", ylabel=f"friction [{unit}]")
        legend_of(figure, panels[0])
    return figure


def draw_residuals(
    joint: str,
    unit: str,
    frequency: Array,
    density: Array,
    signals: Mapping[str, tuple[Array, Array]],
    shares: str,
) -> Figure:
    """Draw the residual of a joint's torque over frequency, and against other signals.

    :param frequency, density: power spectral density (k,) [Hz, unit²/Hz].
    :param signals: values (N,) and residuals (N,) by axis label.
    :param shares: description of the residual's components.
    """
    with drawing(3.4 * (1 + len(signals)) + 0.4, 3.3) as figure:
        figure.suptitle(f"{joint}: measured − predicted; {shares}", fontsize=9)
        panels = grid(figure, 1 + len(signals), 1 + len(signals))
        panels[0].loglog(frequency[1:], density[1:], color=COLOURS[0])
        squared = f"({unit})²" if " " in unit else f"{unit}²"
        panels[0].set(xlabel="frequency [Hz]", ylabel=f"power density [{squared}/Hz]")
        for axis in (panels[0].xaxis, panels[0].yaxis):  # powers of ten would need math text in labels
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
        for panel, (label, (values, residual)) in zip(panels[1:], signals.items(), strict=True):
            step = max(1, len(values) // MOST_POINTS)
            panel.plot(values[::step], residual[::step], ".", color="0.4", markersize=1.5)
            panel.set(xlabel=label, ylabel=f"[{unit}]")
    return figure


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
