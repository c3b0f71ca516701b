"""Figures of priors and posteriors: densities, intervals of links and inertias, torques, pairs of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stribeck.identify.posterior.measures import total_variation
from stribeck.model.arrays import Array
from stribeck.report.style import COLOURS, drawing, grid, legend_of, logarithmic

COLUMNS = 4
BINS = 60
LOOKS: Mapping[str, tuple[str, float]] = {"prior": ("0.6", -0.15), "posterior": (COLOURS[0], 0.15)}
"""Colour and horizontal offset from the tick for each set of draws."""

INDEPENDENT = "all samples independent\n(far too narrow)"

MEASURED: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4, "color": "black"}


def draw_densities(
    titles: Sequence[str], prior: Array, posterior: Array | None, independent: Array | None = None
) -> Figure:
    """Draw densities of parameters before and after measurements, (S, P) each, with their total variation distance.

    :param independent: draws of the posterior that treats every sample as independent, for comparison.
    """
    columns = min(COLUMNS, len(titles))
    with drawing(2.6 * columns, 2.0 * -(-len(titles) // columns)) as figure:
        panels = grid(figure, len(titles), columns)
        for k, (panel, title) in enumerate(zip(panels, titles, strict=True)):
            sets = [None if draws is None else draws[:, k] for draws in (prior, posterior, independent)]
            _densities(panel, title, *sets)
        legend_of(figure, panels[0])
    return figure


def _densities(panel: Axes, title: str, *sets: Array | None) -> None:
    shown = [draws for draws in sets if draws is not None]
    ends = np.array([np.quantile(draws, [0.005, 0.995]) for draws in shown])
    edges = np.linspace(ends[:, 0].min(), ends[:, 1].max(), BINS)
    looks: tuple[dict[str, Any], ...] = (
        {"color": "0.7", "label": "prior"},
        {"color": COLOURS[0], "label": "posterior", "histtype": "step", "lw": 1.5},
        {"color": COLOURS[1], "label": INDEPENDENT, "histtype": "step", "lw": 1.0},
    )
    for draws, look in zip(sets, looks, strict=False):
        if draws is not None:
            # Bars are normalised to the tallest, as one narrow density would flatten all others.
            heights = np.histogram(draws, edges)[0]
            panel.hist(edges[:-1], edges.tolist(), weights=heights / max(heights.max(), 1), **look)
    if len(sets) > 1 and sets[0] is not None and sets[1] is not None:
        title += f"\nTVD {total_variation(sets[0], sets[1]):.2f}"
    panel.set_title(title, fontsize=8)
    panel.set_yticks([])
    panel.tick_params(labelsize=7)
    panel.locator_params(axis="x", nbins=4)


def draw_intervals(
    title: str,
    unit: str,
    prior: Array,
    posterior: Array | None,
    measured: Array | None,
    label: str = "measured",
) -> Figure:
    """Draw means with 95 % intervals of quantities (S, P), in the order of the measured values or of the prior's means.

    :param label: what the measured values are called.

    Magnitudes are on a logarithmic axis, where an interval that contains zero extends to the bottom.
    """
    order = np.argsort(np.abs(prior.mean(axis=0) if measured is None else measured))
    with drawing(8.0, 4.0) as figure:
        panel = figure.subplots()
        logarithmic(panel)
        for name, draws in _both(prior, posterior):
            low, high = np.quantile(draws[:, order], [0.025, 0.975], axis=0)
            ends: Array = np.sort(np.abs(np.array([low, high], dtype=np.float64)), axis=0)
            ends[0, low * high <= 0.0] = 0.0
            mean: Array = np.abs(draws[:, order].mean(axis=0))
            place = np.arange(len(mean), dtype=np.float64) + LOOKS[name][1]
            _intervals(panel, name, place, mean, ends, 3.0)
        if measured is not None:
            panel.plot(np.arange(len(order)), np.abs(measured[order]), **MEASURED, label=label)
        foot = np.quantile(np.abs(prior.mean(axis=0)), 0.02)
        panel.set_ylim(bottom=0.2 * foot)
        panel.set(xlabel="number, by size", ylabel=f"size of {title} [{unit}]")
        panel.legend(loc="upper left")
    return figure


def _both(prior: Array, posterior: Array | None) -> Iterator[tuple[str, Array]]:
    yield "prior", prior
    if posterior is not None:
        yield "posterior", posterior


def _intervals(panel: Axes, name: str, place: Array, mean: Array, ends: Array, size: float) -> None:
    """Draw means (P,) with intervals (2, P) as bars."""
    bars = np.maximum([mean - ends[0], ends[1] - mean], 0.0)
    panel.errorbar(place, mean, bars, fmt="o", ms=size, lw=1, color=LOOKS[name][0], label=f"{name}, 95 %")


def draw_links(
    joints: Sequence[str], parts: Mapping[str, tuple[Array, Array | None, Array | None]]
) -> Figure:
    """Draw mechanical parameters of all links with 95 % intervals.

    :param parts: by label with unit: draws of the prior and of the posterior (S, n, k), and the URDF's values (n, k).
    """
    with drawing(9.0, 6.0) as figure:
        panels = grid(figure, 4, 2)
        for panel, (label, (prior, posterior, nominal)) in zip(panels, parts.items(), strict=True):
            count = prior.shape[-1]
            place = np.arange(len(joints))[:, None] + np.linspace(-0.3, 0.3, count) * (count > 1)
            for name, draws in _both(prior, posterior):
                ends = np.quantile(draws, [0.025, 0.975], axis=0).reshape(2, -1)
                shifted = place.ravel() + LOOKS[name][1] / (1.5 * count)
                _intervals(panel, name, shifted, draws.mean(axis=0).ravel(), ends, 2.5)
            if nominal is not None:
                panel.plot(place.ravel(), nominal.ravel(), **MEASURED, label="URDF")
            panel.set_ylabel(label)
            panel.set_xticks(np.arange(len(joints)), joints, rotation=20, fontsize=7)
        legend_of(figure, panels[0])
    return figure


def draw_torques(
    time: Array, joints: Sequence[str], prior: Array, posterior: Array | None, measured: Array | None
) -> Figure:
    """Draw torques of a motion with 95 % intervals, from draws (S, M, n) and measured values (M, n)."""
    with drawing(10.0, 1.9 * -(-len(joints) // 2)) as figure:
        panels = grid(figure, len(joints), 2, sharex=True)
        for j, (panel, joint) in enumerate(zip(panels, joints, strict=True)):
            for name, draws in _both(prior, posterior):
                low, high = np.quantile(draws[:, :, j], [0.025, 0.975], axis=0)
                colour = LOOKS[name][0]
                panel.fill_between(time, low, high, color=colour, alpha=0.5, lw=0, label=f"{name}, 95 %")
            if measured is not None:
                panel.plot(time, measured[:, j], color="black", lw=0.6, label="measured")
            panel.set_ylabel(f"{joint} [N m]", fontsize=8)
        for panel in panels[-2:]:
            panel.set_xlabel("time [s]")
        legend_of(figure, panels[0])
    return figure


def draw_pairs(
    pairs: Sequence[tuple[str, str]], prior: Mapping[str, Array], posterior: Mapping[str, Array]
) -> Figure:
    """Draw samples of two parameters against each other, before and after measurements.

    Where a posterior is long and thin, the data determine only a combination of the two.

    :param prior, posterior: draws (S,) by title.
    """
    columns = min(3, len(pairs))
    with drawing(3.4 * columns, 3.0 * -(-len(pairs) // columns)) as figure:
        panels = grid(figure, len(pairs), columns)
        for panel, (first, second) in zip(panels, pairs, strict=True):
            for name, draws in (("prior", prior), ("posterior", posterior)):
                points: dict[str, Any] = {"ms": 2, "alpha": 0.5, "color": LOOKS[name][0], "label": name}
                panel.plot(draws[first], draws[second], ".", **points)
            panel.set(xlabel=first, ylabel=second)
            panel.locator_params(nbins=5)
        panels[0].legend(markerscale=4, fontsize=7)
    return figure


def draw_error_by_seconds(
    seconds: Sequence[float], posterior: Sequence[float], least_squares: Sequence[float]
) -> Figure:
    """Draw the torque error on the rest of a recording over seconds of training data, as fractions."""
    with drawing(6.0, 4.0) as figure:
        panel = figure.subplots()
        for errors, look, colour, label in (
            (least_squares, "s-", "0.5", "weighted least squares"),
            (posterior, "o-", COLOURS[0], "posterior, URDF as prior"),
        ):
            panel.plot(seconds, 100.0 * np.array(errors), look, color=colour, label=label)
        logarithmic(panel, (1.0, 2.0, 5.0))
        panel.set(xlabel="training data [s]", ylabel="error of torque in the rest of the recording [%]")
        panel.legend()
    return figure
