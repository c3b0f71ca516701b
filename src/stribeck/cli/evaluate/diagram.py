"""Drive/backdrive diagrams of parameter files, for ``stribeck evaluate --diagram``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.inputs import display_name, warn
from stribeck.evaluate.diagram import SPEEDS, diagram_curve
from stribeck.live.friction import stall_torque
from stribeck.model.joint import Drive
from stribeck.report.figures import draw_diagram
from stribeck.report.style import format_of, save

POINTS = 200

FAR = 10.0
"""Multiple of the strongest stall torque above which an axis of torque is doubted."""


def draw_diagrams(files: Sequence[tuple[Path, Drive]], options: EvaluateOptions, path: Path) -> None:
    """Draw one panel per parameter file; without ``--max-torque`` up to the stall torque of the strongest."""
    format_of(path)
    strongest = max(stall_torque(file.actuator, file.values) for _, file in files)
    most = strongest if options.max_torque is None else options.max_torque
    if most > FAR * strongest:
        warn(f"--max-torque {most:g} N m: no servo drawn has more than {strongest:.3g} N m")
    curves = [
        diagram_curve(
            f"{display_name(file, options.params)} ({drive.law.name.upper()}, {drive.actuator.title})",
            drive.law,
            drive.values,
            np.linspace(0.0, most, POINTS),
            options.speeds or SPEEDS,
        )
        for file, drive in files
    ]
    save(draw_diagram(curves, max_torque=most, title="Drive/backdrive diagram"), path)
    print(path)
