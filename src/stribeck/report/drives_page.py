"""A file of drives as one HTML file that works offline: verdicts, friction and parameters of all joints, origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.evaluate.draws import LEVEL, DriveFriction
from stribeck.files.drives import Drives
from stribeck.identify.common.machine_motion import MachineMotion, errors_of
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive
from stribeck.model.provenance import Provenance
from stribeck.model.verdict import Verdict
from stribeck.report.document import framed
from stribeck.report.markup import Child, element, table
from stribeck.report.plot import Axis, Panel, figure, plain, spanning

MARKS = {"usable": "good", "doubtful": "warning", "unusable": "bad"}
"""Classes of the style sheet for verdicts."""


def render_drives(
    path: Path,
    content: Drives,
    friction: Mapping[str, DriveFriction],
    versions: Mapping[str, str],
    motions: Sequence[MachineMotion] = (),
) -> bytes:
    """The content of the HTML file; identical input gives identical bytes.

    :param path: of the file of drives, as given.
    :param friction: of each joint.
    :param versions: versions of the programs used to create the report.
    :param motions: recordings that the drives predict.
    """
    name = content.machine.name or path.stem
    sections = [
        ("verdict", "Verdict", _verdicts(content)),
        *([("recordings", "Recordings", _recordings(motions))] if motions else []),
        ("friction", "Friction", _friction(content, friction)),
        ("parameters", "Parameters", _parameters(content)),
        ("origin", "Origin", [_origin(content.provenance, versions)]),
    ]
    joints = f"{len(content.joints)} joint{'' if len(content.joints) == 1 else 's'}"
    about = f"{joints}, {path.name}. Stribeck {versions.get('stribeck', '')}."
    return framed(f"Friction of {name}", about, sections, {"": 1})


def _verdicts(content: Drives) -> list[Element]:
    parts = []
    if content.verdict is not None:
        parts.append(_reasons(content.verdict))
    header: list[Child] = ["joint", "law", "error", "on runs left out", "verdict"]
    rows: list[list[Child]] = []
    for name, drive in content.joints.items():
        loss = drive.loss
        errors = [
            "not stated" if value is None else f"{plain(float(f'{value:.3g}'))} {loss.unit}"
            for value in (loss.train, loss.validation)
        ]
        use = "not stated" if drive.verdict is None else drive.verdict.use
        rows.append([name or "joint", f"{drive.law.name.upper()} {drive.law.title}", *errors, use])
    if rows:
        parts.append(table(header, rows, class_="numbers"))
    return parts


def _recordings(motions: Sequence[MachineMotion]) -> list[Element]:
    """Errors of the predictions, by recording and joint."""
    torque = motions[0].quantity == "torque"
    parts: list[tuple[str, Sequence[MachineMotion]]] = [(one.name, [one]) for one in motions]
    if len(motions) > 1:
        parts.append(("all recordings", motions))
    rows: list[list[Child]] = []
    for name, some in parts:
        cells = []
        for error in errors_of(some).values():
            text = "did not move" if np.isnan(error.rms) else f"{error.rms:.3g} {error.unit}"
            cells.append(f"{text}, {100.0 * error.relative:.1f} %" if np.isfinite(error.relative) else text)
        rows.append([name, *cells])
    text = (
        "Root mean square error of the torque of each joint in motion, and its ratio to the measured torque."
        if torque
        else "Root mean square error of the position of each joint, simulated from the goals alone."
    )
    return [element("p", text), table(["recording", *motions[0].joints], rows, class_="numbers")]


def _reasons(verdict: Verdict) -> Element:
    lines = [(reason.use, reason.text) for reason in verdict.reasons] or [
        ("usable", "Nothing speaks against it.")
    ]
    return element(
        "ul",
        *(
            element("li", element("b", use, class_="mark"), element("span", text), class_=MARKS[use])
            for use, text in lines
        ),
        class_="verdict",
    )


def _friction(content: Drives, friction: Mapping[str, DriveFriction]) -> list[Element]:
    if not content.joints:
        return [element("p", "No joint of this file has a drive.")]
    note = f"Friction against motion, without load; the band contains {100 * LEVEL:g} % of random parameter sets from the intervals."
    figures = [_curve(name, content.joints[name], curve) for name, curve in friction.items()]
    return [element("p", note), element("div", *figures, class_="figures")]


def _curve(name: str, drive: Drive, curve: DriveFriction) -> Element:
    speed, torque = (
        ("speed [rad/s]", "friction [N m]")
        if drive.actuator.units == "rotary"
        else ("speed [m/s]", "friction [N]")
    )
    top = curve.budget if curve.high is None else curve.high
    panel = Panel(
        spanning(speed, curve.speed, margin=0.0),
        Axis(0.0, 1.05 * max(float(top.max()), float(curve.budget.max()), 1e-9), torque),
    )
    lines = [panel.line(curve.speed, curve.budget, name, class_="trace law law-1")]
    if curve.low is not None and curve.high is not None:
        lines.insert(0, panel.band(curve.speed, curve.low, curve.high, class_="static"))
    caption = "" if curve.low is not None else "No interval is stated."
    return figure(246, name or "joint", caption, panel.draw(*lines))


def _parameters(content: Drives) -> list[Element]:
    parts = [
        _table(name or "joint", drive.estimates, drive.statements) for name, drive in content.joints.items()
    ]
    if content.machine.estimates:
        parts.append(_table(content.machine.name or "machine", content.machine.estimates, ()))
    return parts


def _table(title: str, estimates: Mapping[str, Estimate], statements: tuple[str, ...]) -> Element:
    header: list[Child] = ["parameter", "value", "interval", "unit", "status"]
    rows: list[list[Child]] = []
    for name, one in estimates.items():
        ends = "" if one.interval is None else " to ".join(plain(float(f"{end:.3g}")) for end in one.interval)
        status = element(
            "span",
            one.status + (f": {one.reason}" if one.reason else ""),
            class_="sure" if one.status in ("determined", "fixed") else "unsure",
        )
        rows.append([element("code", name), plain(float(f"{one.value:.4g}")), ends, one.unit, status])
    return element(
        "details",
        element("summary", title),
        table(header, rows, class_="parameters"),
        *([element("ul", *(element("li", text) for text in statements))] if statements else []),
        open="open",
    )


def _origin(provenance: Provenance | None, versions: Mapping[str, str]) -> Element:
    rows: list[list[Child]] = []
    if provenance is not None:
        search, runs = provenance.search, provenance.runs
        rows += [
            ["method", search.method or "not stated"],
            ["search", search.status or search.outcome or "not stated"],
            ["fitted runs", ", ".join(runs.train) or "not stated"],
            ["runs left out", ", ".join(runs.validation) or "none"],
        ]
        rows += [[f"version of {name}, fit", version] for name, version in provenance.versions.items()]
    rows += [[f"version of {name}, this report", version] for name, version in versions.items()]
    return table(["", ""], rows, class_="origins")
