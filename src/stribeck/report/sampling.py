"""Histogram of the intervals between samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from stribeck.errors import ConfigError
from stribeck.report.style import COLOURS, drawing, grid, shortened
from stribeck.survey.sampling import Sampling

MOST = 12
"""Largest number of recordings that are drawn."""

WIDEST = 3.0
"""Longer intervals, relative to the median, are drawn there."""

BIN = 0.025
"""Width of a bar; the median lies in the middle of one, so that intervals that scatter by rounding are one bar."""


def draw_sampling(found: Sequence[Sampling]) -> Figure:
    """Histogram of each recording's intervals, relative to their median, with a logarithmic count from 1 on.

    :raises ConfigError: without a recording.
    """
    if not found:
        raise ConfigError(
            "there are no sampling times to draw, because no recording has joint states or a column of times"
        )
    shown = found[:MOST]
    columns = min(3, len(shown))
    edges = (BIN * (np.arange(round(WIDEST / BIN) + 2) - 0.5)).tolist()
    with drawing(4.2 * columns, 0.6 + 2.4 * -(-len(shown) // columns)) as figure:
        for k, (one, panel) in enumerate(
            zip(shown, grid(figure, len(shown), columns, sharex=True), strict=True)
        ):
            panel.hist(np.minimum(one.relative, WIDEST), edges, color=COLOURS[0])
            panel.set_yscale("log")
            panel.set_ylim(bottom=0.7)
            panel.set_title(f"{shortened(one.name, 30)}: {1.0 / one.usual:.4g} Hz")
            if k % columns == 0:
                panel.set_ylabel("intervals")
            if k + columns >= len(shown):
                panel.set_xlabel("interval / median interval")
    return figure
