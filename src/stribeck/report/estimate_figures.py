"""Pictures of an estimation: signals with states, residuals, convergence, method parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]


class Drawn(NamedTuple):
    """A trajectory in a picture.

    :param signals: at all steps (N, ns).
    :param errors: predicted minus measured, where and when something was measured (N, ns), else NaN.
    """

    signals: Array
    errors: Array


LOOKS = {"simulated": ("simulated from the first sample", "C1"), "estimated": ("estimated states", "C0")}


def draw_signals(
    path: Path,
    title: str,
    time: Array,
    names: Sequence[str],
    units: Sequence[str],
    measured: Array,
    drawn: Mapping[str, Drawn],
    band: Array,
) -> None:
    """Measured, estimated and simulated signals of a run, and below what is missed.

    :param measured: (N, ns), NaN where nothing was.
    :param drawn: ``simulated`` and, for fitted runs, ``estimated``.
    :param band: standard deviation of the estimated signals (N, ns).
    """
    count = len(names)
    figure, axes = plt.subplots(
        2 * count, 1, figsize=(9, 2.6 * 2 * count), sharex=True, layout="constrained", squeeze=False
    )
    figure.suptitle(title)
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        axis, below = axes[2 * k, 0], axes[2 * k + 1, 0]
        axis.plot(time, measured[:, k], ".", markersize=3, color="0.6", label="measured")
        if "estimated" in drawn:
            below.fill_between(
                time,
                -2 * band[:, k],
                2 * band[:, k],
                color="C0",
                alpha=0.25,
                linewidth=0,
                label="± 2 deviations",
            )
        for word, one in drawn.items():
            label, color = LOOKS[word]
            dashes = "--" if word == "estimated" else "-"
            axis.plot(time, one.signals[:, k], dashes, color=color, linewidth=1, label=label)
            below.plot(time, one.errors[:, k], ".", markersize=2, color=color, label=f"{word} - measured")
        axis.set_ylabel(f"{name} [{unit}]")
        below.set_ylabel(f"error [{unit}]")
        for one_axis in (axis, below):  # above the axes, where it hides nothing
            one_axis.legend(
                fontsize=8,
                loc="lower right",
                bbox_to_anchor=(1.0, 1.0),
                ncols=3,
                frameon=False,
                borderaxespad=0,
            )
    axes[-1, 0].set_xlabel("time [s]")
    _save(figure, path)


def draw_convergence(path: Path, history: Sequence[tuple[float, float, float]]) -> None:
    """Cost and damping by iterations; one colour for each ratio."""
    figure, (cost, damping) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    ratios = np.array([row[0] for row in history])
    index = np.arange(1, len(history) + 1)
    for k, ratio in enumerate(dict.fromkeys(ratios.tolist())):
        here = ratios == ratio
        cost.semilogy(index[here], np.array(history)[here, 1], "o-", color=f"C{k}", label=f"ratio {ratio:g}")
        damping.semilogy(index[here], np.array(history)[here, 2], "o-", color=f"C{k}")
    cost.set_ylabel("half the weighted sum of squares")
    damping.set_ylabel("damping")
    damping.set_xlabel("iteration")
    cost.legend()
    _save(figure, path)


def draw_method_parameters(
    path: Path,
    names: Sequence[str],
    values: Mapping[str, Mapping[str, Array]],
    reference: Array,
    half_widths: Array,
) -> None:
    """How estimates move with the method parameters, in half-widths of their intervals.

    :param values: for each method parameter the estimates (p,) by the words for its setting.
    """
    figure, axes = plt.subplots(
        1,
        len(values),
        figsize=(4 * len(values), 0.4 * len(names) + 2.2),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axis, (method, found) in zip(axes[0], values.items(), strict=True):
        axis.axvspan(-1, 1, color="0.9")
        for k, (word, estimate) in enumerate(found.items()):
            axis.plot((estimate - reference) / half_widths, np.arange(len(names)), "o<>sD"[k % 5], label=word)
        axis.set_title(method)
        axis.set_xlabel("shift / half-width of the interval")
        axis.set_yticks(np.arange(len(names)), names)
        axis.legend(fontsize=8)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
