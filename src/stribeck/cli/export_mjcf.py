"""``stribeck export-mjcf``: a fit of law M1 as plain MJCF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.inputs import warn
from stribeck.cli.options import NotNegative, Positive, TimeStep, option
from stribeck.errors import OutputError
from stribeck.io.actuators import read_actuator
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.parameter_file import read_parameter_file


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options: a servo with its settings, and the model to insert it into."""

    params: Path = option("parameter file of law M1", metavar="FILE")
    actuator: Path | None = option("file of a servo that is not installed", None, "YAML")
    joint: tuple[str, ...] = option("joints of the model", metavar="NAME")
    kp: Positive = option("firmware gain", metavar="K")
    kd: NotNegative = option("derivative gain (default: 0)", 0.0, "K")
    supply: Positive | None = option("voltage (default: the servo's nominal one)", None, "V")
    model: Path | None = option(
        "model to put the servo in (default: write a file to include)", None, "IN.xml"
    )
    timestep: TimeStep | None = option(
        "of the file to include; a model has its own (default: 0.002)", None, "S"
    )
    output: Path = option("MJCF to write", metavar="OUT.xml")


def run(options: ExportOptions) -> int:
    """Write an MJCF file to include, or a model with the servo at its joints."""
    from stribeck.mujoco.export import parts_of, to_mjcf
    from stribeck.mujoco.servo import Servo

    output, model = options.output, options.model
    check_writable(output)
    for source in (options.params, *([] if model is None else parts_of(model))):
        if output.resolve() == source.resolve():
            raise OutputError(f"{output} is an input of this command; name another file")
    actuator = read_actuator(options.actuator) if options.actuator else None
    servo = Servo(
        read_parameter_file(options.params, actuator),
        options.kp,
        kd=options.kd,
        supply_voltage=options.supply,
    )
    text, notes = to_mjcf(servo, options.joint, model, options.timestep)
    if model is not None and output.resolve().parent != model.resolve().parent:
        notes += ("relative paths of files in the model are resolved from the new model's folder",)
    write_atomically(output, text)
    for note in notes:
        warn(note)
    print(output)
    return 0
