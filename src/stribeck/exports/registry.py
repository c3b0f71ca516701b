"""The formats that ``stribeck export`` writes, as one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, Written
from stribeck.model.actuator import ISOTHERMAL_EFFECTS


@dataclass(frozen=True)
class Format:
    """A target of exports.

    :param title: what it holds, in one line.
    :param module: module of :mod:`stribeck.exports` with ``write(task)``.
    :param law: friction law that it holds: the source's own, Coulomb and viscous friction alone (``m1``), or the paper's as the
        drive of Isaac Lab has them (:mod:`stribeck.exports.bam_drive`).
    :param fitted: parameters that a projection fits; empty: all parameters of the motor and of the law.
    :param gain: whether a firmware gain is part of the file.
    :param torque: whether it has joints whose commands are torques, so that no gain is needed.
    :param model: whether ``--model`` is needed (``True``), possible (``None``), or not used (``False``).
    :param effects: effects beyond the paper that it holds.
    :param writer: function of the module.
    :param falling_limit: whether its torque limit falls with speed, as that of a voltage bridge.
    :param absent: parameters of its law that it ignores; they are zero.
    :param terms: whether it holds friction that differs by direction, and an offset torque.
    :param gains: whether it holds what integral and derivative gains do.
    :param ramp: whether it holds the goal ramp of a firmware.
    :param supply: whether what it holds depends on the supply voltage.
    :param draws: how it holds draws: each in ``files`` of its own, all in one ``table``, or not (``None``).
    """

    name: str
    title: str
    module: str
    law: Literal["source", "m1", "drive"] = "source"
    fitted: tuple[str, ...] = ()
    gain: bool = False
    torque: bool = False
    model: bool | None = False
    effects: tuple[str, ...] = ()
    terms: bool = False
    writer: str = "write"
    absent: tuple[str, ...] = ()
    falling_limit: bool = True
    gains: bool = True
    ramp: bool = True
    supply: bool = False
    draws: Literal["files", "table"] | None = "files"

    def write(self, task: ExportTask) -> Written:
        """The content of the files.

        :raises ConfigError: for servos, joints or models that do not fit the format.
        """
        writer: Callable[[ExportTask], Written] = getattr(self.module_of(), self.writer)
        return writer(task)

    def module_of(self) -> ModuleType:
        """The format's module, with its writer and, where an engine is installed, ``engine`` and ``simulated``."""
        return import_module(f"stribeck.exports.{self.module}")


MOTOR_EFFECTS = ("current-limit", "supply", "delay")
"""Effects of a motor whose torque is proportional to its current."""

WHOLE: dict[str, Any] = {"effects": ISOTHERMAL_EFFECTS, "terms": True}
"""What the formats that hold any law have in common."""

ROBOT: dict[str, Any] = {
    "law": "m1",
    "fitted": ("friction_base", "friction_viscous", "kt", "R"),
    "model": True,
    "effects": MOTOR_EFFECTS,
    "supply": True,
}
"""What robot descriptions have in common: friction of M1, and the motor as limits of effort and velocity."""

CONTROLLER: dict[str, Any] = {
    "law": "m1",
    "gain": True,
    "effects": ("supply", "current-limit"),
    "supply": True,
    "ramp": False,
}
"""What the formats with a position controller in place of the firmware have in common."""

DRIVE: dict[str, Any] = {
    "law": "drive",
    "gain": True,
    "effects": MOTOR_EFFECTS,
    "supply": True,
    "gains": False,
    "ramp": False,
}
"""What the formats of the drive with the laws of the paper have in common."""

FORMATS = {
    form.name: form
    for form in (
        Format(
            "c",
            "C99/C++17 header without dependencies, for firmware: friction, feed-forward and motor torque of any law",
            "c_header",
            **WHOLE,
        ),
        Format(
            "bam",
            "flat JSON file of the BAM program, for all six laws; also for mjlab through that program",
            "bam",
        ),
        Format(
            "mjcf",
            "MuJoCo: armature, damping, frictionloss, an actuator (dcmotor with its limits and delay if "
            "MuJoCo has it), and solver settings that prevent creep at rest",
            "mjcf",
            torque=True,
            model=None,
            **CONTROLLER | {"effects": MOTOR_EFFECTS, "ramp": True},
        ),
        Format(
            "urdf",
            "URDF: damping, friction, effort and velocity limits of joints; the rest of the file is unchanged",
            "robot_text",
            writer="write_urdf",
            **ROBOT,
        ),
        Format("sdf", "SDF (Gazebo): the same", "robot_text", writer="write_sdf", **ROBOT),
        Format(
            "drake",
            "URDF for Drake: as urdf, with the rotor's inertia (drake:rotor_inertia)",
            "robot_text",
            writer="write_drake",
            absent=("friction_base",),
            **ROBOT | {"fitted": ("friction_viscous", "kt", "R", "armature")},
        ),
        Format(
            "isaaclab",
            "Isaac Lab: DCMotorCfg or IdealPDActuatorCfg with armature, friction and limits, as Python and as YAML",
            "isaaclab",
            draws="table",
            **CONTROLLER,
        ),
        Format(
            "isaaclab-bam",
            "Isaac Lab with Newton: BamActuatorCfg and BamMotorCfg, laws M1 to M5 exactly, as Python and as YAML",
            "isaaclab_bam",
            draws="table",
            **DRIVE,
        ),
        Format(
            "usd-bam",
            "USD layer for a robot: NewtonBamDriveAPI (as isaaclab-bam), armature and damping of joints",
            "usd_bam",
            model=True,
            **DRIVE,
        ),
        Format(
            "mjlab",
            "mjlab with the BAM program: BamActuatorCfg as Python, and a BAM file of each joint",
            "mjlab",
            **DRIVE | {"effects": ("supply", "delay"), "ramp": True},
        ),
        Format(
            "genesis",
            "Genesis: gains, force range, armature, damping and friction of joints, as a Python function",
            "genesis",
            falling_limit=False,
            **CONTROLLER,
        ),
        Format(
            "usd",
            "USD layer for a robot: joint drives (UsdPhysics), armature and friction (PhysxJointAxisAPI)",
            "usd_layer",
            falling_limit=False,
            model=True,
            **CONTROLLER,
        ),
        Format(
            "ros2_control",
            "ROS 2: parameters of the compensation node and of the controller for ros2_control",
            "ros2_control",
            gain=True,
            torque=True,
            model=None,
            supply=True,
            draws=None,
            **WHOLE,
        ),
        Format(
            "onnx",
            "ONNX graph of any law: friction budget as a function of motor torque, external torque and velocity",
            "onnx_graph",
            **WHOLE,
        ),
        Format(
            "csv",
            "table of friction over velocity and load, any law, all joints",
            "table",
            model=None,
            **WHOLE,
        ),
    )
}
"""All formats by name."""


def format_named(name: str) -> Format:
    """The format called ``name``.

    :raises ConfigError: for an unknown name.
    """
    if name not in FORMATS:
        raise ConfigError(
            f"unknown format {name!r}; valid: {', '.join(FORMATS)} (`format` list explains them)"
        )
    return FORMATS[name]
