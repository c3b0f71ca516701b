"""Result of one driver cycle: measurements in joint coordinates, events, and both as ROS messages; goals from messages."""

import math
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import (
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    RawMessage,
    Topic,
    diagnostic_array,
    dynamic_joint_state,
    joint_state,
    warm_up,
)
from stribeck.servo.bus import Reading
from stribeck.servo.config import JointConfig
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock, calendar_offset

DriverState = Literal["off", "on", "fault"]
Kind = Literal["fault", "warning", "info"]

TELEMETRY = ("pwm", "voltage", "temperature", "current", "load", "torque_enable", "p_gain", "gap")
"""Signals published in addition to the joint states, by their names in recordings."""


@dataclass(frozen=True)
class Event:
    """Something that happened, reported once.

    :param kind: ``fault`` (torque went off by itself), ``warning`` or ``info``.
    :param text: one line.
    :param time: steady clock [s].
    """

    kind: Kind
    text: str
    time: float


@dataclass(frozen=True)
class JointReading(Reading):
    """Measurements of one cycle in joint coordinates, SI units, one entry per joint; NaN where missing.

    :param stamp: when the servos were read, steady clock [s]: the median of :attr:`times`.
    :param effort: torque from the servo's current and the datasheet's torque constant [N m].
    """

    stamp: float
    effort: Array


@dataclass(frozen=True)
class DriverSample(JointReading):
    """One cycle of a driver.

    :param torque_enable: 1 energised, 0 not.
    :param p_gain: in firmware units.
    :param gap: how long the servo was silent before this sample [s], or 0.
    :param goal: as sent in this cycle, clipped and rounded to counts: [rad], [A] or duty by mode; NaN: none.
    :param goal_stamp: when the goals were sent, steady clock [s].
    :param state: of the driver.
    :param reason: cause of the fault, empty for none.
    :param disturbed: whether the fault is one of timing, see :class:`~stribeck.servo.driver.Driver`.
    :param events: since the previous sample.
    """

    torque_enable: Array
    p_gain: Array
    gap: Array
    goal: Array
    goal_stamp: float
    state: DriverState
    reason: str
    disturbed: bool
    events: tuple[Event, ...]


def reading_of_joints(joints: Sequence[JointConfig], reading: Reading | None, now: float) -> JointReading:
    """Convert a reading to joint coordinates; all NaN without a reading.

    :param now: stamp if no servo answered [s].
    """
    if reading is None:
        nothing = np.full(len(joints), np.nan)
        blank = Reading(np.zeros(len(joints), dtype=bool), *[nothing] * 8)
        return JointReading(**vars(blank), stamp=now, effort=nothing)
    maps = [joint.joint_map for joint in joints]
    sign = np.array([m.sign for m in maps])
    constants = [joint.torque_constant for joint in joints]
    valid = reading.valid
    changes = {
        "position": np.array([m.position(q) for m, q in zip(maps, reading.position, strict=True)]),
        "velocity": np.array([m.velocity(v) for m, v in zip(maps, reading.velocity, strict=True)]),
        "current": sign * reading.current,
        "load": sign * reading.load,
        "pwm": sign * reading.pwm,
    }
    return JointReading(
        **{**vars(reading), **changes},
        stamp=statistics.median(reading.times[valid].tolist()) if valid.any() else now,
        effort=np.array([m.effort(i, k) for m, i, k in zip(maps, reading.current, constants, strict=True)]),
    )


def goals_to_servos(joints: Sequence[JointConfig], goals: Array) -> Array:
    """Clip joint goals to the joint limits and convert them to servo coordinates; NaN stays NaN."""
    return np.array(
        [
            joint.joint_map.servo_position(min(max(goal, joint.position_limits[0]), joint.position_limits[1]))
            if joint.servo.follows_position
            else joint.joint_map.sign * goal
            for joint, goal in zip(joints, goals, strict=True)
        ]
    )


def goals_to_joints(joints: Sequence[JointConfig], goals: Array) -> Array:
    """Convert servo goals to joint coordinates; NaN stays NaN."""
    return np.array(
        [
            joint.joint_map.position(goal) if joint.servo.follows_position else joint.joint_map.sign * goal
            for joint, goal in zip(joints, goals, strict=True)
        ]
    )


ENCODERS = {DYNAMIC_JOINT_STATES: dynamic_joint_state, SERVO_STATUS: diagnostic_array}

APART = 0.02
"""Longest time between the readings of joints that have one stamp [s]."""

Indices = npt.NDArray[np.intp]


