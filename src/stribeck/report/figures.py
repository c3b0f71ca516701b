"""Figures of runs and of friction laws, with matplotlib's objects only: no display, no global state."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stribeck.core.diagram import DiagramCurve
from stribeck.errors import ConfigError
from stribeck.io.files import write_atomically

FloatArray = npt.NDArray[np.float64]

DPI = 150
LARGEST_PICTURE = 60000
"""Pixels along one side of a picture; Agg draws up to 65535."""

FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Formats by suffix, with the metadata left out so that the same figure gives the same file."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.2,
    "svg.hashsalt": "stribeck",
    "text.parse_math": False,  # titles and labels are names of files and runs
}

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito, "Color Universal Design" (2008), without black and yellow: safe for the colour-blind."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.2)),
    (0, (7, 1.2, 1.5, 1.2)),
    (0, (1.2, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
)
"""As many as have no factor in common with the colours: 30 simulations differ."""

MEASURED: dict[str, Any] = {"color": "black", "linewidth": 1.4, "label": "measured"}
GOAL: dict[str, Any] = {"color": "0.45", "linewidth": 0.8, "linestyle": (0, (4, 2)), "label": "goal"}
TORQUE_OFF: dict[str, Any] = {"color": "0.93", "linewidth": 0.0, "label": "torque off"}
EQUAL_TORQUES: dict[str, Any] = {
    "color": "black",
    "linewidth": 0.9,
    "linestyle": "--",
    "label": "equal torques",
}
DRIVE_COLOUR, BACKDRIVE_COLOUR, STATIC_COLOUR = "#0072B2", "#C0202C", "0.88"

ERROR_NOTE = "mrad: mean absolute error of the simulated position"
MOTOR_TORQUE_LABEL = r"motor torque $\tau_m$ [N m]"
EXTERNAL_TORQUE_LABEL = r"opposing external torque $|\tau_e|$ [N m]"


@dataclass(frozen=True, eq=False)
class RunDrawing:
    """One run as a figure shows it.

    :param time: sample times (n,) [s].
    :param measured: measured position (n,) [rad].
    :param goal: goal position as sent (n,) [rad].
    :param torque_enable: 1 with torque on, 0 without (n,).
    :param simulated: simulated positions (n,) [rad] by label, for instance a parameter file's name.
    :param title: name of the run.
    :param errors: mean absolute error of each simulation [rad] by label.
    """

    time: FloatArray
    measured: FloatArray
    goal: FloatArray
    torque_enable: FloatArray
    simulated: Mapping[str, FloatArray]
    title: str
    errors: Mapping[str, float]

    def legend_entry(self, label: str, longest: int) -> str:
        """Give the label of a simulation, shortened to so many characters, and its error."""
        entry = f"{_shortened(label, longest)}: {1e3 * self.errors[label]:.1f} mrad"
        # Matplotlib leaves out entries that begin with an underscore.
        return f" {entry}" if entry.startswith("_") else entry


def draw_run(
    time: FloatArray,
    measured: FloatArray,
    goal: FloatArray,
    torque_enable: FloatArray,
    simulated: Mapping[str, FloatArray],
    *,
    title: str,
    errors: Mapping[str, float],
) -> Figure:
    """One run: positions above, residuals (simulated minus measured) below; see :class:`RunDrawing`."""
    run = RunDrawing(time, measured, goal, torque_enable, simulated, title, errors)
    with _style():
        figure = _figure(9.0, 5.6 if simulated else 3.8, constrained=True)
        rows = 2 if simulated else 1
        panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=(2.2, 1.0)[:rows])[:, 0]
        looks = _looks(simulated)
        _draw_positions(panels[0], run, looks)
        panels[0].set(ylabel="position [rad]", title=_shortened(title, 90))
        if simulated:
            _shade_torque_off(panels[1], run)
            panels[1].axhline(0.0, color="black", linewidth=0.8)
            for label, position in simulated.items():
                panels[1].plot(time, 1e3 * (position - measured), **looks[label])
            panels[1].set(ylabel="simulated −\nmeasured [mrad]")
        panels[-1].set(xlabel="time [s]")
        handles = _fixed_handles([run]) + _simulation_handles(run, looks, longest=80)
        _legend_below(figure, handles, ERROR_NOTE if simulated else None)
    return figure


def draw_overview(runs: Sequence[RunDrawing]) -> Figure:
    """All runs as small multiples, up to four in a row, with the errors above each panel.

    :raises ConfigError: without a run.
    """
    if not runs:
        raise ConfigError("no runs to draw: give at least one recording")
    looks = _looks({label: None for run in runs for label in run.simulated})
    columns = min(4, len(runs))
    rows = -(-len(runs) // columns)
    handles = [_simulation_handles(run, looks, longest=32) for run in runs]
    entry_columns = (
        2 if all(len(str(entry.get_label())) <= 20 for entries in handles for entry in entries) else 1
    )
    entry_rows = max(-(-len(run.simulated) // entry_columns) for run in runs)
    # A layout in inches, because its cost does not grow with the number of panels.
    panel_width, panel_height, left, right, between = 3.3, 1.75, 0.75, 0.2, 0.55
    head = 0.30 + 0.17 * entry_rows  # name and errors above each panel
    top, bottom = 0.55 + head, 0.50
    width = left + columns * panel_width + (columns - 1) * between + right
    height = top + rows * panel_height + (rows - 1) * (head + 0.2) + bottom
    with _style():
        figure = _figure(width, height)
        panels = figure.subplots(
            rows,
            columns,
            sharex=True,
            squeeze=False,
            gridspec_kw={
                "left": left / width,
                "right": 1.0 - right / width,
                "top": 1.0 - top / height,
                "bottom": bottom / height,
                "wspace": between / panel_width,
                "hspace": (head + 0.2) / panel_height,
            },
        )
        for k, panel in enumerate(panels.flat):
            if k >= len(runs):
                panel.remove()
                continue
            _draw_positions(panel, runs[k], looks)
            panel.legend(
                handles=handles[k],
                title=_shortened(runs[k].title, 36),
                title_fontproperties={"weight": "bold", "size": 9},
                fontsize=8,
                loc="lower left",
                bbox_to_anchor=(0.0, 1.0),
                borderpad=0.0,
                borderaxespad=0.2,
                labelspacing=0.25,
                columnspacing=1.0,
                handlelength=1.8,
                handletextpad=0.5,
                alignment="left",
                ncols=entry_columns,
            )
            if k % columns == 0:
                panel.set_ylabel("position [rad]")
            if k + columns >= len(runs):
                panel.set_xlabel("time [s]")
                panel.tick_params(labelbottom=True)
        figure.legend(
            handles=_fixed_handles(runs),
            title=ERROR_NOTE if looks else None,
            loc="upper left",
            bbox_to_anchor=(left / width, 1.0 - 0.08 / height),
            borderaxespad=0.0,
            borderpad=0.0,
            alignment="left",
            ncols=3,
        )
    return figure


def draw_diagram(curves: Sequence[DiagramCurve], *, max_torque: float, title: str) -> Figure:
    """Drive/backdrive diagrams, one panel for each friction law with its parameters.

    Below the drive boundary the joint moves with the motor, above the backdrive boundary with the
    load; in the grey zone between it stays at rest. Paler lines belong to higher speeds.

    :param max_torque: end of the axis of the motor torque [N m].
    :raises ConfigError: without a curve.
    """
    if not curves:
        raise ConfigError("no friction law to draw: give at least one parameter file")
    columns = 2 if len(curves) == 4 else min(3, len(curves))
    rows = -(-len(curves) // columns)
    speeds = sorted({float(speed) for curve in curves for speed in curve.speeds})
    opacity = dict(zip(speeds, np.linspace(1.0, 0.3, len(speeds)), strict=True))
    top = _top_of_diagram(curves, max_torque)
    with _style():
        figure = _figure(max(6.0, 0.6 + 4.0 * columns), 0.8 + 3.6 * rows, constrained=True)
        figure.suptitle(title, fontsize=11)
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for k, panel in enumerate(panels.flat):
            if k >= len(curves):
                panel.remove()
                continue
            _draw_boundaries(panel, curves[k], opacity, max_torque, top)
            if k % columns == 0:
                panel.set_ylabel(EXTERNAL_TORQUE_LABEL, parse_math=True)
            if k + columns >= len(curves):
                panel.set_xlabel(MOTOR_TORQUE_LABEL, parse_math=True)
                panel.tick_params(labelbottom=True)
        handles: list[Artist] = [
            Line2D([], [], color=BACKDRIVE_COLOUR, label="backdrive boundary"),
            Line2D([], [], color=DRIVE_COLOUR, label="drive boundary"),
            Patch(color=STATIC_COLOUR, label="static zone"),
            Line2D([], [], **EQUAL_TORQUES),
        ]
        listed = ", ".join(f"{speed:g}" for speed in speeds)
        handles.append(Line2D([], [], color="black", alpha=0.5, label=f"paler is faster: {listed} rad/s"))
        _legend_below(figure, handles)
    return figure


@dataclass(frozen=True)
class CompensationDrawing:
    """One joint of the demo on one trajectory, beside itself without friction. Times [s], positions [rad].

    :param title: trajectory and gain.
    :param cut: share of the distance to the frictionless motion that compensation takes away.
    """

    title: str
    time: FloatArray
    goal: FloatArray
    frictionless: FloatArray
    gravity: FloatArray
    compensated: FloatArray
    cut: float


def draw_compensation(drawings: Sequence[CompensationDrawing], columns: int, title: str) -> Figure:
    """Motion with gravity compensation alone and with friction compensated, in rows of ``columns`` panels.

    :raises ConfigError: without a drawing.
    """
    if not drawings:
        raise ConfigError("no compensated motion to draw")
    rows = -(-len(drawings) // columns)
    curves: list[tuple[str, dict[str, Any]]] = [
        ("goal", GOAL),
        ("frictionless", {"color": "black", "linewidth": 2.2, "alpha": 0.35, "label": "without friction"}),
        ("gravity", {"color": COLOURS[1], "label": "gravity compensated"}),
        ("compensated", {"color": COLOURS[0], "label": "gravity and friction compensated"}),
    ]
    with _style():
        figure = _figure(3.7 * columns, 0.8 + 2.5 * rows, constrained=True)
        figure.suptitle(title, fontsize=11)
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for k, panel in enumerate(panels.flat):
            if k >= len(drawings):
                panel.remove()
                continue
            drawing = drawings[k]
            for name, look in curves:
                panel.plot(drawing.time, getattr(drawing, name), **look)
            panel.set_title(f"{drawing.title}: {100 * drawing.cut:.0f} % closer")
            if k % columns == 0:
                panel.set_ylabel("position [rad]")
            if k + columns >= len(drawings):
                panel.set_xlabel("time [s]")
        _legend_below(figure, [Line2D([], [], **look) for _, look in curves])
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the suffix of ``path`` names; a file there is replaced whole.

    :raises ConfigError: for a suffix that is not a format of :data:`FORMATS`.
    :raises OutputError: if the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown picture format {path.suffix!r}; valid: {', '.join(FORMATS)}")
    write_atomically(path, render(figure, suffix))


def render(figure: Figure, suffix: str) -> bytes:
    """Draw a figure as the content of a file, ``suffix`` one of :data:`FORMATS`; always the same bytes."""
    buffer = io.BytesIO()
    dpi = min(float(DPI), LARGEST_PICTURE / max(figure.get_size_inches()))
    with _style():
        figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, metadata=FORMATS[suffix])
    return buffer.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    """Use :data:`STYLE` over matplotlib's defaults, not the user's own matplotlibrc, and put all back."""
    with matplotlib.style.context(["default", STYLE]):
        yield


def _figure(width: float, height: float, *, constrained: bool = False) -> Figure:
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1) if constrained else None  # inches
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _looks(labels: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of each simulation."""
    return {
        label: {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        for k, label in enumerate(labels)
    }


def _draw_positions(panel: Axes, run: RunDrawing, looks: Mapping[str, dict[str, Any]]) -> None:
    _shade_torque_off(panel, run)
    panel.plot(run.time, run.goal, **GOAL)
    panel.plot(run.time, run.measured, **MEASURED)
    for label, position in run.simulated.items():
        panel.plot(run.time, position, **looks[label], label=label)
    panel.margins(x=0.01)


def _shade_torque_off(panel: Axes, run: RunDrawing) -> None:
    off = np.concatenate(([False], np.asarray(run.torque_enable) < 0.5, [False]))
    edges = np.flatnonzero(off[1:] != off[:-1])
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        panel.axvspan(run.time[begin], run.time[min(end, len(run.time) - 1)], **TORQUE_OFF)


def _fixed_handles(runs: Sequence[RunDrawing]) -> list[Artist]:
    """Legend entries of what is not simulated."""
    handles: list[Artist] = [Line2D([], [], **MEASURED), Line2D([], [], **GOAL)]
    if any(np.any(run.torque_enable < 0.5) for run in runs):
        handles.append(Patch(**TORQUE_OFF))
    return handles


def _simulation_handles(run: RunDrawing, looks: Mapping[str, dict[str, Any]], longest: int) -> list[Artist]:
    """Legend entries of the simulations, with their errors."""
    return [Line2D([], [], **looks[label], label=run.legend_entry(label, longest)) for label in run.simulated]


def _shortened(text: str, longest: int) -> str:
    """``text``, or its end: paths differ there."""
    return text if len(text) <= longest else "…" + text[1 - longest :]


def _legend_below(figure: Figure, handles: list[Artist], title: str | None = None) -> None:
    """Put a legend under all panels, in as few rows as its entries allow; the figure grows to hold it."""
    # Widths in characters of 9 points, 12 to an inch, with 8 for the line beside each.
    widths = [len(str(handle.get_label())) + 8 for handle in handles]
    available = 12.0 * figure.get_size_inches()[0]
    columns = len(handles)
    while columns > 1 and sum(max(part) for part in np.array_split(widths, columns)) > available:
        columns -= 1
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * (rows + (title is not None)) + 0.1)
    figure.legend(handles=handles, title=title, loc="outside lower center", ncols=columns)


