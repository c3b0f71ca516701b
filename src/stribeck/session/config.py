"""Session configuration: what to play on which joints and what to record, read from a YAML file.

``config/record.yaml`` explains every key. A trajectory is the name of a built-in one, or a file written by
``stribeck design trajectory``, ``design sweep`` or ``design poses`` (``*.yaml``), or a file of points (:mod:`stribeck.session.points`). Such a file moves all joints
together in their own coordinates, without center and scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, structs

from stribeck import strict
from stribeck.errors import ConfigError, RecordingError, located
from stribeck.files.actuators import load_actuator
from stribeck.files.schema import Count, Infinite, Name, Positive, Schema, read_yaml
from stribeck.model.bench import Pendulum
from stribeck.model.log import Setup
from stribeck.model.trajectories import Trajectory, trajectory_named
from stribeck.session.bags import BenchJoint
from stribeck.session.directive import SessionOptions
from stribeck.session.excitation_file import read_excitation_file
from stribeck.session.limits import Limits, Play, SessionJoint, plays_of
from stribeck.session.points import MotionPointsFile
from stribeck.session.poses import PosesFile
from stribeck.session.sweep import SweepFile

Limit = Annotated[float, Meta(gt=0.0), Infinite]
"""A positive number, or ``.inf`` for no limit."""

MOTIONS: dict[str, type[SweepFile | PosesFile | MotionPointsFile]] = {
    "speeds": SweepFile,
    "poses": PosesFile,
    "positions": MotionPointsFile,
}
"""Files of motions by a key that no other one has; a Fourier series has none of them."""


class LimitKeys(Schema, kw_only=True):
    """Limits of a joint's goals.

    :param velocity: largest speed [rad/s].
    :param acceleration: largest acceleration [rad/s²].
    :param following_error: difference of goal and position that stops the session if it persists [rad].
    :param temperature: temperature that stops the session [°C].
    """

    velocity: Limit
    acceleration: Limit
    following_error: Limit = 1.2
    temperature: Limit = 65.0


class LoadKeys(Schema, kw_only=True):
    """The pendulum on a joint.

    :param mass: load at the end of the rod [kg].
    :param length: distance from shaft to load [m].
    :param arm_mass: mass of the uniform rod [kg].
    """

    mass: float
    length: float
    arm_mass: float

    def __post_init__(self) -> None:
        try:
            Setup(self.mass, self.length, self.arm_mass, supply_voltage=1.0, kp=1.0)
        except RecordingError as error:
            raise ValueError(str(error)) from None


class JointKeys(Schema, kw_only=True):
    """A joint.

    :param position_limits: lower and upper limit of goals [rad].
    :param limits: further limits; required for sessions.
    :param bench: the pendulum; a joint of a robot has none, and rests at its center when torque goes off.
    :param center: position that trajectories start from [rad].
    :param scale: amplitude factor of trajectories; negative values mirror them.
    :param actuator: family in ``config/actuators``, or a YAML file.
    :param i_gain: integral gain, in firmware units.
    :param d_gain: derivative gain, in firmware units.
    """

    position_limits: tuple[Annotated[float, Infinite], Annotated[float, Infinite]]
    limits: LimitKeys | None = None
    bench: LoadKeys | None = None
    center: float = 0.0
    scale: float = 1.0
    actuator: str = ""
    i_gain: float = 0.0
    d_gain: float = 0.0


class PlayKeys(Schema, kw_only=True):
    """Runs to play: every trajectory at every gain.

    :param trajectories: names of built-in trajectories, or files.
    :param gains: proportional gains, in firmware units.
    :param repetitions: number of repetitions of all runs.
    """

    trajectories: tuple[str, ...]
    gains: tuple[float, ...]
    repetitions: Count = 1


class SoftStartKeys(Schema):
    """Motion between runs.

    :param speed: largest speed [rad/s].
    :param acceleration: largest acceleration [rad/s²].
    """

    speed: Positive = 1.0
    acceleration: Positive = 4.0


class SessionKeys(Schema, kw_only=True):
    """Keys of a session besides its joints.

    :param plays: what to play; required for sessions.
    :param output: folder for the bags; required for sessions.
    :param soft_start: motion between runs.
    :param supply_voltage: as set on the power supply [V]; default: as measured at rest.
    :param state_timeout: maximum age of joint states before a run is stopped and repeated [s].
    :param position_margin: how far beyond its limits a joint may be [rad].
    :param rate: goals per second [Hz].
    """

    plays: PlayKeys | None = None
    output: str | None = None
    soft_start: SoftStartKeys = SoftStartKeys()
    supply_voltage: Positive | None = None
    state_timeout: Positive = SessionOptions.state_timeout
    position_margin: Positive = SessionOptions.position_margin
    rate: Positive = 200.0


class RobotJoint(JointKeys, kw_only=True):
    """A joint that another program drives."""

    limits: LimitKeys
    bench: LoadKeys
    actuator: Name


class RobotFile(SessionKeys, kw_only=True):
    """A session on joints that another program drives; keys as in :class:`SessionKeys`, and ``joints``."""

    joints: dict[str, RobotJoint]
    plays: PlayKeys
    output: str


@dataclass(frozen=True)
class SessionConfig:
    """What to play on which joints, and the metadata of recordings.

    :param plays: runs to make.
    :param joints: the joints and their limits.
    :param bench_joints: metadata of each joint, in the same order.
    :param options: speeds and times.
    :param output: folder for the bags.
    :param rate: goals per second [Hz].
    :param supply_voltage: as set on the power supply [V]; ``None``: as measured at rest.
    :param rated_voltage: maximum supply voltage of each joint's servo [V]; empty if unknown.
    """

    plays: tuple[Play, ...]
    joints: tuple[SessionJoint, ...]
    bench_joints: tuple[BenchJoint, ...]
    options: SessionOptions
    output: Path
    rate: float = 200.0
    supply_voltage: float | None = None
    rated_voltage: tuple[float, ...] = ()


def read_robot_session(path: Path) -> SessionConfig:
    """Read the session for joints that another program drives.

    :raises ConfigError: for an invalid file.
    """
    file = read_yaml(path, RobotFile)
    actuators = [joint.actuator for joint in file.joints.values()]
    for actuator in actuators:
        load_actuator(actuator)
    return session_of(file, file.joints, actuators, str(path))


def session_of(
    keys: SessionKeys,
    joints: Mapping[str, JointKeys],
    actuators: Sequence[str],
    where: str,
    rated_voltage: tuple[float, ...] = (),
) -> SessionConfig:
    """Build a session from the keys of a file.

    :param actuators: family of each joint.
    :param where: the file, for error messages.
    :param rated_voltage: see :class:`SessionConfig`.
    :raises ConfigError: for missing keys or invalid values.
    """
    if keys.plays is None or keys.output is None:
        raise ConfigError(f"{where}: {'plays' if keys.plays is None else 'output'} missing")
    session_joints, bench_joints = [], []
    for (name, joint), actuator in zip(joints.items(), actuators, strict=True):
        place = f"{where}: joints: {name}"
        if joint.limits is None:
            raise ConfigError(f"{place}: limits missing")
        with located(place, ConfigError):
            limits = Limits(*joint.position_limits, **structs.asdict(joint.limits))
            session_joints.append(
                SessionJoint(name, limits, joint.center, joint.scale, joint.bench is not None)
            )
        load = None if joint.bench is None else Pendulum(**structs.asdict(joint.bench))
        bench_joints.append(BenchJoint(name, actuator, load, float(joint.i_gain), float(joint.d_gain)))
    with located(f"{where}: plays", ConfigError):
        trajectories = [_trajectory(name) for name in keys.plays.trajectories]
        plays = plays_of(trajectories, keys.plays.gains, keys.plays.repetitions)
    return SessionConfig(
        plays=plays,
        joints=tuple(session_joints),
        bench_joints=tuple(bench_joints),
        options=SessionOptions(
            soft_speed=keys.soft_start.speed,
            soft_acceleration=keys.soft_start.acceleration,
            state_timeout=keys.state_timeout,
            position_margin=keys.position_margin,
        ),
        output=Path(keys.output),
        rate=keys.rate,
        supply_voltage=keys.supply_voltage,
        rated_voltage=rated_voltage,
    )


def _trajectory(name: str) -> Trajectory:
    if not name.endswith((".yaml", ".yml")):
        return trajectory_named(name)
    path = Path(name).expanduser()
    content = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    kind = next((kind for key, kind in MOTIONS.items() if isinstance(content, dict) and key in content), None)
    if kind is None:
        return read_excitation_file(path).trajectory.to_play(path.stem)
    return kind.read(path).to_play(path.stem)
