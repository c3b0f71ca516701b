"""Figure of the simulated experiment: cost on training and validation over the iterations, and the noise floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from stribeck.errors import ConfigError
from stribeck.report.style import COLOURS, DASHES, drawing

FloatArray = npt.NDArray[np.float64]

FLOOR: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (2, 2))}


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Cost on one trajectory.

    :param costs: of each iterate (I,), from the start on.
    :param floor: what noise alone costs.
    """

    costs: FloatArray
    floor: float


def draw_costs(curves: Mapping[str, CostCurve], title: str) -> Figure:
    """Costs over the iterations, with a logarithmic axis and the noise floors.

    :param curves: by name of the trajectory.
    :raises ConfigError: without a curve, or for costs that are not positive.
    """
    if not curves:
        raise ConfigError("no costs to draw: run the experiment first")
    bad = [name for name, curve in curves.items() if not (np.all(curve.costs > 0.0) and len(curve.costs))]
    if bad:
        raise ConfigError(f"costs of {', '.join(bad)} are not all positive: nothing for a logarithmic axis")
    with drawing(6.4, 3.8) as figure:
        panel = figure.subplots()
        for k, (name, curve) in enumerate(curves.items()):
            label = f"{name}: {curve.costs[0]:.3g} to {curve.costs[-1]:.4g}, floor {curve.floor:.4g}"
            look = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
            panel.plot(np.arange(len(curve.costs)), curve.costs, label=label, **look)
        for k, curve in enumerate(curves.values()):
            panel.axhline(curve.floor, **FLOOR, label="noise floor" if k == 0 else None)
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_major_formatter(ScalarFormatter())
        panel.yaxis.set_minor_locator(LogLocator(subs=()))
        panel.set(xlabel="iteration", ylabel="cost L [1]", title=title)
        panel.set_xlim(left=0)
        panel.legend(loc="upper right", fontsize=8)
    return figure