def _top_of_diagram(curves: Sequence[DiagramCurve], max_torque: float) -> float:
    """End of the axis of the external torque: the backdrive boundary at the lowest speed, if that is near."""
    shown = [curve.backdrive[np.argmin(curve.speeds), curve.motor_torque <= max_torque] for curve in curves]
    highest = max((float(np.max(line, initial=0.0, where=np.isfinite(line))) for line in shown), default=0.0)
    return 1.05 * float(np.clip(highest, max_torque, 2.0 * max_torque))


def _draw_boundaries(
    panel: Axes, curve: DiagramCurve, opacity: Mapping[float, float], max_torque: float, top: float
) -> None:
    slowest = int(np.argmin(curve.speeds))
    if curve.speeds[slowest] == 0.0:
        lower = np.nan_to_num(curve.drive[slowest], nan=0.0)
        upper = np.nan_to_num(curve.backdrive[slowest], nan=math.inf)
        panel.fill_between(
            curve.motor_torque, lower, np.minimum(upper, top), color=STATIC_COLOUR, linewidth=0.0
        )
    panel.plot([0.0, top], [0.0, top], **EQUAL_TORQUES)
    for speed, drive, backdrive in zip(curve.speeds, curve.drive, curve.backdrive, strict=True):
        panel.plot(curve.motor_torque, drive, color=DRIVE_COLOUR, alpha=opacity[float(speed)])
        panel.plot(curve.motor_torque, backdrive, color=BACKDRIVE_COLOUR, alpha=opacity[float(speed)])
    locked = bool(np.all(np.isnan(curve.backdrive)))
    note = " (self-locking)" if locked else ""
    title = _shortened(curve.label, 44 - len(note)) + note
    panel.set(xlim=(0.0, max_torque), ylim=(0.0, top), title=title)
