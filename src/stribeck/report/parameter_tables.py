"""Tables of parameters with intervals, bounds and correlations, and the convergence of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from xml.etree.ElementTree import Element

from stribeck.evaluate.assessment import Assessed, AssessedParameter, Assessment
from stribeck.model.provenance import SearchRecord
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.report.markup import Child, element, table
from stribeck.report.plot import Axis, Panel, figure, plain, spanning
from stribeck.report.words import mrad, standing, title

CELL = 27
"""Side length of a cell of a correlation matrix."""

STRIP = 110
"""Width of the drawing of an interval within its search range."""

CLOSE = 0.95
"""Correlations from this value on are reported, as only a combination of the two parameters is determined."""

NOT_THERE = "Not in this file."


def parameter_section(one: Assessed, look: int) -> Element:
    """Values, intervals, bounds and correlations of the parameters in one file."""
    return element(
        "details",
        element("summary", f"{title(one)}: {one.file.law.title}"),
        _parameters(one),
        *_statements(one),
        *_minima(one),
        *_correlation(one),
        class_=f"law-{look}",
        open="open",
    )


def _parameters(one: Assessed) -> Element:
    levels = {f"{100 * estimate.confidence:g} % " for estimate in one.file.stated.values()}
    level = f"{levels.pop() if len(levels) == 1 else ''}interval"
    header: list[Child] = ["parameter", "value", level, "within the search range", "status"]
    return table(header, [_row(known) for known in one.known], class_="parameters")


def _row(known: AssessedParameter) -> list[Child]:
    symbol = FRICTION_PARAMETERS[known.name].symbol if known.name in FRICTION_PARAMETERS else ""
    name = element("span", element("code", known.name), f" {symbol}" if symbol else "")
    ends = [plain(float(f"{end:.3g}")) for end in known.interval or ()]
    look = "sure" if known.standing in ("determined", "fixed") else "unsure"
    status = element("span", standing(known), class_=look)
    return [name, _value(known.value, known.unit), " to ".join(ends) or "none", _strip(known), status]


def _value(value: float, unit: str) -> str:
    unit = unit.replace("^2", "\N{SUPERSCRIPT TWO}")
    return plain(float(f"{value:.4g}")) + (f" {unit}" if unit != "1" else "")


def _strip(known: AssessedParameter) -> Child:
    """Draw the search range with the interval and the value in it."""
    if known.bounds is None:
        return "not searched" if known.standing == "fixed" else "not stated"
    low, high = known.bounds
    axis = Axis(low, high, "")
    ends = known.interval or (known.value, known.value)
    first, last, value = (axis.fraction([*ends, known.value]).clip(0.0, 1.0) * STRIP).tolist()
    drawing = element(
        "svg",
        element("line", x1=3, x2=STRIP + 3, y1=8, y2=8, class_="range"),
        element("rect", x=first + 3, y=4, width=max(last - first, 0.1), height=8, class_="interval")
        if known.interval
        else None,
        element("circle", cx=value + 3, cy=8, r=3.5, class_="value"),
        viewBox=f"0 0 {STRIP + 6} 16",
        class_="strip",
        aria_hidden="true",
    )
    return element("span", drawing, element("small", f"{plain(low)} to {plain(high)}"))


def _statements(one: Assessed) -> list[Element]:
    heading = element("h4", "Not identifiable from these data")
    if not one.file.stated:
        return [
            heading,
            element("p", "This file contains values only: no intervals, no bounds, no data, no search."),
        ]
    if not one.file.statements:
        return [heading, element("p", "The file states nothing about this.")]
    return [heading, element("ul", *(element("li", text) for text in one.file.statements))]


def _minima(one: Assessed) -> list[Element]:
    heading = element("h4", "Minima with the same error")
    minima = one.file.provenance.search.minima if one.file.provenance else ()
    if not minima:
        return [heading, element("p", NOT_THERE)]
    if len(minima) == 1:
        return [heading, element("p", "No search ended at another minimum with the same error.")]
    errors = [minimum.error for minimum in minima]
    text = (
        f"{len(minima)} distinct minima with losses within 1 %, corresponding to constant errors of {mrad(min(errors))} to {mrad(max(errors))}. The data do "
        "not determine the parameters in which they differ:"
    )
    units = {known.name: known.unit for known in one.known}
    header: list[Child] = ["parameter", "best", "lowest", "highest"]
    rows: list[list[Child]] = []
    for name, value in minima[0].values.items():
        values = [minimum.values.get(name, value) for minimum in minima]
        rows.append(
            [
                element("code", name),
                *(_value(v, units.get(name, "1")) for v in (value, min(values), max(values))),
            ]
        )
    return [heading, element("p", text), table(header, rows, class_="numbers")]


def _correlation(one: Assessed) -> list[Element]:
    heading = element("h4", "Correlation")
    correlation = one.file.correlation
    if correlation is None:
        # A file with convergence data also has correlations, if they could be computed.
        complete = bool(_searched(one).convergence)
        return [
            heading,
            element("p", "The data do not distinguish any of the parameters." if complete else NOT_THERE),
        ]
    names, matrix = correlation.names, correlation.matrix
    close = [
        f"{names[i]} and {names[j]} ({plain(round(matrix[i][j], 3))})"
        for i, j in combinations(range(len(names)), 2)
        if abs(matrix[i][j]) >= CLOSE
    ]
    text = (
        "Hardly distinguishable; only a combination of them is determined: " + "; ".join(close) + "."
        if close
        else f"No two parameters have a correlation of {CLOSE:g} or more."
    )
    left_out = [known.name for known in one.known if known.name not in names and known.standing != "fixed"]
    if left_out:
        text += f" At a bound, or without effect on the motion, and therefore not included: {', '.join(left_out)}."
    return [heading, element("p", text), _matrix(names, matrix)]


def _matrix(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Element:
    left, size = 235, CELL * len(names)
    cells = []
    for i, name in enumerate(names):
        y = CELL * (i + 1)
        cells.append(element("text", f"{name}  {i + 1}", x=left - 6, y=y + 18, class_="end"))
        cells.append(element("text", str(i + 1), x=left + CELL * (i + 0.5), y=18, class_="middle"))
        cells += [
            _cell(left + CELL * j, y, matrix[i][j], f"{name}, {other}") for j, other in enumerate(names)
        ]
    width = left + size + 4
    drawing = element(
        "svg",
        *cells,
        viewBox=f"0 0 {width} {size + CELL + 4}",
        width=width,
        role="img",
        aria_label="correlation of parameters",
        class_="matrix",
    )
    return element("div", drawing, class_="scroll", tabindex="0")


def _cell(x: float, y: float, value: float, names: str) -> Element:
    text = f"{abs(value):.2f}".removeprefix("0") if abs(value) < 0.995 else "1"
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    return element(
        "g",
        element("title", f"{names}: {value:.3f}"),
        element(
            "rect", x=x, y=y, width=CELL - 1, height=CELL - 1, class_="minus" if value < 0 else "plus",
            fill_opacity=f"{abs(value):.2f}",
        ),
        element("text", sign + text, x=x + CELL / 2, y=y + 17, class_="tiny" + (" strong" if abs(value) > 0.6 else "")),
    )  # fmt: skip


def convergence(assessment: Assessment, looks: Mapping[str, int]) -> list[Element]:
    """Convergence and outcome of the searches."""
    rows: list[list[Child]] = []
    for one in assessment.files:
        search = _searched(one)
        found = (search.method, search.seed, search.evaluations, search.outcome, search.clusters)
        rows.append([title(one), *("not stated" if value in ("", None) else str(value) for value in found)])
    header: list[Child] = [
        "law",
        "method",
        "seed",
        "evaluations",
        "how it ended",
        "independent for intervals",
    ]
    courses = [(one, _searched(one).convergence) for one in assessment.files if _searched(one).convergence]
    missing = [title(one) for one in assessment.files if one not in [other for other, _ in courses]]
    made = [table(header, rows)]
    if missing:
        text = f"The course of the search is not in the file of {', '.join(missing)}."
        made.insert(0, element("p", text, class_="note"))
    if courses:
        made.insert(0, element("div", _course(courses, looks), class_="figures"))
    return made


def _course(
    told: Sequence[tuple[Assessed, Sequence[tuple[float, float]]]], looks: Mapping[str, int]
) -> Element:
    counts = [max(count, 1.0) for _, course in told for count, _ in course]
    errors = [1e3 * error for _, course in told for _, error in course]
    # The axis ends shortly after the last improvement, as most searches continue long after it.
    ends = [max(float(_searched(one).evaluations or 1), course[-1][0]) for one, course in told]
    x = Axis(0.9 * min(counts), 1.1 * max(*ends, *counts), "evaluations", log=True)
    panel = Panel(x, spanning("error equivalent to the loss [mrad]", errors))
    lines = []
    for (one, course), end in zip(told, ends, strict=True):
        steps = [(max(count, 1.0), 1e3 * error) for count, error in course]
        corners = [
            corner
            for (_, before), (count, after) in zip(
                [steps[0], *steps], [*steps, (end, steps[-1][1])], strict=True
            )
            for corner in ((count, before), (count, after))
        ]
        count, error = zip(*corners, strict=True)
        lines.append(panel.line(count, error, one.label, class_=f"trace law law-{looks[one.label]}"))
    return figure(
        246,
        "Best point so far",
        "Error of whole runs. The loss is a smoothed absolute error; shown is the constant error with the same loss, which is "
        "slightly larger than the mean absolute error of the motion.",
        panel.draw(*lines),
    )


def _searched(one: Assessed) -> SearchRecord:
    return one.file.provenance.search if one.file.provenance else SearchRecord()
