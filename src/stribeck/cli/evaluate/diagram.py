"""Drive/backdrive diagrams of parameter files, for ``stribeck evaluate --diagram``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.cli.evaluate.options import EvaluateOptions
from stribeck.cli.inputs import display_name, warn
from stribeck.cli.table import print_table
from stribeck.evaluate.diagram import SPEEDS, diagram_curve
from stribeck.evaluate.diagram_update import updated
from stribeck.evaluate.measured_diagram import DiagramPoint, measured_points
from stribeck.files.drives import write_drive
from stribeck.live.friction import stall_torque
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.report.figures import draw_diagram
from stribeck.report.style import format_of, save

POINTS = 200

FAR = 10.0
"""Multiple of the strongest stall torque above which an axis of torque is doubted."""


def draw_diagrams(
    files: Sequence[tuple[Path, Drive]], logs: Sequence[Log], options: EvaluateOptions, path: Path
) -> None:
    """Draw one panel per parameter file; without ``--max-torque`` up to the stall torque of the strongest.

    With recordings, the torques measured before and in slow motion are drawn as well, and with ``--output`` the file is fitted to
    them, too.
    """
    format_of(path)
    points = {_label(file, drive, options): measured_points(logs, drive) for file, drive in files}
    for label, found in points.items():
        if logs:
            counts = Counter(
                f"{'slow motion' if one.speed else 'before motion'}, {one.kind}" for one in found
            )
            print(
                f"{label}: "
                + (", ".join(f"{n} {words}" for words, n in sorted(counts.items())) or "no snapshots")
            )
    if options.output is not None:
        _update(files, points, logs, options.output)
    strongest = max(stall_torque(file.actuator, file.values) for _, file in files)
    most = strongest if options.max_torque is None else options.max_torque
    if most > FAR * strongest:
        warn(
            f"--max-torque {most:g} N m is far above the stall torque of all servos in the diagram, {strongest:.3g} N m: choose a smaller one"
        )
    axes = np.linspace(0.0, most, POINTS), options.speeds or SPEEDS
    curves = [
        diagram_curve(_label(file, drive, options), drive.law, drive.values, *axes) for file, drive in files
    ]
    title = "Drive/backdrive diagram"
    save(draw_diagram(curves, max_torque=most, title=title, measured=points), path)
    print(path)


def _label(file: Path, drive: Drive, options: EvaluateOptions) -> str:
    return f"{display_name(file, options.params)} ({drive.law.name.upper()}, {drive.actuator.title})"


def _update(
    files: Sequence[tuple[Path, Drive]],
    points: Mapping[str, Sequence[DiagramPoint]],
    logs: Sequence[Log],
    output: Path,
) -> None:
    """Write the first file fitted to the points, too."""
    drive, (found, *_) = files[0][1], points.values()
    result = updated(drive, found, logs)
    write_drive(output, result.drive)
    rows = [
        [name, f"{drive.values[name]:.4g}", f"{result.drive.values[name]:.4g}", f"{factor:.2f}"]
        for name, factor in result.shorter.items()
    ]
    print_table(["parameter", "before", "with the points", "interval shorter by"], rows)
    if result.scale > 1.05:
        print(
            f"the residuals of the points are {result.scale:.2g} times as large as their standard deviations, which were therefore enlarged"
        )
    print(output)
