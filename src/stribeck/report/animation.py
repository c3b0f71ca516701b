"""Moving pictures of pendulum benches as GIF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

from stribeck.files.folders import check_writable
from stribeck.report.figures import RunDrawing
from stribeck.report.style import COLOURS, GOAL, MEASURED, drawing, grid, shortened

RATE = 12
"""Pictures per second."""

MOST_RUNS, MOST_SECONDS = 8, 20.0
"""What is shown at most."""

WIDTH, LARGEST_DPI = 750.0, 150.0
"""Width of a picture with many runs, and the resolution with few."""


def write_animation(path: Path, runs: Sequence[RunDrawing]) -> None:
    """Write the first :data:`MOST_RUNS` runs as rods that hang from a joint, in the time of the recording.

    :raises OutputError: if it cannot be written.
    """
    check_writable(path)
    shown = list(runs[:MOST_RUNS])
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    frames = round(min(max(run.time[-1] - run.time[0] for run in shown), MOST_SECONDS) * RATE)
    with drawing(2.6 * columns, 2.7 * rows + 0.4) as figure:
        lines: list[tuple[Any, Any, Any]] = []
        for run, panel in zip(shown, grid(figure, len(shown), columns), strict=True):
            panel.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", title=shortened(run.title, 28))
            panel.set_axis_off()
            signals = {"goal": (run.goal, {**GOAL, "linewidth": 1.2})}
            if run.recorded:
                signals["measured"] = (run.measured, {**MEASURED, "linewidth": 3.0})
            for k, (label, position) in enumerate(run.simulated.items()):
                signals[label] = (
                    position,
                    {"color": COLOURS[k % len(COLOURS)], "linewidth": 2.0, "label": label},
                )
            for signal, look in signals.values():
                lines.append((panel.plot([], [], **look)[0], signal, run.time - run.time[0]))
            if panel is figure.axes[0]:
                panel.legend(loc="lower left", fontsize=7, frameon=False)

        def at(frame: int) -> list[Any]:
            for line, signal, time in lines:
                angle = signal[min(int(np.searchsorted(time, frame / RATE)), len(signal) - 1)]
                line.set_data([0.0, np.sin(angle)], [0.0, -np.cos(angle)])
            return [line for line, _, _ in lines]

        animation = FuncAnimation(figure, at, frames=frames, interval=1e3 / RATE, blit=False)
        beside = path.with_name(f".{path.name}.part.gif")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            dpi = min(LARGEST_DPI, WIDTH / figure.get_figwidth())
            animation.save(beside, writer=PillowWriter(fps=RATE), dpi=dpi)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
