"""The style of all matplotlib figures: no display, no global state, identical bytes on every machine."""

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
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stribeck.errors import ConfigError
from stribeck.files.folders import write_atomically

DPI = 150
LARGEST_PICTURE = 60000
"""Maximum number of pixels along one side of a figure; Agg draws up to 65535."""

FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Formats by suffix, without the metadata that would make two files of the same figure differ."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib, for the same figure on every machine
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
"""Okabe and Ito, "Color Universal Design" (2008), without black and yellow: safe for colour-blind readers."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.2)),
    (0, (7, 1.2, 1.5, 1.2)),
    (0, (1.2, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
)
"""Dash patterns; their number has no factor in common with that of the colours, so that 30 lines differ."""

MEASURED: dict[str, Any] = {"color": "black", "linewidth": 1.4, "label": "measured"}
GOAL: dict[str, Any] = {"color": "0.45", "linewidth": 0.8, "linestyle": (0, (4, 2)), "label": "goal"}


@contextmanager
def style() -> Iterator[None]:
    """Apply :data:`STYLE` to matplotlib's defaults, ignoring the user's matplotlibrc."""
    with matplotlib.style.context(["default", STYLE]):
        yield


@contextmanager
def drawing(width: float, height: float, title: str = "", *, constrained: bool = True) -> Iterator[Figure]:
    """Create a figure of this size [inch] in the style.

    :param constrained: whether matplotlib makes room for labels; otherwise the caller places the panels.
    """
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1) if constrained else None  # inches
    with style():
        figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
        FigureCanvasAgg(figure)
        if title:
            figure.suptitle(title, fontsize=11)
        yield figure


def grid(figure: Figure, count: int, columns: int, **options: Any) -> list[Axes]:
    """Create ``count`` panels, row by row.

    :param options: options of :meth:`matplotlib.figure.Figure.subplots`.
    """
    axes = figure.subplots(-(-count // columns), columns, squeeze=False, **options).ravel().tolist()
    for panel in axes[count:]:
        panel.remove()
    for panel in axes[max(count - columns, 0) : count]:  # they have no panel below
        panel.tick_params(labelbottom=True)
    return list(axes[:count])


def legend_below(figure: Figure, handles: Sequence[Artist], title: str | None = None) -> None:
    """Put a legend under all panels, in as few rows as possible; the figure is enlarged to hold it."""
    # Width in characters of 9 points, 12 per inch, plus 8 for the line beside each entry.
    widths = [len(str(handle.get_label())) + 8 for handle in handles]
    available = 12.0 * figure.get_size_inches()[0]
    columns = len(handles)
    while columns > 1 and sum(max(part) for part in np.array_split(widths, columns)) > available:
        columns -= 1
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * (rows + (title is not None)) + 0.1)
    figure.legend(handles=list(handles), title=title, loc="outside lower center", ncols=columns)


def legend_of(figure: Figure, panel: Axes) -> None:
    """Put the legend of one panel, which is valid for all, under all panels."""
    legend_below(figure, panel.get_legend_handles_labels()[0])


def logarithmic(panel: Axes, steps: Sequence[float] = (1.0,)) -> None:
    """Set a logarithmic vertical axis with plain numbers at ``steps`` of each decade; powers would need math text."""
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=steps))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def shortened(text: str, longest: int) -> str:
    """Shorten ``text`` from the left, as paths differ at the end."""
    return text if len(text) <= longest else "…" + text[1 - longest :]


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format given by the suffix of ``path``, replacing an existing file.

    :raises ConfigError: for a suffix that is not in :data:`FORMATS`.
    :raises OutputError: if the file cannot be written.
    """
    write_atomically(path, render(figure, format_of(path)))


def format_of(path: Path) -> str:
    """The suffix of a picture's path, in lower case.

    :raises ConfigError: for a suffix that is not in :data:`FORMATS`.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown picture format {path.suffix!r}; valid: {', '.join(FORMATS)}")
    return suffix


def render(figure: Figure, suffix: str) -> bytes:
    """The content of a figure file in format ``suffix``, a key of :data:`FORMATS`; always the same bytes."""
    buffer = io.BytesIO()
    dpi = min(float(DPI), LARGEST_PICTURE / max(figure.get_size_inches()))
    for text in figure.findobj(Text):  # file names that the locale cannot decode have surrogates
        text.set_text(text.get_text().encode(errors="surrogateescape").decode(errors="replace"))
    with style():
        figure.savefig(buffer, format=suffix.removeprefix("."), dpi=dpi, metadata=FORMATS[suffix])
    return buffer.getvalue()


def save_all(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Write figures as PNG files named by their keys into a folder; returns the paths."""
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save(figure, path)
    return paths
