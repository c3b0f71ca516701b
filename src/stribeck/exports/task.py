"""What is exported: servos at named joints, the robot they belong to, and the content of the files to write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stribeck.errors import ConfigError, OutputError
from stribeck.model.joint import Servo


class JointServo(NamedTuple):
    """A servo and the name of the joint that it drives."""

    joint: str
    servo: Servo


@dataclass(frozen=True)
class ExportTask:
    """Servos to export.

    :param joints: the servos, with the law that the format holds.
    :param output: main file to write; further files lie beside it and share its stem.
    :param model: robot file to put the servos into, if the format has one.
    :param timestep: time step of the simulation [s], where the format depends on it; ``None``: the format's default.
    :param sources: parameter file of each joint, as given.
    :param by_torque: joints whose commands are torques; the gains of their servos are those of a comparison alone.
    :param table: table of draws beside the output, for formats that read it while they run.
    :raises ConfigError: for joints without a name, or with the same one.
    """

    joints: tuple[JointServo, ...]
    output: Path
    model: Path | None = None
    timestep: float | None = None
    sources: tuple[Path, ...] = ()
    table: Path | None = None
    by_torque: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_names([joint for joint, _ in self.joints])

    def robot(self, name: str) -> Path:
        """The robot file that the format called ``name`` changes.

        :raises ConfigError: if there is none.
        :raises OutputError: if it is also the output.
        """
        if self.model is None:
            raise ConfigError(f"the format {name} writes into a robot file: name it as `model`")
        if self.model.resolve() == self.output.resolve():
            raise OutputError(f"{self.output} is also an input of this command: name another file")
        return self.model


class Written(NamedTuple):
    """Content of the files of an export, the main one first, and remarks for the user.

    :param variants: files of draws, in order.
    """

    files: Mapping[Path, str | bytes]
    notes: tuple[str, ...] = ()
    variants: tuple[Path, ...] = ()


def ramp_notes(task: ExportTask) -> tuple[str, ...]:
    """A remark on goal ramps of firmwares, for formats without one."""
    return tuple(
        f"{joint}: the firmware limits the speed of its goal: do not change position targets faster than {speed:.4g} rad/s"
        for joint, servo in task.joints
        if (speed := servo.parameters.actuator.control.goal_speed) is not None
    )


def check_names(joints: Sequence[str]) -> None:
    """Raise :class:`ConfigError` unless all joints have a name of their own."""
    repeated = [name for name, count in Counter(joints).items() if count > 1]
    if not joints or repeated or not all(joints):
        found = f"{repeated[0]!r} twice" if repeated else ", ".join(map(repr, joints)) or "none"
        raise ConfigError(
            f"the names of joints must be different and not empty, found {found}: name each with `joint`"
        )


def identifier(name: str) -> str:
    """A name as an identifier of C and Python."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{word}" if word[0].isdigit() else word


def title_of(joint: JointServo) -> str:
    """Servo, law and joint in words, for comments in exported files."""
    file = joint.servo.parameters
    return f"{joint.joint}: {file.actuator.title}, law {file.law.name.upper()} ({file.law.title})"
