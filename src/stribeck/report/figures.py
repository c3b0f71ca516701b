"""Figures of recorded runs, drive/backdrive diagrams, and compensated motion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stribeck.evaluate.diagram import DiagramCurve
from stribeck.evaluate.measured_diagram import DiagramPoint
from stribeck.model.arrays import Array
from stribeck.report.plot import stretches
from stribeck.report.style import COLOURS, DASHES, GOAL, MEASURED, drawing, grid, legend_below, shortened

Look = dict[str, Any]

RECORDED = "recorded"
"""Label of what was measured, among the further signals of a run."""

TORQUE_OFF: Look = {"color": "0.93", "linewidth": 0.0, "label": "torque off"}
EQUAL_TORQUES: Look = {"color": "black", "linewidth": 0.9, "linestyle": "--", "label": "equal torques"}
DRIVE_COLOUR, BACKDRIVE_COLOUR, STATIC_COLOUR = "#0072B2", "#C0202C", "0.88"

ERROR_NOTE = "mrad: mean absolute error of the simulated position"
MOTOR_TORQUE_LABEL = r"motor torque $\tau_m$ [N m]"
EXTERNAL_TORQUE_LABEL = r"opposing external torque $|\tau_e|$ [N m]"


@dataclass(frozen=True, eq=False)
class RunDrawing:
    """One run to draw.

    :param time: sample times (n,) [s].
    :param measured: measured position (n,) [rad].
    :param goal: goal position as sent (n,) [rad].
    :param torque_enable: 1 with torque on, 0 without (n,).
    :param simulated: simulated positions (n,) [rad] by label, for instance a parameter file's name.
    :param title: name of the run.
    :param errors: mean absolute error of each simulation [rad] by label.
    :param bands: half-widths of the 90 % bands (n,) [rad] of the simulations that have one, by label.
    :param panels: further signals (n,) by the label of their axis, and by :data:`RECORDED` or the label of a simulation.
    """

    time: Array
    measured: Array
    goal: Array
    torque_enable: Array
    simulated: Mapping[str, Array]
    title: str
    errors: Mapping[str, float]
    bands: Mapping[str, Array] = field(default_factory=dict)
    panels: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

    @property
    def recorded(self) -> bool:
        """Whether there is a measurement."""
        return bool(np.any(np.isfinite(self.measured)))

    def legend_entry(self, label: str, longest: int) -> str:
        """The label of a simulation, shortened to ``longest`` characters, with its error."""
        entry = shortened(label, longest)
        entry += f": {1e3 * self.errors[label]:.1f} mrad" if label in self.errors else ""
        # Matplotlib omits legend entries that begin with an underscore.
        return f" {entry}" if entry.startswith("_") else entry


def draw_run(run: RunDrawing) -> Figure:
    """Draw one run: positions above, residuals (simulated minus measured) below, then the further signals."""
    compared = bool(run.simulated) and run.recorded
    ratios = [2.2, *([1.0] if compared else []), *(1.2 for _ in run.panels)]
    with drawing(9.0, 1.0 + 1.45 * sum(ratios)) as figure:
        panels = grid(figure, len(ratios), 1, sharex=True, height_ratios=ratios)
        looks = _looks(run.simulated)
        _draw_positions(panels[0], run, looks)
        panels[0].set(ylabel="position [rad]", title=shortened(run.title, 90))
        if compared:
            _draw_residuals(panels[1], run, looks)
        for panel, (name, signals) in zip(panels[1 + compared :], run.panels.items(), strict=True):
            _shade_torque_off(panel, run)
            for label, signal in signals.items():
                panel.plot(run.time, signal, **(MEASURED if label == RECORDED else looks[label]))
            panel.set(ylabel=name)
        panels[-1].set(xlabel="time [s]")
        handles = _fixed_handles([run]) + _simulation_handles(run, looks, longest=80)
        legend_below(figure, handles, ERROR_NOTE if compared else None)
    return figure


def _draw_residuals(panel: Axes, run: RunDrawing, looks: Mapping[str, Look]) -> None:
    _shade_torque_off(panel, run)
    panel.axhline(0.0, color="black", linewidth=0.8)
    for label, position in run.simulated.items():
        panel.plot(run.time, 1e3 * (position - run.measured), **looks[label])
        if label in run.bands:
            half, colour = 1e3 * run.bands[label], looks[label]["color"]
            panel.fill_between(run.time, -half, half, color=colour, alpha=0.13, linewidth=0)
    panel.set(ylabel="simulated −\nmeasured [mrad]")


def draw_overview(runs: Sequence[RunDrawing]) -> Figure:
    """Draw all runs as small multiples, up to four per row, with the errors above each panel."""
    looks = _looks(label for run in runs for label in run.simulated)
    columns = min(4, len(runs))
    handles = [_simulation_handles(run, looks, longest=32) for run in runs]
    narrow = all(len(str(entry.get_label())) <= 20 for entries in handles for entry in entries)
    entry_columns = 2 if narrow else 1
    entry_rows = max(-(-len(run.simulated) // entry_columns) for run in runs)
    width, height, spacing = _overview_layout(-(-len(runs) // columns), columns, 0.30 + 0.17 * entry_rows)
    with drawing(width, height, constrained=False) as figure:
        panels = grid(figure, len(runs), columns, sharex=True, gridspec_kw=spacing)
        for k, (panel, run) in enumerate(zip(panels, runs, strict=True)):
            _draw_positions(panel, run, looks)
            _legend_above(panel, handles[k], shortened(run.title, 36), entry_columns)
            if k % columns == 0:
                panel.set_ylabel("position [rad]")
            if k + columns >= len(runs):
                panel.set_xlabel("time [s]")
        figure.legend(
            handles=_fixed_handles(runs),
            title=ERROR_NOTE if looks else None,
            loc="upper left",
            bbox_to_anchor=(spacing["left"], 1.0 - 0.08 / height),
            borderaxespad=0.0,
            borderpad=0.0,
            alignment="left",
            ncols=3,
        )
    return figure


def _overview_layout(rows: int, columns: int, head: float) -> tuple[float, float, dict[str, float]]:
    """Size and spacing of an overview [inch]; fixed, as the cost of a layout engine grows with the number of panels.

    :param head: space for the name and the errors above each panel [inch].
    """
    panel_width, panel_height, left, right, between, bottom = 3.3, 1.75, 0.75, 0.2, 0.55, 0.50
    top = 0.55 + head
    width = left + columns * panel_width + (columns - 1) * between + right
    height = top + rows * panel_height + (rows - 1) * (head + 0.2) + bottom
    spacing = {
        "left": left / width,
        "right": 1.0 - right / width,
        "top": 1.0 - top / height,
        "bottom": bottom / height,
        "wspace": between / panel_width,
        "hspace": (head + 0.2) / panel_height,
    }
    return width, height, spacing


def _legend_above(panel: Axes, handles: list[Artist], title: str, columns: int) -> None:
    panel.legend(
        handles=handles,
        title=title,
        title_fontproperties={"weight": "bold", "size": 9},
        fontsize=8,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderpad=0.0,
        borderaxespad=0.2,
        labelspacing=0.25,
        columnspacing=1.0,
        handlelength=1.8,
        handletextpad=0.5,
        alignment="left",
        ncols=columns,
    )


def draw_diagram(
    curves: Sequence[DiagramCurve],
    *,
    max_torque: float,
    title: str,
    measured: Mapping[str, Sequence[DiagramPoint]] | None = None,
) -> Figure:
    """Draw drive/backdrive diagrams, one panel for each friction law with its parameters.

    Below the drive boundary the motor moves the joint, above the backdrive boundary the load does; in the grey zone
    between them it stays at rest. Paler lines show higher speeds.

    :param max_torque: upper limit of the motor torque axis [N m].
    :param measured: points with 95 % bars, by label of the curve whose motor gave their torques.
    """
    columns = 2 if len(curves) == 4 else min(3, len(curves))
    rows = -(-len(curves) // columns)
    speeds = sorted({float(speed) for curve in curves for speed in curve.speeds})
    opacity = dict(zip(speeds, np.linspace(1.0, 0.3, len(speeds)), strict=True))
    top = _top_of_diagram(curves, max_torque)
    with drawing(max(6.0, 0.6 + 4.0 * columns), 0.8 + 3.6 * rows, title) as figure:
        for k, panel in enumerate(grid(figure, len(curves), columns, sharex=True, sharey=True)):
            _draw_boundaries(panel, curves[k], opacity, max_torque, top)
            _draw_points(panel, (measured or {}).get(curves[k].label, ()))
            if k % columns == 0:
                panel.set_ylabel(EXTERNAL_TORQUE_LABEL, parse_math=True)
            if k + columns >= len(curves):
                panel.set_xlabel(MOTOR_TORQUE_LABEL, parse_math=True)
        listed = ", ".join(f"{speed:g}" for speed in speeds)
        handles: list[Artist] = [
            Line2D([], [], color=BACKDRIVE_COLOUR, label="backdrive boundary"),
            Line2D([], [], color=DRIVE_COLOUR, label="drive boundary"),
            Patch(color=STATIC_COLOUR, label="static zone"),
            Line2D([], [], **EQUAL_TORQUES),
            Line2D([], [], color="black", alpha=0.5, label=f"paler is faster: {listed} rad/s"),
        ]
        if any((measured or {}).values()):
            handles.append(Line2D([], [], **POINT, label="before motion"))
            handles.append(Line2D([], [], **POINT, markerfacecolor="white", label="in slow motion"))
        legend_below(figure, handles)
    return figure


POINT: Look = {"color": "black", "marker": "o", "markersize": 3.0, "linestyle": "none"}


def _draw_points(panel: Axes, points: Sequence[DiagramPoint]) -> None:
    """Measured torques; the bars are those of the difference of motor and load."""
    for kind, colour in (("drive", DRIVE_COLOUR), ("backdrive", BACKDRIVE_COLOUR)):
        for moving in (False, True):
            shown = [one for one in points if one.kind == kind and (one.speed > 0.0) == moving]
            look = {**POINT, "color": colour, "ecolor": colour, "elinewidth": 0.7}
            if shown:
                panel.errorbar(
                    [abs(one.motor_torque) for one in shown],
                    [abs(one.external_torque) for one in shown],
                    xerr=[1.96 * one.deviation for one in shown],
                    **look,
                    markerfacecolor="white" if moving else colour,
                )


@dataclass(frozen=True)
class CompensationDrawing:
    """One joint of the demo on one trajectory, with and without friction. Times [s], positions [rad].

    :param title: trajectory and gain.
    :param cut: fraction of the distance to the frictionless motion that compensation removes.
    """

    title: str
    time: Array
    goal: Array
    frictionless: Array
    gravity: Array
    compensated: Array
    cut: float


def draw_compensation(drawings: Sequence[CompensationDrawing], columns: int, title: str) -> Figure:
    """Draw motion with gravity compensation only and with friction compensation, in rows of ``columns`` panels."""
    curves: dict[str, Look] = {
        "goal": GOAL,
        "frictionless": {"color": "black", "linewidth": 2.2, "alpha": 0.35, "label": "without friction"},
        "gravity": {"color": COLOURS[1], "label": "gravity compensated"},
        "compensated": {"color": COLOURS[0], "label": "gravity and friction compensated"},
    }
    with drawing(3.7 * columns, 0.8 + 2.5 * -(-len(drawings) // columns), title) as figure:
        for k, panel in enumerate(grid(figure, len(drawings), columns, sharey=True)):
            motion = drawings[k]
            for name, look in curves.items():
                panel.plot(motion.time, getattr(motion, name), **look)
            panel.set_title(f"{motion.title}: {100 * motion.cut:.0f} % closer")
            if k % columns == 0:
                panel.set_ylabel("position [rad]")
            if k + columns >= len(drawings):
                panel.set_xlabel("time [s]")
        legend_below(figure, [Line2D([], [], **look) for look in curves.values()])
    return figure


def _looks(labels: Iterable[str]) -> dict[str, Look]:
    return {
        label: {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        for k, label in enumerate(dict.fromkeys(labels))
    }


def _draw_positions(panel: Axes, run: RunDrawing, looks: Mapping[str, Look]) -> None:
    _shade_torque_off(panel, run)
    panel.plot(run.time, run.goal, **GOAL)
    panel.plot(run.time, run.measured, **MEASURED)
    for label, position in run.simulated.items():
        panel.plot(run.time, position, **looks[label], label=label)
    panel.margins(x=0.01)


def _shade_torque_off(panel: Axes, run: RunDrawing) -> None:
    for begin, end in stretches(np.asarray(run.torque_enable) < 0.5):
        panel.axvspan(run.time[begin], run.time[min(end, len(run.time) - 1)], **TORQUE_OFF)


def _fixed_handles(runs: Sequence[RunDrawing]) -> list[Artist]:
    recorded = [Line2D([], [], **MEASURED)] if any(run.recorded for run in runs) else []
    handles: list[Artist] = [*recorded, Line2D([], [], **GOAL)]
    if any(np.any(run.torque_enable < 0.5) for run in runs):
        handles.append(Patch(**TORQUE_OFF))
    return handles


def _simulation_handles(run: RunDrawing, looks: Mapping[str, Look], longest: int) -> list[Artist]:
    """Legend entries of the simulations, with their errors."""
    return [Line2D([], [], **looks[label], label=run.legend_entry(label, longest)) for label in run.simulated]


def _top_of_diagram(curves: Sequence[DiagramCurve], max_torque: float) -> float:
    """Upper limit of the external torque axis: the backdrive boundary at the lowest speed, if that is close."""
    shown = [curve.backdrive[np.argmin(curve.speeds), curve.motor_torque <= max_torque] for curve in curves]
    highest = max((float(np.max(line, initial=0.0, where=np.isfinite(line))) for line in shown), default=0.0)
    return 1.05 * float(np.clip(highest, max_torque, 2.0 * max_torque))


def _draw_boundaries(
    panel: Axes, curve: DiagramCurve, opacity: Mapping[float, float], max_torque: float, top: float
) -> None:
    slowest = int(np.argmin(curve.speeds))
    if curve.speeds[slowest] == 0.0:
        lower = np.nan_to_num(curve.drive[slowest], nan=0.0)
        upper = np.nan_to_num(curve.backdrive[slowest], nan=math.inf)
        panel.fill_between(
            curve.motor_torque, lower, np.minimum(upper, top), color=STATIC_COLOUR, linewidth=0.0
        )
    panel.plot([0.0, top], [0.0, top], **EQUAL_TORQUES)
    for speed, drive, backdrive in zip(curve.speeds, curve.drive, curve.backdrive, strict=True):
        panel.plot(curve.motor_torque, drive, color=DRIVE_COLOUR, alpha=opacity[float(speed)])
        panel.plot(curve.motor_torque, backdrive, color=BACKDRIVE_COLOUR, alpha=opacity[float(speed)])
    note = " (self-locking)" if np.all(np.isnan(curve.backdrive)) else ""
    panel.set(xlim=(0.0, max_torque), ylim=(0.0, top), title=shortened(curve.label, 44 - len(note)) + note)
