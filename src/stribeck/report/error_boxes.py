"""Errors of each run and law as box plots and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.evaluate.assessment import Assessed, Assessment, Role
from stribeck.report.markup import Child, element, table
from stribeck.report.plot import RIGHT, WIDTH, Axis, Panel, figure
from stribeck.report.words import runs

ROW = 30
"""Height of a row."""

NAMES = 150
"""Width of the row names."""

FEWEST = 5
"""Minimum number of runs for a box; fewer are shown as points."""

GROUPS: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("fitted", ("fitted",)),
    ("not fitted", ("held out", "not in the fit")),
    ("not stated", ("not stated",)),
)
"""Groups of runs with separate boxes, so that fitted and held-out runs are never mixed."""


def error_figure(assessment: Assessment, looks: Mapping[str, int]) -> Element:
    """Draw box plots, one row for each law and group of runs."""
    rows = [
        (one, group, one.errors(*roles))
        for one in assessment.files
        for group, roles in GROUPS
        if one.errors(*roles)
    ]
    highest = 1e3 * max(max(errors.values()) for _, _, errors in rows)
    axis = Axis(0.0, 1.05 * highest, "mean absolute error of each run [mrad]")
    panel = Panel(
        axis, Axis(0.0, 1.0, ""), top=12, height=ROW * len(rows), left=NAMES, width=WIDTH - NAMES - RIGHT
    )
    drawn = [
        _row(panel, k, one, group, errors, looks[one.label]) for k, (one, group, errors) in enumerate(rows)
    ]
    return figure(
        panel.top + panel.height + 44,
        "Error of every run",
        "Points are runs. A box spans the middle half of them, the line in it is their median, and whiskers end at the smallest and the largest; groups of "
        f"fewer than {FEWEST} runs have no box. Broken outlines: not fitted.",
        _frame(panel),
        *drawn,
        kind="wide",
    )


def _frame(panel: Panel) -> Element:
    drawn = panel.draw()
    for ticks in drawn.findall("g"):
        if ticks.get("class") == "ticks y":
            drawn.remove(ticks)
    return drawn


def _row(panel: Panel, k: int, one: Assessed, group: str, errors: Mapping[str, float], look: int) -> Element:
    middle = panel.top + ROW * (k + 0.5)
    values = 1e3 * np.array(list(errors.values()))
    label = one.label if len(one.label) <= 12 else "\N{HORIZONTAL ELLIPSIS}" + one.label[-11:]
    row = element(
        "g",
        element("text", f"{label} {group} ({len(values)})", x=NAMES - 6, y=middle + 4.5, class_="end"),
        class_=f"box law law-{look}" + (" unseen" if group == "not fitted" else ""),
    )
    if len(values) >= FEWEST:
        low, first, median, third, high = panel.across(
            np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])
        ).tolist()
        row.append(element("line", x1=low, x2=high, y1=middle, y2=middle, class_="whisker"))
        row.append(
            element("rect", x=first, y=middle - 9, width=max(third - first, 0.5), height=18, class_="half")
        )
        row.append(element("line", x1=median, x2=median, y1=middle - 9, y2=middle + 9, class_="median"))
    for (name, error), x in zip(errors.items(), panel.across(values).tolist(), strict=True):
        tooltip = element("title", f"{name}: {1e3 * error:.2f} mrad")
        row.append(element("circle", tooltip, cx=x, cy=middle, r=3.2))
    return row


def error_table(assessment: Assessment, looks: Mapping[str, int]) -> Element:
    """Errors with one row per run and one column per law; the smallest error of each run is marked."""
    files = assessment.files
    same = all(one.roles == files[0].roles for one in files)
    header: list[Child] = ["run", "gain", "load [kg m]", *([element("span", "to the fits")] if same else [])]
    header += [element("span", f"{one.label} [mrad]", class_=f"law-{looks[one.label]}") for one in files]
    rows = []
    for run in assessment.runs:
        name, setup = run.log.name, run.log.setup
        smallest = min(one.runs[name].error for one in files)
        row: list[Child] = [name, f"{setup.kp:g}", f"{setup.load:.4g}"]
        row += [files[0].roles[name]] if same else []
        row += [_cell(one, name, smallest, looks[one.label], role=not same) for one in files]
        rows.append(row)
    groups = [(group, roles) for group, roles in GROUPS if files[0].errors(*roles)] if same else []
    rows += [
        _means(files, looks, f"mean of {runs(len(files[0].errors(*roles)))} {group}", roles)
        for group, roles in groups
    ]
    if not same:
        rows.append(_means(files, looks, f"mean of {runs(len(assessment.runs))}", tuple(get_args(Role))))
    return table(header, rows, class_="numbers")


def _means(
    files: Sequence[Assessed], looks: Mapping[str, int], name: str, roles: tuple[Role, ...]
) -> list[Child]:
    cells = [
        element(
            "b", f"{1e3 * np.mean(list(one.errors(*roles).values())):.2f}", class_=f"law-{looks[one.label]}"
        )
        for one in files
    ]
    same = all(one.roles == files[0].roles for one in files)
    return [element("b", name), "", "", *([""] if same else []), *cells]


def _cell(one: Assessed, name: str, smallest: float, look: int, role: bool) -> Element:
    error = one.runs[name].error
    text = f"{1e3 * error:.2f}" + (f" ({one.roles[name]})" if role else "")
    return element("b" if error == smallest else "span", text, class_=f"law-{look}")
