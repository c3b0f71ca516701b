"""Friction of the joints of a robot over its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib.figure import Figure

from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, drawing, grid, legend_of


class FrictionSeries(Protocol):
    """Friction of a joint by run, see :class:`stribeck.identify.robot.drift.JointDrift`."""

    @property
    def joint(self) -> str:
        """Name."""

    @property
    def speed(self) -> float:
        """At which friction is compared [rad/s]."""

    @property
    def earlier(self) -> tuple[float, float]:
        """Friction of the earlier fit, and its standard deviation [N m]."""

    @property
    def friction(self) -> Array:
        """By run (R,) [N m]."""

    @property
    def deviation(self) -> Array:
        """Standard deviation by run (R,) [N m]."""

    @property
    def since(self) -> int | None:
        """Number of the run in which a change was certain."""


def draw_drift(series: Sequence[FrictionSeries], runs: Sequence[str]) -> Figure:
    """A panel for each joint: friction with 95 % intervals run by run, and the earlier value as a band."""
    columns = 3
    rows = -(-len(series) // columns)
    with drawing(11.0, 2.3 * rows + 0.8, "Friction over runs") as figure:
        at = np.arange(len(runs))
        panels = grid(figure, len(series), columns, sharex=True)
        for panel, each in zip(panels, series, strict=True):
            value, spread = each.earlier
            if np.isfinite(spread):
                panel.axhspan(value - 1.96 * spread, value + 1.96 * spread, color="0.88")
            panel.axhline(value, color="0.45", label="earlier fit, 95 %")
            panel.errorbar(
                at,
                each.friction,
                1.96 * each.deviation,
                fmt="o-",
                color=COLOURS[0],
                markersize=3.0,
                label="run, 95 %",
            )
            changed = "" if each.since is None else f", changed since {runs[each.since]}"
            panel.set_title(f"{each.joint}{changed}", fontsize=8)
            panel.set_ylabel(f"N m at {each.speed:.2g} rad/s", fontsize=8)
            panel.set_ylim(bottom=0.0)
            panel.set_xticks(at, [str(name) for name in runs], rotation=60, fontsize=7)
        legend_of(figure, panels[0])
    return figure
