"""Driver configuration: the servos on a bus, read from a YAML file.

The same file may define a session to play and record (:mod:`stribeck.session.config`). ``config/record.yaml``
explains every key.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, structs

from stribeck.errors import ConfigError, located
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.files.schema import NotNegative, Positive, Schema, read_yaml
from stribeck.model.joint_map import JointMap
from stribeck.recordings.signals.run_units import LARGEST_POSITION
from stribeck.servo.remote import ServoSpec
from stribeck.servo.tables import model_named
from stribeck.session.config import JointKeys, SessionConfig, SessionKeys, session_of
from stribeck.session.limits import check_plays


class JointMapKeys(Schema):
    """How a joint is mounted: joint = sign * servo / ratio + offset.

    :param sign: 1 or -1.
    :param ratio: servo turns per joint turn.
    :param offset: position of the joint where the servo is at 0 [rad].
    """

    sign: float = 1.0
    ratio: float = 1.0
    offset: float = 0.0


class ServoJoint(JointKeys, kw_only=True):
    """A joint and its servo; further keys as in :class:`~stribeck.session.config.JointKeys`.

    :param id: ID on the bus.
    :param model: control table.
    :param mode: position, current_position, extended_position, current or pwm, if the model supports it.
    :param joint_map: how the joint is mounted.
    :param p_gain: position gain, in firmware units; default: factory value.
    :param goal_current: maximum current in mode current_position [A].
    """

    id: int
    model: str
    position_limits: tuple[float, float]
    mode: str = "position"
    joint_map: JointMapKeys = JointMapKeys()
    p_gain: int | None = None
    i_gain: int = 0
    d_gain: int = 0
    goal_current: float | None = None


class BusFile(SessionKeys, kw_only=True):
    """Servos on a bus, and optionally a session; further keys as in
    :class:`~stribeck.session.config.SessionKeys`.

    :param port: serial port.
    :param baud_rate: [bit/s].
    :param joints: the joints by name.
    :param rate: cycles per second [Hz].
    :param command_timeout: torque goes off after this time without a command [s].
    :param silence_timeout: torque goes off after this time without an answer from a polled servo, or if a write to
        it takes longer [s].
    :param watchdog: time without a packet after which a servo with a Bus Watchdog stops by itself [s].
    :param position_margin: torque goes off when a joint is this far beyond its limits [rad].
    :param min_voltage: torque goes off below this supply voltage [V]; default: 5 % below each servo's rating.
    :param max_temperature: torque goes off at this temperature [°C]; default: each servo's stored limit.
    """

    port: str
    baud_rate: int
    joints: dict[str, ServoJoint]
    command_timeout: Positive = 0.1
    silence_timeout: Positive = 0.075
    watchdog: Annotated[float, Meta(ge=0.02, le=2.54)] = 0.1
    position_margin: NotNegative = 0.1
    min_voltage: float | None = None
    max_temperature: float | None = None


@dataclass(frozen=True)
class JointConfig:
    """A joint and its servo.

    :param name: name in messages and recordings.
    :param position_limits: goals are clipped to these [rad], in joint coordinates.
    :param joint_map: how the joint is mounted.
    :param p_gain: position gain, in firmware units.
    :param torque_constant: :math:`k_t`, converts the servo's current to torque [N m/A], NaN if unknown.
    :param actuator: family in ``config/actuators``, empty for none.
    :raises ConfigError: for an empty position range, or a gain that the servo does not support.
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
                f"joint {self.name!r}: position_limits: {lower:g} is not below {upper:g} rad: give the lower limit first"
            )
        if any(LARGEST_POSITION < abs(limit) < math.inf for limit in (lower, upper)):
            raise ConfigError(
                f"joint {self.name!r}: position_limits: {lower:g} to {upper:g} rad are more than two turns: are they in degrees? Without a limit give .inf"
            )
        self.check_gain(self.p_gain)

    def check_gain(self, gain: float) -> int:
        """Convert a gain to the integer that the servo accepts.

        :raises ConfigError: for a gain that is not a whole number, or out of range.
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
    """Configuration of a driver; see :class:`BusFile`.

    :param joints: in the order of all arrays.
    :raises ConfigError: without joints, or for a silence_timeout of less than three cycles.
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
        if not self.joints:
            raise ConfigError("joints: expected at least one joint")
        if self.silence_timeout * self.rate < 3.0:
            raise ConfigError(
                f"silence_timeout of {self.silence_timeout:g} s is less than three cycles at {self.rate:g} "
                "Hz, so that one lost packet could switch torque off: increase it, or the rate"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Joint names."""
        return tuple(joint.name for joint in self.joints)


def read_driver_config(path: Path) -> DriverConfig:
    """Read the driver configuration from a file, which may also describe a session.

    :raises ConfigError: for a file that is not valid.
    """
    return driver_of(read_yaml(path, BusFile), str(path))


def read_record_config(
    path: Path, *, port: str | None = None, rate: float | None = None, output: Path | None = None
) -> tuple[DriverConfig, SessionConfig]:
    """Read the driver configuration and the session from a file.

    :param port, rate, output: replace the values in the file.
    :raises ConfigError: for an invalid file, plays beyond the limits, gains that a servo does not support, or
        joints without an actuator or a goal position.
    """
    file = read_yaml(path, BusFile)
    changes: dict[str, Any] = {"port": port, "rate": rate, "output": None if output is None else str(output)}
    file = structs.replace(file, **{key: value for key, value in changes.items() if value is not None})
    driver = driver_of(file, str(path))
    rated = tuple(joint.servo.model.rated_max for joint in driver.joints)
    session = session_of(file, file.joints, [joint.actuator for joint in driver.joints], str(path), rated)
    for joint in driver.joints:
        if not joint.actuator:
            raise ConfigError(
                f"joint {joint.name!r}: there is no actuator named {joint.servo.model.name!r}: set actuator "
                "to a name in config/actuators, or to the path of a YAML file"
            )
        if not joint.servo.follows_position:
            raise ConfigError(
                f"joint {joint.name!r}: recordings need a goal position, found mode {joint.servo.mode!r}; "
                "valid: position, current_position"
            )
        for play in session.plays:
            joint.check_gain(play.kp)
    check_plays(session.plays, session.joints, releases_torque=True)
    return driver, session


def driver_of(file: BusFile, where: str) -> DriverConfig:
    """Build the driver configuration from the keys of a file.

    :param where: the file, for error messages.
    :raises ConfigError: for invalid values.
    """
    joints = tuple(_joint(name, joint, f"{where}: joints: {name}") for name, joint in file.joints.items())
    options = {key: getattr(file, key) for key in DriverConfig.__dataclass_fields__ if key != "joints"}
    with located(where, ConfigError):
        return DriverConfig(joints=joints, **options)


def _joint(name: str, keys: ServoJoint, where: str) -> JointConfig:
    with located(where, ConfigError):
        model = model_named(keys.model)
        actuator = keys.actuator or (model.name if model.name in actuator_names() else "")
        constant = load_actuator(actuator).datasheet_torque_constant if actuator else None
        gain = model.register("position_p_gain").initial if keys.p_gain is None else keys.p_gain
        return JointConfig(
            name,
            ServoSpec(keys.id, model, keys.mode, keys.goal_current, keys.i_gain, keys.d_gain),
            keys.position_limits,
            JointMap(**structs.asdict(keys.joint_map)),
            gain,
            math.nan if constant is None else constant,
            actuator,
        )
