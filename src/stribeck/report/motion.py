"""Figures of measured and simulated motion for each run."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

import numpy as np

from stribeck.evaluate.assessment import Assessed, AssessedRun, Assessment
from stribeck.model.arrays import Array
from stribeck.report.markup import element
from stribeck.report.plot import Panel, figure, spanning, stretches, thinned
from stribeck.report.words import mrad

MOST_POINTS = 1500
"""Maximum number of points per line, enough for every sample of a run of 6 s ..."""

POINTS = 400_000
"""... and maximum number of points of all lines of a report together."""

FEWEST_POINTS = 120

SHOWN = 24
"""Number of runs shown at once; the others are collapsed."""

TALL = 1.6
"""Simulations are clipped beyond the measured range extended by this fraction of it."""


def motion(assessment: Assessment, looks: Mapping[str, int]) -> list[Element]:
    """A figure of every run, with a note on how many samples are drawn."""
    lines = len(assessment.runs) * (2 + 2 * len(assessment.files))
    most = int(np.clip(POINTS // lines, FEWEST_POINTS, MOST_POINTS))
    figures = [_run(run, assessment.files, looks, most) for run in assessment.runs]
    longest = max(len(run.time) for run in assessment.runs)
    note = (
        f"Lines show at most {most} of {longest} samples, including the extremes of every interval."
        if most < longest
        else "Every sample is drawn."
    )
    shown = [element("p", note, class_="note"), element("div", *figures[:SHOWN], class_="figures")]
    if len(figures) > SHOWN:
        more = element("div", *figures[SHOWN:], class_="figures")
        shown.append(element("details", element("summary", f"{len(figures) - SHOWN} more runs"), more))
    return shown


def _run(run: AssessedRun, files: tuple[Assessed, ...], looks: Mapping[str, int], most: int) -> Element:
    name = run.log.name
    measured = np.where(run.valid, run.measured, np.nan)
    low, high = float(np.nanmin(measured)), float(np.nanmax(measured))
    margin = TALL * max(high - low, 0.05)
    simulated = [np.clip(one.runs[name].position, low - margin, high + margin) for one in files]
    time = spanning("time [s]", run.time, margin=0.005)
    position = Panel(time, spanning("position [rad]", measured, run.goal, *simulated), top=24, height=160)
    residuals = [1e3 * one.runs[name].residual for one in files]
    limit = 1e3 * margin
    clipped = [np.clip(residual, -limit, limit) for residual in residuals]
    axis = spanning("simulated \N{MINUS SIGN} measured [mrad]", *clipped, [0.0])
    left = Panel(time, axis, top=214, height=86)
    upper = [
        *_torque_off(position, run),
        _line(position, run.time, run.goal, most, "goal", class_="trace goal"),
        _line(position, run.time, measured, most, "measured", class_="trace measured"),
    ]
    lower = [left.line(run.time[[0, -1]], [0.0, 0.0], class_="trace zero")]
    errors = []
    for one, residual in zip(files, residuals, strict=True):
        simulated_run = one.runs[name]
        look = f"trace law law-{looks[one.label]}"
        covered = ""
        if np.all(np.isfinite(band := simulated_run.band)):
            kept = thinned(band, most)
            half, valid = 1e3 * np.minimum(band, margin), np.isfinite(residual)
            shading = f"spread law-{looks[one.label]}"
            lower.append(left.band(simulated_run.time[kept], -half[kept], half[kept], class_=shading))
            covered = f", {np.mean(np.abs(residual[valid]) <= 1e3 * band[valid]):.0%} within its 90 % band"
        upper.append(
            _line(position, simulated_run.time, simulated_run.position, most, one.label, class_=look)
        )
        lower.append(_line(left, simulated_run.time, residual, most, one.label, class_=look))
        role = "" if one.roles[name] == "fitted" else f", {one.roles[name]}"
        text = f"{one.label}: {mrad(simulated_run.error)}{role}{covered}"
        errors.append(element("span", text, class_=f"entry law-{looks[one.label]}"))
    drawn = position.draw(*upper, x_labels=False), left.draw(*lower)
    return figure(342, name, element("span", *errors), *drawn, kind="zoom")


def _line(panel: Panel, time: Array, values: Array, most: int, name: str, **look: str) -> Element:
    kept = thinned(values, most)
    return panel.line(time[kept], values[kept], name, **look)


def _torque_off(panel: Panel, run: AssessedRun) -> list[Element]:
    ends, last = np.array([panel.y.low, panel.y.low]), len(run.time) - 1
    return [
        panel.band(run.time[[start, min(end, last)]], ends, ends - panel.y.low + panel.y.high, class_="off")
        for start, end in stretches(run.torque_enable < 0.5)
    ]
