"""The parameters of a fit as one table: plain text, HTML, and rows for a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from stribeck.model.estimate import Estimate
from stribeck.model.verdict import Verdict

HEADER = ("parameter", "value", "±", "unit", "status")

ByJoint = Mapping[str, Mapping[str, Estimate]]
"""Estimates by joint and parameter; the joint is empty where there is one, or for parameters of the whole."""


def rows_of(estimates: ByJoint) -> list[dict[str, Any]]:
    """One row for each parameter; NaN and empty text where something is not stated."""
    rows = []
    for joint, parameters in estimates.items():
        for name, one in parameters.items():
            lower, upper = one.interval or (float("nan"), float("nan"))
            row = {"joint": joint, "parameter": name, "value": one.value, "lower": lower, "upper": upper}
            rows.append(row | {"unit": one.unit, "status": one.status, "reason": one.reason})
    return rows


def _cells(estimates: ByJoint) -> list[list[str]]:
    table = []
    for joint, parameters in estimates.items():
        for name, one in parameters.items():
            half = "" if one.interval is None else f"{0.5 * (one.interval[1] - one.interval[0]):.2g}"
            cells = [name, f"{one.value:.5g}", half, one.unit, one.status]
            table.append([joint, *cells] if any(estimates) else cells)
    return table


def _header(estimates: ByJoint) -> list[str]:
    return [*(["joint"] if any(estimates) else []), *HEADER]


def verdict_lines(verdict: Verdict | None) -> list[str]:
    """The verdict in words."""
    return ["verdict: not stated"] if verdict is None else verdict.lines()


def text_of(title: str, estimates: ByJoint, verdict: Verdict | None) -> str:
    """Title, table and verdict as text."""
    header = _header(estimates)
    rows = [header, *_cells(estimates)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([title, *(line.rstrip() for line in lines), *verdict_lines(verdict)])


def html_of(title: str, estimates: ByJoint, verdict: Verdict | None) -> str:
    """Title, table and verdict as HTML, for notebooks."""

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in _cells(estimates))
    words = "<br>".join(escape(line.strip()) for line in verdict_lines(verdict))
    return (
        f"<p><b>{escape(title)}</b></p><table><thead>{row(_header(estimates), 'th')}</thead><tbody>{body}</tbody></table>"
        f"<p>{words}</p>"
    )
