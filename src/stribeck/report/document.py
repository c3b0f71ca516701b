"""The report as one HTML file that works offline, without scripts, on phones and in print."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.evaluate.assessment import Assessed, Assessment
from stribeck.evaluate.judgement import Judgement
from stribeck.model.law import LAWS
from stribeck.report.error_boxes import error_figure, error_table
from stribeck.report.friction_curves import diagram_figures, friction_figures, residual_figures
from stribeck.report.markup import Child, element, page, table
from stribeck.report.motion import motion
from stribeck.report.origins import digest_table, file_table, recording_table
from stribeck.report.parameter_tables import convergence, parameter_section
from stribeck.report.words import MARKS, runs, title, verdict

Section = tuple[str, str, list[Element]]
"""Anchor, title and content of a section."""

LIGHT = ("#0072B2", "#3E9FD4", "#008C67", "#B27A00", "#B4548F", "#C8500A")
DARK = ("#4FA8E0", "#8FD0F7", "#2FC596", "#F0B429", "#E596C4", "#FF8F4D")
"""Okabe and Ito's colours for colour-blind readers, darker or lighter for contrast with the page."""

DASHES = ("none", "7 2.5", "9 2 2 2", "2.5 2", "5 2 1.5 2 1.5 2")
"""Dash patterns; their number has no factor in common with that of the colours, so that 30 files differ."""

BUDGETS = (
    "The friction budget is the largest torque that friction can oppose. In these figures motor torque and load torque are equal and "
    "opposite, as when a load is held or moved slowly."
)


def render(assessment: Assessment, judgement: Judgement, versions: Mapping[str, str]) -> bytes:
    """The content of the HTML file; identical input gives identical bytes.

    :param versions: versions of the programs used to create the report.
    """
    looks = _looks_of(assessment.files)
    servo = assessment.files[0].file.actuator.title
    heading = f"Friction of {servo}"
    sections = _sections(assessment, judgement, versions, looks)
    files = f"{len(assessment.files)} parameter file{'s' if len(assessment.files) > 1 else ''}"
    about = f"{runs(len(assessment.runs))}, {files}. Stribeck {versions.get('stribeck', '')}."
    script = element("script", _asset("report.js"))
    return framed(heading, about, sections, looks, _legend(assessment, looks), script)


def framed(
    heading: str,
    about: str,
    sections: Sequence[Section],
    looks: Mapping[str, int],
    legend: Element | None = None,
    script: Element | None = None,
) -> bytes:
    """A page: heading and links to the sections, a legend, the sections, and a script."""
    links = element("nav", *(element("a", name, href=f"#{anchor}") for anchor, name, _ in sections))
    main = element(
        "main",
        *(element("section", element("h2", name), *parts, id=anchor) for anchor, name, parts in sections),
    )
    header = element("header", element("h1", heading), element("p", about), links)
    body = element("body", header, legend, main, script)
    return page(element("html", _head(heading, looks), body, lang="en"))


def _head(heading: str, looks: Mapping[str, int]) -> Element:
    """The head of a page: title, style and a policy with which nothing is loaded."""
    style = _asset("report.css").replace("/* light */", _palette(LIGHT)).replace("/* dark */", _palette(DARK))
    script = base64.b64encode(hashlib.sha256(_asset("report.js").encode()).digest()).decode()
    # Nothing is loaded, and only our script runs, even if a file name contains HTML.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{script}'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", heading),
        element("style", style + _rules(list(looks.values()))),
    )


def _asset(name: str) -> str:
    return files("stribeck.report").joinpath(name).read_text(encoding="utf-8")


def _legend(assessment: Assessment, looks: Mapping[str, int]) -> Element:
    entries = [
        element("label", element("input", type="checkbox", id=f"show-{looks[one.label]}", checked="checked"),
                _swatch(looks[one.label]), title(one), class_=f"law-{looks[one.label]}", title="show or hide")
        for one in assessment.files
    ]  # fmt: skip
    fixed = [element("span", _swatch(kind), kind) for kind in ("measured", "goal")]
    return element(
        "div", *entries, *fixed, element("span", element("i", class_="grey"), "torque off"), class_="legend"
    )


