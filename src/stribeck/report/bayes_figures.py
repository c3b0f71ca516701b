"""Figures of priors and posteriors, like figs. 3 to 6 of seed 003."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stribeck.bayes.measures import total_variation
from stribeck.report.figures import COLOURS, STYLE

Array = npt.NDArray[np.float64]

COLUMNS = 4
BINS = 60
LOOKS: Mapping[str, tuple[str, float]] = {"prior": ("0.6", -0.15), "posterior": (COLOURS[0], 0.15)}
"""Colour, and place beside the tick, of each set of draws."""

INDEPENDENT = "all samples independent\n(far too narrow)"


def draw_densities(
    titles: Sequence[str], prior: Array, posterior: Array | None, independent: Array | None = None
) -> Figure:
    """Densities of parameters before and after, (S, P) each, with their total variation distance (the seed's fig. 3).

    :param independent: draws of the posterior that counts every sample as independent, to see beside it.
    """
    rows = -(-len(titles) // COLUMNS)
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(2.6 * COLUMNS, 2.0 * rows), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for k, (axis, title) in enumerate(zip(axes, titles, strict=False)):
            sets = [None if draws is None else draws[:, k] for draws in (prior, posterior, independent)]
            _densities(axis, title, *sets)
        for axis in axes[len(titles) :]:
            axis.set_axis_off()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=7, loc="outside lower center", ncols=3)
    return figure


def _densities(axis: Axes, title: str, *sets: Array | None) -> None:
    shown = [draws for draws in sets if draws is not None]
    ends = np.array([np.quantile(draws, [0.005, 0.995]) for draws in shown])
    edges = np.linspace(ends[:, 0].min(), ends[:, 1].max(), BINS)
    styles: tuple[dict[str, Any], ...] = (
        {"color": "0.7", "label": "prior"},
        {"color": COLOURS[0], "label": "posterior", "histtype": "step", "lw": 1.5},
        {"color": COLOURS[1], "label": INDEPENDENT, "histtype": "step", "lw": 1.0},
    )
    for draws, style in zip(sets, styles, strict=False):
        if draws is not None:
            # Heights by the tallest bar: one narrow density would flatten all others.
            heights = np.histogram(draws, edges)[0]
            axis.hist(edges[:-1], edges.tolist(), weights=heights / max(heights.max(), 1), **style)
    if len(sets) > 1 and sets[0] is not None and sets[1] is not None:
        title += f"\nTVD {total_variation(sets[0], sets[1]):.2f}"
    axis.set_title(title, fontsize=8)
    axis.set_yticks([])
    axis.tick_params(labelsize=7)
    axis.locator_params(axis="x", nbins=4)


def draw_intervals(
    title: str, unit: str, prior: Array, posterior: Array | None, measured: Array | None
) -> Figure:
    """Means with 95 % intervals of quantities (S, P), in the order of what was measured, else of the prior's means
    (the seed's figs. 5 and 6). Sizes on a logarithmic axis: an interval that holds zero reaches down to its foot.
    """
    order = np.argsort(np.abs(prior.mean(axis=0) if measured is None else measured))
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(8.0, 4.0), layout="constrained")
        axis = figure.subplots()
        _logarithmic(axis, (1.0,))
        for name, draws in (("prior", prior), ("posterior", posterior)):
            if draws is not None:
                _sizes(axis, name, draws[:, order])
        if measured is not None:
            axis.plot(np.arange(len(order)), measured[order], "x", ms=4, color="black", label="measured")
        foot = np.quantile(np.abs(prior.mean(axis=0)), 0.02)
        axis.set_ylim(bottom=0.2 * foot)
        axis.set_xlabel("number, by size")
        axis.set_ylabel(f"size of {title} [{unit}]")
        axis.legend(loc="upper left")
    return figure


def _sizes(axis: Axes, name: str, draws: Array) -> None:
    colour, shift = LOOKS[name]
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    mean = np.abs(draws.mean(axis=0))
    ends = np.sort(np.abs([low, high]), axis=0)
    ends[0, low * high <= 0.0] = 0.0
    bars = np.maximum([mean - ends[0], ends[1] - mean], 0.0)
    place = np.arange(len(mean)) + shift
    axis.errorbar(place, mean, bars, fmt="o", ms=3, lw=1, color=colour, label=f"{name}, 95 %")


def draw_links(
    joints: Sequence[str], parts: Mapping[str, tuple[Array, Array | None, Array | None]]
) -> Figure:
    """Mechanical parameters of all links with 95 % intervals (the seed's fig. 4).

    :param parts: by label with unit, draws of the prior and of the posterior (S, n, k), and what a URDF says (n, k).
    """
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(9.0, 6.0), layout="constrained")
        axes = figure.subplots(2, 2).ravel()
        for axis, (label, (prior, posterior, nominal)) in zip(axes, parts.items(), strict=True):
            count = prior.shape[-1]
            place = np.arange(len(joints))[:, None] + np.linspace(-0.3, 0.3, count) * (count > 1)
            for name, draws in (("prior", prior), ("posterior", posterior)):
                if draws is not None:
                    colour, shift = LOOKS[name]
                    low, high = np.quantile(draws, [0.025, 0.975], axis=0).reshape(2, -1)
                    mean = draws.mean(axis=0).ravel()
                    at = place.ravel() + shift / (1.5 * count)
                    bars = np.maximum([mean - low, high - mean], 0.0)
                    axis.errorbar(at, mean, bars, fmt="o", ms=2.5, lw=1, color=colour, label=f"{name}, 95 %")
            if nominal is not None:
                axis.plot(place.ravel(), nominal.ravel(), "x", ms=4, color="black", label="URDF")
            axis.set_ylabel(label)
            axis.set_xticks(np.arange(len(joints)), joints, rotation=20, fontsize=7)
        axes[0].legend(fontsize=7)
    return figure


def draw_torques(
    time: Array, joints: Sequence[str], prior: Array, posterior: Array | None, measured: Array | None
) -> Figure:
    """Torques of a motion with 95 % intervals: draws (S, M, n), and what was measured (M, n)."""
    rows = -(-len(joints) // 2)
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(10.0, 1.9 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
        for j, (axis, joint) in enumerate(zip(axes, joints, strict=False)):
            for name, draws in (("prior", prior), ("posterior", posterior)):
                if draws is not None:
                    low, high = np.quantile(draws[:, :, j], [0.025, 0.975], axis=0)
                    axis.fill_between(
                        time, low, high, color=LOOKS[name][0], alpha=0.5, lw=0, label=f"{name}, 95 %"
                    )
            if measured is not None:
                axis.plot(time, measured[:, j], color="black", lw=0.6, label="measured")
            axis.set_ylabel(f"{joint} [N m]", fontsize=8)
        for axis in axes[-2:]:
            axis.set_xlabel("time [s]")
        for axis in axes[len(joints) :]:
            axis.set_axis_off()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=3)
    return figure


def draw_pairs(
    pairs: Sequence[tuple[str, str]], prior: Mapping[str, Array], posterior: Mapping[str, Array]
) -> Figure:
    """Draws of two parameters against each other, before and after: where a posterior is long and thin, data tell them only
    together.

    :param prior, posterior: by title, (S,).
    """
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(3.4 * columns, 3.0 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis, (first, second) in zip(axes, pairs, strict=False):
            for name, draws in (("prior", prior), ("posterior", posterior)):
                axis.plot(draws[first], draws[second], ".", ms=2, alpha=0.5, color=LOOKS[name][0], label=name)
            axis.set_xlabel(first)
            axis.set_ylabel(second)
            axis.locator_params(nbins=5)
        for axis in axes[len(pairs) :]:
            axis.set_axis_off()
        axes[0].legend(markerscale=4, fontsize=7)
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
        _logarithmic(axis, (1.0, 2.0, 5.0))
        axis.set_xlabel("seconds of training data")
        axis.set_ylabel("error of torque on the rest [%]")
        axis.legend()
    return figure


def _logarithmic(axis: Axes, steps: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers: the style has no mathematics in its text."""
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=steps))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
