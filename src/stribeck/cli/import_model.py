"""``stribeck import-model``: parameters of a servo from a file of another program."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.inputs import check_outputs
from stribeck.cli.options import Positive, declared, option
from stribeck.files.actuators import load_actuator
from stribeck.files.drive_entry import check_possible
from stribeck.files.drives import read_drive, write_drive


@declared
class ImportModelOptions:
    """Options: the file, its servo, and what the file does not say."""

    file: Path = option("file to read", metavar="FILE", positional=True)
    format: str = option("format of the file: bam, mjcf, isaaclab or urdf")
    servo: str = option("servo by name, or its YAML file", metavar="NAME")
    output: Path = option("parameter file to write", metavar="P.json")
    joint: str | None = option("joint to read (default: the only one)", metavar="NAME")
    kp: Positive | None = option("firmware gain to which the stiffness in the file belongs", metavar="K")
    supply: Positive | None = option(
        "supply voltage to which the torques in the file belong, for isaaclab", metavar="V"
    )
    motor: Path | None = option(
        "parameter file with the motor parameters, for formats without them (urdf)", metavar="P.json"
    )


def run(options: ImportModelOptions) -> int:
    """Write the parameter file, which evaluate, plot, report and export take."""
    from stribeck.exports.import_task import ImportTask
    from stribeck.exports.imports import imported

    check_outputs([options.output], [options.file, options.motor])
    actuator = load_actuator(options.servo)
    motor = None if options.motor is None else read_drive(options.motor, actuator)
    task = ImportTask(options.file, actuator, options.joint, options.kp, options.supply, motor)
    file = imported(options.format, task)
    for name, value in file.values.items():
        check_possible(name, value, f"{options.file}")
    write_drive(options.output, file)
    print(options.output)
    return 0
