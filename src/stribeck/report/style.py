"""The style of all pictures that matplotlib draws: no display, no global state, the same bytes on every machine."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stribeck.errors import ConfigError
from stribeck.io.files import write_atomically

DPI = 150
LARGEST_PICTURE = 60000
"""Pixels along one side of a picture; Agg draws up to 65535."""

FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Formats by suffix, without the metadata that would make two files of the same figure differ."""

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
"""Their number has no factor in common with that of the colours, so that 30 lines differ."""

MEASURED: dict[str, Any] = {"color": "black", "linewidth": 1.4, "label": "measured"}
GOAL: dict[str, Any] = {"color": "0.45", "linewidth": 0.8, "linestyle": (0, (4, 2)), "label": "goal"}


@contextmanager
def style() -> Iterator[None]:
    """Draw with :data:`STYLE` over matplotlib's defaults, whatever the user's matplotlibrc says."""
    with matplotlib.style.context(["default", STYLE]):
        yield


@contextmanager
def drawing(width: float, height: float, title: str = "", *, constrained: bool = True) -> Iterator[Figure]:
    """A new figure of this size [inch], drawn in the style.

    :param constrained: whether matplotlib finds room for labels; otherwise the caller places the panels.
    """
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1) if constrained else None  # inches
    with style():
        figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
        FigureCanvasAgg(figure)
        if title:
            figure.suptitle(title, fontsize=11)
        yield figure


def grid(figure: Figure, count: int, columns: int, **options: Any) -> list[Axes]:
    """So many panels, row by row.

    :param options: of :meth:`matplotlib.figure.Figure.subplots`.
    """
    axes = figure.subplots(-(-count // columns), columns, squeeze=False, **options).ravel().tolist()
    for panel in axes[count:]:
        panel.remove()
    for panel in axes[max(count - columns, 0) : count]:  # with a removed panel below, labels would be hidden
        panel.tick_params(labelbottom=True)
    return list(axes[:count])


def legend_below(figure: Figure, handles: Sequence[Artist], title: str | None = None) -> None:
    """Put a legend under all panels, in as few rows as its entries allow; the figure grows to hold it."""
    # Widths in characters of 9 points, 12 to an inch, with 8 for the line beside each.
    widths = [len(str(handle.get_label())) + 8 for handle in handles]
    available = 12.0 * figure.get_size_inches()[0]
    columns = len(handles)
    while columns > 1 and sum(max(part) for part in np.array_split(widths, columns)) > available:
        columns -= 1
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * (rows + (title is not None)) + 0.1)
    figure.legend(handles=list(handles), title=title, loc="outside lower center", ncols=columns)


def legend_of(figure: Figure, panel: Axes) -> None:
    """Put the legend of one panel, which holds for all, under all panels."""
    legend_below(figure, panel.get_legend_handles_labels()[0])


def logarithmic(panel: Axes, steps: Sequence[float] = (1.0,)) -> None:
    """A logarithmic vertical axis with plain numbers at ``steps`` of each decade; powers would need mathematics."""
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=steps))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def shortened(text: str, longest: int) -> str:
    """``text``, or its end: paths differ there."""
    return text if len(text) <= longest else "…" + text[1 - longest :]


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the suffix of ``path`` names; an existing file is replaced whole.

    :raises ConfigError: for a suffix that is not in :data:`FORMATS`.
    :raises OutputError: if the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown picture format {path.suffix!r}; valid: {', '.join(FORMATS)}")
    write_atomically(path, render(figure, suffix))


def render(figure: Figure, suffix: str) -> bytes:
    """The content of a picture file, ``suffix`` one of :data:`FORMATS`; always the same bytes."""
    buffer = io.BytesIO()
    dpi = min(float(DPI), LARGEST_PICTURE / max(figure.get_size_inches()))
    with style():
        figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, metadata=FORMATS[suffix])
    return buffer.getvalue()


def save_all(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Write figures as PNG files into a folder, by their names; the paths."""
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save(figure, path)
    return paths
