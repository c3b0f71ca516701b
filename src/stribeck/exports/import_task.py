"""What is imported, and the parameter files of servos with voltage or torque control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stribeck.errors import ConfigError
from stribeck.model.actuator import Actuator
from stribeck.model.control_laws import TorqueControl, VoltageControl
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw, law_named

M1: FrictionLaw = law_named("m1")


@dataclass(frozen=True)
class ImportTask:
    """A file to read.

    :param actuator: the servo.
    :param joint: name of the joint; ``None``: the only one.
    :param kp: firmware gain of the file's stiffness.
    :param supply: voltage of the file's torques [V], for files of torques; ``None``: not known.
    :param motor: parameter file with the motor, for formats without one.
    """

    path: Path
    actuator: Actuator
    joint: str | None = None
    kp: float | None = None
    supply: float | None = None
    motor: Drive | None = None

    def gain(self) -> float:
        """The firmware gain.

        :raises ConfigError: if it is not given.
        """
        if self.kp is None:
            raise ConfigError(
                f"{self.path} contains a stiffness: give the firmware gain to which it belongs as `file_kp`"
            )
        return self.kp

    def check_servo(self, name: str) -> None:
        """Raise :class:`ConfigError` if the file belongs to another servo."""
        if name != self.actuator.name:
            raise ConfigError(
                f"{self.path} belongs to the servo {name!r}, but `servo` is {self.actuator.name!r}"
            )

    def one_of(self, joints: Mapping[str, object]) -> str:
        """The joint to read, of those in the file.

        :raises ConfigError: if it is not there, or not named and not the only one.
        """
        if self.joint is None and len(joints) == 1:
            return next(iter(joints))
        if not joints:
            raise ConfigError(f"{self.path} has no joint with the parameters of a servo")
        if self.joint not in joints:
            listed = ", ".join(joints)
            several = "several joints; name one with `file_joint`"
            wanted = several if self.joint is None else f"no joint {self.joint!r}"
            raise ConfigError(f"{self.path} has {wanted}; it has: {listed}")
        return str(self.joint)


def torque_controlled(
    task: ImportTask, stiffness: float, damping: float, limit: float, values: Mapping[str, float]
) -> Drive:
    """Law M1 with a position controller in place of the firmware."""
    return _with_control(
        task, TorqueControl(gain=stiffness / task.gain(), damping=damping, torque_max=limit), values
    )


def torque_driven(task: ImportTask, limit: float, values: Mapping[str, float]) -> Drive:
    """Law M1 of a joint whose commands are torques."""
    return _with_control(task, TorqueControl(gain=1.0, damping=0.0, torque_max=limit), values)


def _with_control(task: ImportTask, control: TorqueControl, values: Mapping[str, float]) -> Drive:
    """The servo with another control law, and the bounds that its file needs for it."""
    kept = {name: bounds for name, bounds in task.actuator.bounds.items() if name not in ("kt", "R")}
    actuator = replace(
        task.actuator,
        control=control,
        active_effects=frozenset(),
        bounds={"ratio": (0.5, 2.0), **kept},
        datasheet=replace(task.actuator.datasheet, prior={}, bounds={}),
        effects={},
    )
    return Drive(actuator, M1, {"q_offset": 0.0, "ratio": 1.0, **values})


def voltage_controlled(
    task: ImportTask,
    kt: float,
    resistance: float,
    stiffness: float,
    voltage: float,
    values: Mapping[str, float],
) -> Drive:
    r"""Law M1 with a motor; the firmware's gain follows from the stiffness, :math:`g = k R d_{max} / (k_t U K_p)`.

    :param voltage: of full duty, U [V].
    """
    control = voltage_of(task)
    gain = stiffness * resistance / kt * control.duty_max / (voltage * task.gain())
    if abs(gain - control.gain) > 1e-4 * control.gain:
        control = replace(control, gain=gain)
    effects = ("current-limit",) if "current_limit" in values else ()
    actuator = replace(task.actuator, control=control).with_effects(effects)
    return Drive(actuator, M1, {"q_offset": 0.0, "kt": kt, "R": resistance, **values})


def voltage_of(task: ImportTask) -> VoltageControl:
    """The control law of the task's servo.

    :raises ConfigError: for servos that do not switch their supply onto the motor.
    """
    control = task.actuator.control
    if not isinstance(control, VoltageControl):
        raise ConfigError(
            f"{task.path} contains a motor with a voltage bridge, but {task.actuator.name} is a servo with "
            f"{control.kind} control: give another servo as `servo`"
        )
    return control
