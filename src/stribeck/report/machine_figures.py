"""Figures of recordings of arms and robots that a file of drives predicts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from stribeck.identify.common.machine_motion import JointErrors, MachineMotion, errors_of
from stribeck.report.style import COLOURS, MEASURED, drawing, legend_of

WIDTH = 9.0


def draw_machine_motion(motion: MachineMotion) -> Figure:
    """Draw measured and predicted torque or position, and what they differ, of each joint."""
    count, errors = len(motion.joints), errors_of([motion])
    with drawing(WIDTH, 0.9 + 1.75 * count, f"{motion.quantity} in {motion.name}") as figure:
        panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for k, (panel, joint) in enumerate(zip(panels, motion.joints, strict=True)):
            difference = motion.measured[:, k] - motion.predicted[:, k]
            panel.plot(motion.time, motion.measured[:, k], **{**MEASURED, "linewidth": 1.0})
            look = {"color": COLOURS[1], "linewidth": 0.9, "label": "predicted"}
            panel.plot(motion.time, motion.predicted[:, k], **look)
            look = {"color": "0.55", "linewidth": 0.6, "label": "measured − predicted"}
            panel.plot(motion.time, difference, **look)
            panel.set_title(f"{joint}, {words_of(errors[joint])}", loc="left", fontsize=9)
            panel.set_ylabel(f"[{motion.units[k]}]")
        panels[-1].set_xlabel("time [s]")
        legend_of(figure, panels[0])
    return figure


def words_of(error: JointErrors) -> str:
    """The error of a joint in words."""
    if not np.isfinite(error.rms):
        return "did not move"
    share = f", {100.0 * error.relative:.1f} % of the measured" if np.isfinite(error.relative) else ""
    return f"root mean square error {error.rms:.3g} {error.unit}{share}"
