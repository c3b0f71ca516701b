"""Figures of priors and posteriors, like figs. 3 to 6 of seed 003."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stribeck.bayes.measures import total_variation
from stribeck.report.figures import COLOURS, STYLE

Array = npt.NDArray[np.float64]

COLUMNS = 4
BINS = 60


def draw_densities(names: Sequence[str], prior: Array, posterior: Array | None) -> Figure:
    """Densities of parameters before and after, (S, P) each, with their total variation distance."""
    rows = -(-len(names) // COLUMNS)
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(2.6 * COLUMNS, 2.0 * rows), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for k, (axis, name) in enumerate(zip(axes, names, strict=False)):
            low, high = np.quantile(prior[:, k], [0.005, 0.995])
            if posterior is not None:
                ends = np.quantile(posterior[:, k], [0.005, 0.995])
                low, high = min(low, ends[0]), max(high, ends[1])
            edges = np.linspace(low, high, BINS)
            axis.hist(prior[:, k], edges, density=True, color="0.7", label="prior")
            title = name
            if posterior is not None:
                axis.hist(
                    posterior[:, k],
                    edges,
                    density=True,
                    histtype="step",
                    color=COLOURS[0],
                    lw=1.5,
                    label="posterior",
                )
                title += f"\nTVD {total_variation(prior[:, k], posterior[:, k]):.2f}"
            axis.set_title(title, fontsize=8)
            axis.set_yticks([])
            axis.tick_params(labelsize=7)
            axis.locator_params(axis="x", nbins=4)
        for axis in axes[len(names) :]:
            axis.set_axis_off()
        axes[0].legend(fontsize=7)
    return figure


def draw_intervals(
    title: str, unit: str, prior: Array, posterior: Array | None, measured: Array | None
) -> Figure:
    """Means with 95 % intervals of quantities (S, P), in the order of what was measured, else of the prior's means."""
    order = np.argsort(np.abs(prior.mean(axis=0) if measured is None else measured))
    place = np.arange(len(order))
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(8.0, 4.0), layout="constrained")
        axis = figure.subplots()
        for draws, label, colour, shift in (
            (prior, "prior", "0.6", -0.15),
            (posterior, "posterior", COLOURS[0], 0.15),
        ):
            if draws is None:
                continue
            low, high = np.abs(np.quantile(draws[:, order], [0.025, 0.975], axis=0))
            mean = np.abs(draws[:, order].mean(axis=0))
            bars = np.maximum([mean - np.minimum(low, high), np.maximum(low, high) - mean], 0.0)
            axis.errorbar(
                place + shift, mean, bars, fmt="o", ms=3, lw=1, color=colour, label=f"{label}, 95 %"
            )
        if measured is not None:
            axis.plot(place, measured[order], "x", ms=4, color="black", label="measured")
        axis.set_yscale("log")
        axis.set_xlabel("number, by size")
        axis.set_ylabel(f"|{title}| [{unit}]")
        axis.legend()
    return figure


def draw_error_by_seconds(
    seconds: Sequence[float], posterior: Sequence[float], least_squares: Sequence[float]
) -> Figure:
    """Error of torque on the rest of a recording against seconds of training data, as fractions."""
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        axis = figure.subplots()
        axis.plot(seconds, 100.0 * np.array(least_squares), "s-", color="0.5", label="weighted least squares")
        axis.plot(
            seconds, 100.0 * np.array(posterior), "o-", color=COLOURS[0], label="posterior, URDF as prior"
        )
        axis.set_yscale("log")
        axis.set_xlabel("seconds of training data")
        axis.set_ylabel("error of torque on the rest [%]")
        axis.legend()
    return figure


def save(figure: Figure, path: Path) -> Path:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120)
    return path
