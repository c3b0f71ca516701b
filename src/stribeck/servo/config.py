"""The driver's configuration: joints, the servos behind them, and when to let go. YAML, read strictly.

.. code-block:: yaml

    port: /dev/ttyUSB0
    baud_rate: 1000000
    rate: 200               # cycles in a second
    joints:
      shoulder:
        id: 1
        model: xl330                             # control table
        actuator: xl330                          # config/actuators; default: as the model
        position_limits: [-1.8, 1.8]             # rad, in joint coordinates
        joint_map: {sign: 1, ratio: 1, offset: 0}
        mode: position                           # or current, current_position, pwm
        p_gain: 400                              # firmware units; default: the factory's
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.core.joint_map import JointMap
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.actuators import actuator_names, load_actuator
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named


@dataclass(frozen=True)
class JointConfig:
    """A joint and the servo that drives it.

    :param name: name in messages and recordings.
    :param servo: the servo.
    :param position_limits: goals are clipped to these [rad], in joint coordinates.
    :param joint_map: how the joint is mounted.
    :param p_gain: position gain, in firmware units.
    :param torque_constant: :math:`k_t` for the torque from the servo's current [N m/A], NaN for none.
    :param actuator: family in ``config/actuators``, empty for none.
    :raises ConfigError: for limits that leave no room, or a gain that the servo does not take.
    """

    name: str
    servo: ServoSpec
    position_limits: tuple[float, float]
    joint_map: JointMap
    p_gain: int
    torque_constant: float = math.nan
    actuator: str = ""

    def __post_init__(self) -> None:
        lower, upper = self.position_limits
        if not lower < upper:
            raise ConfigError(
                f"joint {self.name!r}: position_limits: {lower:g} is not below {upper:g} rad; give the lower first"
            )
        self.check_gain(self.p_gain)

    def check_gain(self, gain: float) -> int:
        """A gain as the servo takes it.

        :raises ConfigError: for a gain that is no whole number or out of range.
        """
        register = self.servo.model.register("position_p_gain")
        if not math.isfinite(gain) or gain != round(gain) or not register.accepts(round(gain)):
            raise ConfigError(
                f"joint {self.name!r}: {self.servo} has no gain {gain:g}; valid: whole numbers from "
                f"{register.minimum} to {register.maximum}"
            )
        return round(gain)


@dataclass(frozen=True)
class DriverConfig:
    """What a driver is told.

    :param port: serial port.
    :param baud_rate: [bit/s].
    :param joints: in the order of all arrays.
    :param rate: cycles in a second [Hz].
    :param command_timeout: torque goes off when no command came for so long [s].
    :param silence_timeout: torque goes off when a servo was asked and did not answer for so long [s].
    :param watchdog: after so long without a packet a servo stops by itself, where it can [s].
    :param position_margin: torque goes off when a joint is so far beyond its limits [rad].
    :param min_voltage: torque goes off below this supply [V]; ``None``: 5 % under each servo's rating.
    :param max_temperature: torque goes off from here on [°C]; ``None``: each servo's own limit.
    :raises ConfigError: for values that make no sense.
    """

    port: str
    baud_rate: int
    joints: tuple[JointConfig, ...]
    rate: float = 200.0
    command_timeout: float = 0.1
    silence_timeout: float = 0.075
    watchdog: float = 0.1
    position_margin: float = 0.1
    min_voltage: float | None = None
    max_temperature: float | None = None

    def __post_init__(self) -> None:
        names = [joint.name for joint in self.joints]
        if not names:
            raise ConfigError("joints: expected at least one joint")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"joint {name!r} stands twice")
        for key in ("rate", "command_timeout", "silence_timeout", "watchdog"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{key} must be positive, found {value:g}")
        if self.position_margin < 0.0:
            raise ConfigError(f"position_margin must not be negative, found {self.position_margin:g}")
        if not 0.02 <= self.watchdog <= 2.54:
            raise ConfigError(f"watchdog must be 0.02 to 2.54 s, found {self.watchdog:g}")
        if self.silence_timeout * self.rate < 3.0:
            raise ConfigError(
                f"silence_timeout of {self.silence_timeout:g} s is less than three cycles at {self.rate:g} Hz: a "
                "lost packet would stop everything; raise it, or the rate"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(joint.name for joint in self.joints)


OPTIONS = (
    "rate",
    "command_timeout",
    "silence_timeout",
    "watchdog",
    "position_margin",
    "min_voltage",
    "max_temperature",
)
"""Numbers of :class:`DriverConfig` that may be left out."""

JOINT_REQUIRED = ("id", "model", "position_limits")
JOINT_OPTIONAL = ("actuator", "joint_map", "mode", "p_gain", "i_gain", "d_gain", "goal_current")
"""Keys of a joint."""


def read_driver_config(path: Path) -> DriverConfig:
    """Read a driver's configuration from a YAML file.

    :raises ConfigError: for a file that is not valid.
    """
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    return driver_config(data, str(path))


def driver_config(data: Any, what: str) -> DriverConfig:
    """A driver's configuration from what YAML holds.

    :param what: where it stands, for messages.
    :raises ConfigError: for what is not valid.
    """
    found = strict.mapping(data, what, ConfigError)
    strict.check_keys(found, ("port", "baud_rate", "joints"), OPTIONS, what, ConfigError)
    joints = strict.mapping(found["joints"], f"{what}: joints", ConfigError)
    numbers = {
        key: strict.number(found[key], f"{what}: {key}", ConfigError) for key in OPTIONS if key in found
    }
    return DriverConfig(
        port=strict.text(found["port"], f"{what}: port", ConfigError),
        baud_rate=_whole(found["baud_rate"], f"{what}: baud_rate"),
        joints=tuple(joint_config(name, value, f"{what}: joint {name!r}") for name, value in joints.items()),
        **numbers,
    )


def joint_config(name: str, data: Any, what: str) -> JointConfig:
    """One joint of a driver from what YAML holds.

    :raises ConfigError: for what is not valid.
    """
    found = strict.mapping(data, what, ConfigError)
    strict.check_keys(found, JOINT_REQUIRED, JOINT_OPTIONAL, what, ConfigError)
    model = model_named(strict.text(found["model"], f"{what}: model", ConfigError))
    actuator = strict.text(found.get("actuator", ""), f"{what}: actuator", ConfigError)
    if not actuator and model.name in actuator_names():
        actuator = model.name
    current = found.get("goal_current")
    servo = ServoSpec(
        identity=_whole(found["id"], f"{what}: id"),
        model=model,
        mode=strict.text(found.get("mode", "position"), f"{what}: mode", ConfigError),
        goal_current=None
        if current is None
        else strict.number(current, f"{what}: goal_current", ConfigError),
        i_gain=_whole(found.get("i_gain", 0), f"{what}: i_gain"),
        d_gain=_whole(found.get("d_gain", 0), f"{what}: d_gain"),
    )
    constant = load_actuator(actuator).datasheet_torque_constant if actuator else None
    return JointConfig(
        name=name,
        servo=servo,
        position_limits=_limits(found["position_limits"], f"{what}: position_limits"),
        joint_map=_joint_map(found.get("joint_map", {}), f"{what}: joint_map"),
        p_gain=_whole(found.get("p_gain", model.register("position_p_gain").initial), f"{what}: p_gain"),
        torque_constant=math.nan if constant is None else constant,
        actuator=actuator,
    )


def _limits(value: Any, what: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ConfigError(f"{what}: expected [lower, upper] in rad, found {value!r}")
    return strict.number(value[0], what, ConfigError), strict.number(value[1], what, ConfigError)


def _joint_map(value: Any, what: str) -> JointMap:
    data: Mapping[str, Any] = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, (), ("sign", "ratio", "offset"), what, ConfigError)
    return JointMap(**{key: strict.number(item, f"{what}: {key}", ConfigError) for key, item in data.items()})


def _whole(value: Any, what: str) -> int:
    number = strict.number(value, what, ConfigError)
    if number != round(number):
        raise ConfigError(f"{what}: expected a whole number, found {number:g}")
    return int(number)