def _sections(
    assessment: Assessment, judgement: Judgement, versions: Mapping[str, str], looks: Mapping[str, int]
) -> list[Section]:
    curves = friction_figures(assessment, looks), diagram_figures(assessment, looks)
    recordings = element(
        "details", element("summary", "Recordings"), recording_table(assessment), open="open"
    )
    digests = element("details", element("summary", "Digests"), digest_table(assessment))
    return [
        ("verdict", "Verdict", _verdict(assessment, judgement, looks)),
        ("motion", "Motion", motion(assessment, looks)),
        ("errors", "Errors", [_figures([error_figure(assessment, looks)]), error_table(assessment, looks)]),
        ("friction", "Friction", [element("p", BUDGETS), *map(_figures, curves)]),
        ("parameters", "Parameters", [parameter_section(one, looks[one.label]) for one in assessment.files]),
        ("residuals", "Residuals", [_figures(residual_figures(assessment, looks))]),
        ("search", "Search", convergence(assessment, looks)),
        ("origins", "Versions and data", [file_table(assessment, versions), recordings, digests]),
    ]


def _figures(figures: Sequence[Element]) -> Element:
    return element("div", *figures, class_="figures")


def _verdict(assessment: Assessment, judgement: Judgement, looks: Mapping[str, int]) -> list[Element]:
    items = [
        element("li", element("b", MARKS[tone], class_="mark"), element("span", text), class_=tone)
        for tone, text in verdict(assessment, judgement)
    ]
    header: list[Child] = [
        "law",
        "friction parameters",
        "fitted [mrad]",
        "not fitted [mrad]",
        "determined",
        "compared with the best",
        "verdict on the fit",
    ]
    rows = [_row(one, judgement, looks[one.label]) for one in assessment.files]
    return [element("ul", *items, class_="verdict"), table(header, rows, class_="numbers")]


def _row(one: Assessed, judgement: Judgement, look: int) -> list[Child]:
    outcome = {other.label: other.outcome for other in judgement.comparisons}.get(one.label, "best")
    use = "not stated" if one.file.verdict is None else one.file.verdict.use
    words = {"undecided": "not decided by these runs", "worse": "significantly worse than the best"}
    sure = len(one.standing("determined"))
    searched = sure + len(one.standing("loosely determined", "not determined", "at a bound", "not stated"))
    fitted = one.errors("fitted") or one.errors("not stated")
    note = "" if one.errors("fitted") or not fitted else " (it is not stated which were fitted)"
    return [
        element("span", _swatch(look), title(one), class_=f"law-{look}"),
        str(len(one.file.law.parameter_names)),
        _mean(fitted) + note,
        _mean(one.errors("held out", "not in the fit")),
        f"{sure} of {searched}",
        words.get(outcome, "as accurate as the best" if outcome == "as good" else outcome),
        use,
    ]


def _mean(errors: Mapping[str, float]) -> str:
    return f"{1e3 * np.mean(list(errors.values())):.2f} on {runs(len(errors))}" if errors else "none"


def _looks_of(files: Sequence[Assessed]) -> dict[str, int]:
    """Index of each file's plot style: that of its law, or its position if two files have the same law."""
    laws = [one.file.law.name for one in files]
    if len(set(laws)) < len(laws):
        return {one.label: k for k, one in enumerate(files)}
    order = list(LAWS)
    return {one.label: order.index(one.file.law.name) for one in files}


def _rules(looks: Sequence[int]) -> str:
    """CSS of each look, which hides its lines if its box is not ticked."""
    return "\n".join(
        f".law-{look}{{--law:var(--c{look % len(LIGHT)});--dash:{DASHES[look % len(DASHES)]}}}"
        f"body:has(#show-{look}:not(:checked)) .law-{look}:not(label, label *){{display:none}}"
        for look in looks
    )


def _palette(colours: Sequence[str]) -> str:
    """CSS variables of the colours."""
    return "".join(f"--c{k}:{colour};" for k, colour in enumerate(colours))


def _swatch(look: int | str) -> Element:
    """A sample of a file's line style, or of that of ``measured`` or ``goal``."""
    classes = ("trace", f"swatch law-{look}") if isinstance(look, int) else (f"trace {look}", "swatch")
    line = element("line", x1=0, x2=34, y1=6, y2=6, class_=classes[0])
    return element("svg", line, class_=classes[1], viewBox="0 0 34 12", aria_hidden="true")
