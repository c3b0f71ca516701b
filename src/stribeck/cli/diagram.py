"""``stribeck diagram``: drive/backdrive diagrams of parameter files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stribeck.cli.inputs import display_name, parameter_files_of, warn
from stribeck.cli.options import Numbers, ParameterFileOptions, Positive, option
from stribeck.evaluate.diagram import SPEEDS, diagram_curve
from stribeck.files.folders import check_writable
from stribeck.live.friction import stall_torque

POINTS = 200

FAR = 10.0
"""Multiple of the strongest stall torque above which an axis of torque is doubted."""


@dataclass(frozen=True, kw_only=True)
class DiagramOptions(ParameterFileOptions):
    """Options: parameter files, the range of torques, and speeds."""

    max_torque: Positive = option("largest motor torque to draw [N m]", metavar="T")
    speeds: Numbers = option("rad/s (default: 0,1,2,3)", (0.0, 1.0, 2.0, 3.0), "LIST")
    output: Path = option("picture: .png, .svg or .pdf", metavar="F.png")


def run(options: DiagramOptions) -> int:
    """Draw one panel per parameter file."""
    from stribeck.report.figures import draw_diagram
    from stribeck.report.style import format_of, save

    format_of(options.output)
    check_writable(options.output)
    motor_torque = np.linspace(0.0, options.max_torque, POINTS)
    files = parameter_files_of(options)
    strongest = max(stall_torque(file.actuator, file.values) for _, file in files)
    if options.max_torque > FAR * strongest:
        warn(f"--max-torque {options.max_torque:g} N m: no servo drawn has more than {strongest:.3g} N m")
    curves = [
        diagram_curve(
            f"{display_name(path, options.params)} ({file.law.name.upper()}, {file.actuator.title})",
            file.law,
            file.values,
            motor_torque,
            options.speeds or SPEEDS,
        )
        for path, file in files
    ]
    save(draw_diagram(curves, max_torque=options.max_torque, title="Drive/backdrive diagram"), options.output)
    print(options.output)
    return 0
