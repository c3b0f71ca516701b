"""Colour and dashes of each parameter file, the same throughout a report."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from stribeck.evaluate.assessment import Assessed
from stribeck.model.law import LAWS
from stribeck.report.markup import element

LIGHT = ("#0072B2", "#3E9FD4", "#008C67", "#B27A00", "#B4548F", "#C8500A")
DARK = ("#4FA8E0", "#8FD0F7", "#2FC596", "#F0B429", "#E596C4", "#FF8F4D")
"""Okabe and Ito's colours for colour-blind readers, darker or lighter for contrast with the page."""

DASHES = ("none", "7 2.5", "9 2 2 2", "2.5 2", "5 2 1.5 2 1.5 2")
"""Dash patterns; their number has no factor in common with that of the colours, so that 30 files differ."""


def looks_of(files: Sequence[Assessed]) -> dict[str, int]:
    """Index of each file's plot style: that of its law, or its position if two files have the same law."""
    laws = [one.file.law.name for one in files]
    if len(set(laws)) < len(laws):
        return {one.label: k for k, one in enumerate(files)}
    order = list(LAWS)
    return {one.label: order.index(one.file.law.name) for one in files}


def rules(looks: Sequence[int]) -> str:
    """CSS of each look, which hides its lines if its box is not ticked."""
    return "\n".join(
        f".law-{look}{{--law:var(--c{look % len(LIGHT)});--dash:{DASHES[look % len(DASHES)]}}}"
        f"body:has(#show-{look}:not(:checked)) .law-{look}:not(label, label *){{display:none}}"
        for look in looks
    )


def palette(colours: Sequence[str]) -> str:
    """CSS variables of the colours."""
    return "".join(f"--c{k}:{colour};" for k, colour in enumerate(colours))


def swatch(look: int | str) -> Element:
    """A sample of a file's line style, or of that of ``measured`` or ``goal``."""
    classes = ("trace", f"swatch law-{look}") if isinstance(look, int) else (f"trace {look}", "swatch")
    line = element("line", x1=0, x2=34, y1=6, y2=6, class_=classes[0])
    return element("svg", line, class_=classes[1], viewBox="0 0 34 12", aria_hidden="true")
