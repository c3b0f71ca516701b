"""Advice for joints of position servos as one HTML file that works offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.advise.advice import JointAdvice, Value
from stribeck.advise.rest import UNSEEN, RestAdvice
from stribeck.report.document import framed
from stribeck.report.markup import Child, element, table
from stribeck.report.plot import Axis, Panel, figure, plain

LOWEST, HIGHEST, COUNT = 0.25, 32.0, 60
"""Range of the gains of a picture, relative to the present one: up to the gain that hunts, within these; and their number."""


def render_advice(
    path: Path, advice: Sequence[JointAdvice], rests: Mapping[str, RestAdvice], versions: Mapping[str, str]
) -> bytes:
    """The content of the HTML file; identical input gives identical bytes.

    :param path: of the file of drives or the robot, as given.
    """
    sections: list[tuple[str, str, list[Element]]] = []
    if advice:
        sections += [
            ("advice", "Advice", _words(advice)),
            ("gains", "Error at rest and gain", [element("div", *map(_curve, advice), class_="figures")]),
            ("numbers", "Numbers", [_numbers(advice)]),
        ]
    if rests:
        sections.append(("standstill", "Joints at rest in the recordings", _rests(rests)))
    about = f"{path.name}. Stribeck {versions.get('stribeck', '')}. 90 % intervals."
    return framed(f"Position servos of {path.stem}", about, sections, {"": 1})


def _words(advice: Sequence[JointAdvice]) -> list[Element]:
    parts = [element("ul", *(element("li", element("b", one.joint), f": {one.text}") for one in advice))]
    notes = dict.fromkeys(note for one in advice for note in one.notes)
    if notes:
        parts += [
            element("p", "Not determined by the data:"),
            element("ul", *(element("li", note) for note in notes)),
        ]
    return parts


def _curve(one: JointAdvice) -> Element:
    """Largest error at rest over the gain, with the gain that hunts."""
    most = min(max(4.0, 1.2 * one.hunts.value / one.kp), HIGHEST)
    relative = np.geomspace(LOWEST, most, COUNT)
    gains, errors = one.kp * relative, 1e3 * one.error.value / relative
    low, high = (1e3 * one.tolerance, float(errors[-1])), float(errors[0])
    panel = Panel(
        Axis(float(gains[0]), float(gains[-1]), "gain", log=True),
        Axis(0.8 * min(low), 1.2 * max(high, low[0]), "largest error at rest [mrad]", log=True),
    )
    tolerance = np.full(len(gains), 1e3 * one.tolerance)
    lines = [
        panel.line(gains, errors, one.joint, class_="trace law law-1"),
        panel.line(gains, tolerance, "wanted", class_="trace"),
    ]
    if gains[0] < one.hunts.value < gains[-1]:
        ends = np.array([0.8 * min(low), high])
        lines.append(panel.line(np.full(2, one.hunts.value), ends, "hunts", class_="trace"))
    caption = (
        f"Gain {one.kp:.3g} now, {_text(one.sufficient)} is sufficient, hunting from {_text(one.hunts)}."
    )
    return figure(246, one.joint, caption, panel.draw(*lines))


def _text(one: Value, scale: float = 1.0, none: str = "no gain") -> str:
    if not math.isfinite(one.value):
        return none
    ends = f" ({scale * one.lower:.3g} to {scale * one.upper:.3g})" if math.isfinite(one.lower) else ""
    return f"{scale * one.value:.3g}{ends}"


def _numbers(advice: Sequence[JointAdvice]) -> Element:
    header: list[Child] = [
        "joint",
        "dead band [mrad]",
        "sag [mrad]",
        "error [mrad]",
        "with offset goals [mrad]",
    ]
    header += ["sufficient gain", "hunts at", "slowest smooth speed [rad/s]", "stairs [mrad]"]
    rows: list[list[Child]] = [
        [
            one.joint,
            _text(one.dead_band, 1e3),
            _text(one.sag, 1e3),
            _text(one.error, 1e3),
            plain(float(f"{1e3 * one.with_offsets:.3g}")),
            _text(one.sufficient),
            _text(one.hunts),
            _text(one.slowest, none="none") if one.slowest.value else "all",
            plain(float(f"{1e3 * one.stair:.3g}")),
        ]
        for one in advice
    ]
    return table(header, rows, class_="parameters")


def _rests(rests: Mapping[str, RestAdvice]) -> list[Element]:
    rows: list[list[Child]] = []
    for name, advice in rests.items():
        one = advice.standstill
        low, high = (2e3 * end for end in one.half_interval)
        rows.append(
            [
                name,
                f"{1e3 * one.dead_band:.3g} ({low:.3g} to {high:.3g})",
                f"{1e3 * one.compliance:.3g}" if one.compliance else "",
                f"{1e3 * advice.sag:.3g}" if one.compliance else "",
                f"{1e3 * one.offset:.3g}",
                str(one.stops),
            ]
        )
    header: list[Child] = [
        "joint",
        "dead band [mrad]",
        "sag [mrad per N m]",
        "largest sag [mrad]",
        "offset [mrad]",
    ]
    words = (element("li", element("b", name), f": {one.text}") for name, one in rests.items())
    return [
        element("ul", *words),
        element("p", f"{UNSEEN}."),
        table([*header, "stops"], rows, class_="parameters"),
    ]
