"""Result of one driver cycle: measurements in joint coordinates, and events."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stribeck.model.arrays import Array
from stribeck.servo.bus import Reading
from stribeck.servo.config import JointConfig

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
