"""Friction over velocity and load, drive/backdrive diagrams, and residuals over velocity, position, temperature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.evaluate.assessment import Assessed, Assessment
from stribeck.model.arrays import Array
from stribeck.report.markup import element
from stribeck.report.plot import Axis, Panel, figure, spanning

BUDGET = "friction budget [N m]"
LOADS = ("without load", "at half the largest load", "at the largest load")
TRENDS = {"velocity": "velocity [rad/s]", "position": "position [rad]", "temperature": "temperature [°C]"}


def friction_figures(assessment: Assessment, looks: Mapping[str, int]) -> list[Element]:
    """Friction of all laws over velocity at three loads, and over load at several speeds."""
    files = assessment.files
    highest = max(
        float(np.max(curves))
        for one in files
        for curves in (one.friction.over_velocity, one.friction.over_load)
    )
    budget = Axis(0.0, 1.05 * max(highest, 1e-6), BUDGET)
    first = files[0].friction
    drawn = []
    for k, torque in enumerate(first.loads):
        title = f"Friction over velocity, {LOADS[k]} ({torque:.3g} N m)"
        lines = [(one, one.friction.velocity, one.friction.over_velocity[k]) for one in files]
        rare = "are slower than {:.3g} rad/s"
        drawn.append(
            _over("velocity [rad/s]", title, lines, looks, budget, assessment.coverage.speed[0], rare)
        )
    for k, speed in enumerate(first.speeds[:2]):
        title = f"Friction over load, {'at rest' if speed == 0.0 else f'at {speed:g} rad/s'}"
        lines = [(one, one.friction.load, one.friction.over_load[k]) for one in files]
        rare, label = "carry less than {:.3g} N m", "external torque, balanced by the motor [N m]"
        drawn.append(_over(label, title, lines, looks, budget, assessment.coverage.load[0], rare))
    return drawn


def _over(
    label: str,
    title: str,
    curves: Sequence[tuple[Assessed, Array, Array]],
    looks: Mapping[str, int],
    budget: Axis,
    often: float,
    rare: str,
) -> Element:
    """Friction of all files over one quantity; ``rare`` says what 95 % of the samples do, at most ``often``."""
    panel = Panel(spanning(label, *(x for _, x, _ in curves), margin=0.0), budget)
    lines = [panel.line(x, y, one.label, class_=_look(one, looks)) for one, x, y in curves]
    note = f"95 % of the samples {rare.format(often)}. In the shaded region the curves are supported by few samples."
    return figure(246, title, note, panel.draw(*_few(panel, often), *lines))


def _few(panel: Panel, often: float) -> list[Element]:
    """Shade the areas outside 95 % of the samples."""
    sides = [(often, panel.x.high)] if often < panel.x.high else []
    sides += [(panel.x.low, -often)] if panel.x.low < -often else []
    ends = np.array([panel.y.low, panel.y.low])
    return [
        panel.band(np.array(side), ends, ends - panel.y.low + panel.y.high, class_="off") for side in sides
    ]


def _look(one: Assessed, looks: Mapping[str, int]) -> str:
    return f"trace law law-{looks[one.label]}"


def diagram_figures(assessment: Assessment, looks: Mapping[str, int]) -> list[Element]:
    """A drive/backdrive diagram for each law, with paler lines for higher speeds."""
    curves = [one.diagram for one in assessment.files]
    reach = float(curves[0].motor_torque[-1])
    backdrive = np.concatenate([curve.backdrive.ravel() for curve in curves])
    backdrive = backdrive[np.isfinite(backdrive)]
    top = min(2.5 * reach, max(reach, float(np.max(backdrive)))) if backdrive.size else reach
    return [_diagram(one, looks, reach, top) for one in assessment.files]


def _diagram(one: Assessed, looks: Mapping[str, int], reach: float, top: float) -> Element:
    curve = one.diagram
    panel = Panel(
        Axis(0.0, reach, "motor torque [N m]"),
        Axis(0.0, top, "opposing external torque [N m]"),
        top=24,
        height=220,
    )
    torque = curve.motor_torque
    # NaN: the motor cannot overcome friction (drive), or no load backdrives the joint (backdrive).
    drive = np.where(np.isfinite(curve.drive), curve.drive, 0.0)
    backdrive = np.where(np.isfinite(curve.backdrive), curve.backdrive, 10.0 * top)
    shades = np.linspace(1.0, 0.3, len(curve.speeds))
    lines = [panel.band(torque, drive[0], backdrive[0], class_="static")]
    for kind, edge in (("drive", curve.drive), ("backdrive", curve.backdrive)):
        lines += [
            panel.line(torque, np.where(np.isfinite(line), line, np.nan), f"{kind}, {speed:g} rad/s",
                       class_=f"trace {kind}", stroke_opacity=f"{shade:.2f}")
            for line, speed, shade in zip(edge, curve.speeds.tolist(), shades.tolist(), strict=True)
        ]  # fmt: skip
    lines.append(panel.line([0.0, reach], [0.0, reach], class_="trace equal"))
    listed = ", ".join(f"{speed:g}" for speed in curve.speeds)
    made = figure(
        286,
        f"Drive and backdrive, {one.label}",
        "Below blue the motor drives the load, above red the load drives the motor; in the grey region the "
        f"joint stays at rest in either direction. Paler: {listed} rad/s. Broken: equal torques.",
        panel.draw(*lines),
    )
    made.set("class", f"law-{looks[one.label]}")
    return made


def residual_figures(assessment: Assessment, looks: Mapping[str, int]) -> list[Element]:
    """Residuals of the motion against velocity, position and temperature."""
    made = []
    for quantity, label in TRENDS.items():
        files = [one for one in assessment.files if quantity in one.trends]
        if not files:
            made.append(element("p", f"No recording contains the {quantity}.", class_="note"))
            continue
        trends = [one.trends[quantity] for one in files]
        x = spanning(label, *(trend.centre for trend in trends))
        y = spanning(
            "simulated \N{MINUS SIGN} measured [mrad]",
            *(1e3 * edge for trend in trends for edge in (trend.low, trend.high)),
            [0.0],
        )
        panel = Panel(x, y)
        content = [panel.line([x.low, x.high], [0.0, 0.0], class_="trace zero")]
        for one, trend in zip(files, trends, strict=True):
            low, high = 1e3 * trend.low, 1e3 * trend.high
            content.append(panel.band(trend.centre, low, high, class_=f"spread law law-{looks[one.label]}"))
            content.append(panel.line(trend.centre, 1e3 * trend.median, one.label, class_=_look(one, looks)))
        note = "Lines: medians. Shaded: the middle 80 %."
        made.append(figure(246, f"Residual against {quantity}", note, panel.draw(*content)))
    return made
