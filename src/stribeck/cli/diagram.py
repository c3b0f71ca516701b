"""``stribeck diagram``: drive/backdrive diagrams of parameter files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stribeck.cli.inputs import display_name, parameter_files_of
from stribeck.core.diagram import SPEEDS, diagram_curve
from stribeck.errors import ConfigError
from stribeck.io.files import check_writable
from stribeck.io.parameter_file import ParameterFile
from stribeck.report.figures import FORMATS, draw_diagram, save

POINTS = 200


def run(arguments: argparse.Namespace) -> int:
    """One panel per parameter file."""
    if arguments.output.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{arguments.output}: unknown picture format {arguments.output.suffix!r}; valid: {', '.join(FORMATS)}"
        )
    check_writable(arguments.output)
    draw(arguments.output, parameter_files_of(arguments), arguments.max_torque, arguments.speeds or SPEEDS)
    print(arguments.output)
    return 0


def draw(
    output: Path,
    files: Sequence[tuple[Path, ParameterFile]],
    max_torque: float,
    speeds: Sequence[float] = SPEEDS,
) -> None:
    """Draw the diagrams of parameter files."""
    paths = [path for path, _ in files]
    motor_torque = np.linspace(0.0, max_torque, POINTS)
    curves = [
        diagram_curve(
            f"{display_name(path, paths)} ({file.law.name.upper()}, {file.actuator.title})",
            file.law,
            file.values,
            motor_torque,
            speeds,
        )
        for path, file in files
    ]
    save(draw_diagram(curves, max_torque=max_torque, title="Drive/backdrive diagram"), output)
