"""``stribeck export-mjcf``: a fit of law M1 as plain MJCF."""

from __future__ import annotations

import argparse

from stribeck.cli.inputs import warn
from stribeck.errors import ConfigError, OutputError
from stribeck.io.actuators import read_actuator
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.parameter_file import read_parameter_file
from stribeck.mujoco.export import TIMESTEP, export_onto, exported, snippet
from stribeck.mujoco.servo import Servo


def run(arguments: argparse.Namespace) -> int:
    """Write an MJCF file to include, or a model with the servo at its joints."""
    check_writable(arguments.output)
    for source in (arguments.params, arguments.model):
        if source is not None and arguments.output.resolve() == source.resolve():
            raise OutputError(f"{arguments.output} is an input of this command; name another file")
    if arguments.model is not None and arguments.timestep is not None:
        raise ConfigError(f"--timestep is of a file to include; {arguments.model} has its own")
    actuator = read_actuator(arguments.actuator) if arguments.actuator else None
    servo = Servo(
        read_parameter_file(arguments.params, actuator),
        arguments.kp,
        kd=arguments.kd,
        supply_voltage=arguments.supply,
    )
    if arguments.model is None:
        text, notes = snippet(servo, arguments.joint, arguments.timestep or TIMESTEP), exported(servo).notes
    else:
        text, notes = export_onto(arguments.model, servo, arguments.joint)
        if arguments.output.resolve().parent != arguments.model.resolve().parent:
            notes += ("files that the model names by relative paths are looked for beside the new model",)
    write_atomically(arguments.output, text)
    for note in notes:
        warn(note)
    print(arguments.output)
    return 0
