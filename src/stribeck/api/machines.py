"""Predictions of recordings of arms and robots by files of drives: torques of arms, positions of robots, joint by joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from stribeck.errors import ConfigError
from stribeck.files.drives import Drives
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.common.machine_motion import MachineMotion, Quantity

METHODS: dict[str, Quantity] = {"identify-arm": "torque", "identify-robot": "position"}
"""What is predicted of the recordings of a file, by the method of its fit."""

MACHINE_FILE = "machine.yaml"
"""Machine's file that ``stribeck identify arm`` writes beside its drives."""


class Sources(NamedTuple):
    """What a file of drives does not hold.

    :param model: URDF of an arm, by default the one that its machine's file names; URDF or MJCF of a robot.
    :param machine: an arm by name, its YAML file, or the content of one; by default ``machine.yaml`` beside the drives, or the machine that they name.
    :param degrees: whether goals and positions of a robot are in degrees.
    :param calibration: file of LeRobot, for data sets of a robot whose numbers are -100 to 100 of the range.
    """

    model: Path | None = None
    machine: str | RobotConfig | None = None
    degrees: bool = False
    calibration: Path | None = None


def quantity_of(content: Drives) -> Quantity | None:
    """What the fit of a file predicts, ``None`` if it is not of an arm or a robot."""
    return None if content.provenance is None else METHODS.get(content.provenance.search.method)


def predict_machine(
    content: Drives,
    where: Path | None,
    recordings: Sequence[Path],
    sources: Sources,
    note: Callable[[str], None],
) -> list[MachineMotion]:
    """Predict recordings of an arm or a robot with the drives of a file, without fitting anything.

    :param where: the file, beside which the machine's file may be.
    :param note: receives what the user should know, such as recordings that are left out.
    :raises ConfigError: for files of other fits, and missing or contradicting sources.
    :raises RecordingError: if no recording can be used.
    """
    quantity = quantity_of(content)
    if quantity == "torque":
        from stribeck.identify.arm.prediction import predict_arm

        robot = _machine(content, where, sources)
        return predict_arm(content, robot, sources.model, recordings, note)
    if quantity == "position":
        from stribeck.identify.robot.prediction import predict_robot

        if sources.model is None:
            raise ConfigError(
                f"the drives belong to the robot {content.machine.name}, whose model is needed: give its URDF or MJCF as `model`"
            )
        reading = sources.degrees, sources.calibration
        return predict_robot(content, sources.model, recordings, note, *reading)
    raise ConfigError(
        "only fits of an arm or a robot predict all joints of a machine, and this fit is of neither"
    )


def _machine(content: Drives, where: Path | None, sources: Sources) -> RobotConfig:
    """The machine's file of an arm: as given, beside the drives, or included under the name that they state."""
    if isinstance(sources.machine, RobotConfig):
        return sources.machine
    if sources.machine is not None:
        return read_robot(sources.machine)
    beside = None if where is None else where.parent / MACHINE_FILE
    if beside is not None and beside.is_file():
        return read_robot(str(beside))
    try:
        return read_robot(content.machine.name)
    except ConfigError:
        raise ConfigError(
            "`machine` is needed: the file that states how to read the recordings of "
            f"{content.machine.name or 'the arm'} (default: {MACHINE_FILE} beside the file of drives)"
        ) from None