class SampleMessages:
    """Converts samples to messages, without joints that did not answer and signals that a servo does not
    measure.

    Joints that were read at times more than :data:`APART` apart, as after a repeated request, are in messages of their own.
    The clocks are compared once, so stamps are calendar times that advance like the steady clock.

    :param joints: names, in the order of all arrays.
    :param followers: which joints have position goals; only those appear in ``/joint_commands``.
    :param telemetry: topic for the other signals of the servos: /dynamic_joint_states or /servo_status.
    :param clock: the steady clock of the samples.
    """

    def __init__(
        self,
        joints: Sequence[str],
        followers: Sequence[bool],
        telemetry: Topic = DYNAMIC_JOINT_STATES,
        clock: SteadyClock = SYSTEM_CLOCK,
    ) -> None:
        warm_up()
        self.joints = tuple(joints)
        self._offset = calendar_offset(clock)
        self._followers = np.array(followers, dtype=bool)
        self._telemetry = telemetry
        self._encode = ENCODERS[telemetry]

    def stamp(self, steady: float) -> int:
        """Convert a steady time [s] to wall-clock time [ns]."""
        return self._offset + round(steady * 1e9)

    def __call__(self, sample: DriverSample, unheard: Collection[Topic] = ()) -> Iterator[RawMessage]:
        """Messages of a sample: goals as sent, then states and telemetry.

        :param unheard: topics to which nobody listens: their messages are not made.
        """
        sent = np.flatnonzero(np.isfinite(sample.goal) & self._followers)
        if sent.size and JOINT_COMMANDS not in unheard:
            stamp = self.stamp(sample.goal_stamp)
            data = joint_state(stamp, [self.joints[j] for j in sent], sample.goal[sent])
            yield RawMessage(JOINT_COMMANDS, stamp, data)
        for present in _together(sample):
            stamp = self.stamp(statistics.median(sample.times[present].tolist()))
            names = [self.joints[j] for j in present]
            measured = (values[present] for values in (sample.position, sample.velocity, sample.effort))
            yield RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *measured))
            if self._telemetry in unheard:
                continue
            table = np.stack([getattr(sample, name) for name in TELEMETRY])[:, present].T.tolist()
            telemetry = {
                name: {key: value for key, value in zip(TELEMETRY, row, strict=True) if value == value}
                for name, row in zip(names, table, strict=True)
            }
            yield RawMessage(self._telemetry, stamp, self._encode(stamp, telemetry))


def _together(sample: DriverSample) -> Iterator[Indices]:
    """The joints that were read within :data:`APART` of each other, by time; usually all that answered."""
    rest = np.flatnonzero(sample.valid)
    while rest.size:
        early = sample.times[rest] <= sample.times[rest].min() + APART
        yield rest[early]
        rest = rest[~early]


class JointGoals:
    """The latest goal of every joint.

    A joint that a message does not name keeps its previous goal and that goal's arrival time, so programs
    must name every joint they drive in every message. A NaN goal switches the torque of a joint off and never
    expires.

    :param joints: in the order of all arrays.
    """

    def __init__(self, joints: Sequence[JointConfig]) -> None:
        self._index = {joint.name: index for index, joint in enumerate(joints)}
        self._follows = [joint.servo.follows_position for joint in joints]
        self.forget()

    def forget(self) -> None:
        """Discard all goals."""
        self._goals = np.full(len(self._follows), math.nan)
        self._arrival = np.full(len(self._follows), -math.inf)

    def take(
        self, names: Sequence[str], positions: Sequence[float], efforts: Sequence[float], arrival: float
    ) -> str:
        """Store the goals of a message.

        :param positions: goals of joints in a position mode [rad].
        :param efforts: goals of joints in current or pwm mode: [A] or duty.
        :param arrival: when the message arrived, steady clock [s].
        :return: names of unknown joints, which are ignored; empty for none.
        :raises ConfigError: if a named joint has no goal or an infinite one; the whole message is then
            ignored.
        """
        goals = self._goals.copy()
        named, unknown = [], []
        for place, name in enumerate(names):
            index = self._index.get(name)
            if index is None:
                unknown.append(name)
                continue
            values, field = (positions, "position") if self._follows[index] else (efforts, "effort")
            if place >= len(values):
                raise ConfigError(
                    f"goal of joint {name!r}: {field} is missing: give it; NaN would switch torque off"
                )
            if math.isinf(values[place]):
                raise ConfigError(
                    f"goal of joint {name!r}: {field} is {values[place]:g}; valid: finite, or NaN"
                )
            goals[index] = values[place]
            named.append(index)
        self._goals = goals
        self._arrival[named] = arrival
        return ", ".join(unknown)

    @property
    def command(self) -> tuple[Array, float]:
        """Goals of all joints, and the arrival time of the oldest goal [s], infinity if there is none."""
        energised = ~np.isnan(self._goals)
        return self._goals.copy(), float(np.min(self._arrival, where=energised, initial=math.inf))
